#!/bin/sh
# "ncclinic check --nodes" beside "srun hostname" over the same nodes of a real
# Slurm cluster in one run, and the merging of 10,000 synthetic reports.
#
#   bench/nodes.sh [NODES] [ROUNDS]
#
# 1,000 slurmd and as many probes need about 8 GB of memory and 20,000 open files.
# Nothing is left when it ends, however it ends.
set -eu
cd "$(dirname "$0")/.."
ulimit -n "$(ulimit -H -n)"
go run ./bench/nodes -merge 10000
go run ./bench/nodes -nodes "${1:-256}" -n "${2:-5}" -limit 15m
