#!/bin/sh
# "ncclinic check" of wheels beside unpacking them with unzip, in one run.
#
#   bench/wheels.sh WHEEL...      BINARY=path/to/ncclinic to measure another build
#
# Needs go, unzip and GNU time (Debian: unzip, time), and room to unpack one wheel.
set -eu
[ $# -gt 0 ] || {
	echo "usage: bench/wheels.sh WHEEL..." >&2
	exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bin=${BINARY:-}
if [ -z "$bin" ]; then
	bin=$dir/ncclinic
	(cd "$root" && CGO_ENABLED=0 go build -o "$bin" ./cmd/ncclinic)
fi
bad=0
for whl; do
	cat "$whl" >/dev/null # into the page cache, as far as it fits
	rm -rf "$dir/out"
	/usr/bin/time -f '%e %U %S' -o "$dir/unzip" unzip -q "$whl" -d "$dir/out"
	rm -rf "$dir/out"
	for _ in 1 2 3; do
		/usr/bin/time -f '%e %U %S %M' -o "$dir/t" "$bin" check --format json "$whl" >/dev/null 2>&1 || true
		tail -n 1 "$dir/t"
	done | sort -n | head -n 1 >"$dir/us"
	read=$("$bin" check -v "$whl" 2>/dev/null | awk '$1 == "target.read" {print $2}')
	echo "$(cat "$dir/unzip") $(cat "$dir/us") $read $(wc -c <"$whl") $(basename "$whl")" | awk '{
		printf "%s: %.0f MB\n", $10, $9/1e6
		printf "  unzip     %6.2f s wall %6.2f s CPU\n", $1, $2+$3
		printf "  ncclinic  %6.2f s wall %6.2f s CPU  peak %.0f MiB, %.1f MB read\n", $4, $5+$6, $7/1024, $8/1e6
		printf "  unzip takes %.0f times as long, %.0f times the CPU\n", $1/$4, ($2+$3)/($5+$6)
		exit !($1 >= 20*$4 && $7 <= 64*1024)
	}' || bad=1
done
[ $bad = 0 ] || {
	echo "above 1/20 of unzip or 64 MiB" >&2
	exit 1
}
