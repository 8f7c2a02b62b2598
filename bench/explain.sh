#!/bin/sh
# Throughput and peak memory of "ncclinic explain" on a large training log,
# beside ripgrep counting lines with the same literals, in one run.
#
#   bench/explain.sh [MEGABYTES] [BINARY]
#
# Needs go, ripgrep and GNU time (Debian: ripgrep, time).
set -eu
cd "$(dirname "$0")/.."
mb=${1:-1024}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bin=${2:-}
if [ -z "$bin" ]; then
	bin=$dir/ncclinic
	CGO_ENABLED=0 go build -o "$bin" ./cmd/ncclinic
fi
go run ./bench/genlog -mb "$mb" >"$dir/train.log"
go run ./bench/genlog -literals >"$dir/literals"
cat "$dir/train.log" >/dev/null # into the page cache
best() { # command…: smallest wall time of three runs, and its peak memory
	for _ in 1 2 3; do
		/usr/bin/time -f '%e %M' -o "$dir/t" "$@" >/dev/null 2>&1 || true
		tail -n 1 "$dir/t"
	done | sort -n | head -n 1
}
rg=$(best rg -c -F -f "$dir/literals" "$dir/train.log")
us=$(best "$bin" explain --format json "$dir/train.log")
echo "$rg $us $mb" | awk '{
	printf "ripgrep   %6.2f s %7.0f MB/s\n", $1, $5/$1
	printf "ncclinic  %6.2f s %7.0f MB/s   peak %.0f MiB\n", $3, $5/$3, $4/1024
	printf "throughput ratio ncclinic/ripgrep %.2f\n", $1/$3
	if ($4 > 96*1024) { print "peak memory above 96 MiB"; exit 1 }
}'
