#!/bin/sh
# "ncclinic check --nodes" beside "srun hostname" over the same nodes of a real
# Slurm cluster in one run, and the merging of 10,000 synthetic reports.
#
#   bench/nodes.sh [NODES] [ROUNDS]
#
# 256 slurmd need about 1 GB of memory and 2,000 open files.
set -eu
cd "$(dirname "$0")/.."
ulimit -n "$(ulimit -H -n)"
go run ./bench/nodes -merge 10000
go run ./bench/nodes -nodes "${1:-256}" -n "${2:-5}"
