#!/bin/sh
# Listing squashfs images of 50,000 entries, each inode read, beside
# "unsquashfs -ll", whole processes in one run; then how many bytes were read.
#
#   bench/images.sh [RUNS] [IMAGE...]      images of every compressor when none is named
#
# Needs go and squashfs-tools.
set -eu
runs=${1:-7}
[ $# -gt 0 ] && shift
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
(cd "$here" && CGO_ENABLED=0 go build -trimpath -o "$dir/images" ./bench/images)
if [ $# = 0 ]; then
	"$dir/images" -tree "$dir/tree" -n 50000
	for c in gzip lzo lz4 xz zstd; do
		# Only names and inodes are looked at: no need to spend time on data.
		mksquashfs "$dir/tree" "$dir/$c.sqsh" -comp $c -noD -noF -quiet -no-progress
	done
	set -- "$dir"/*.sqsh
fi
"$dir/images" -compare -runs "$runs" "$@"
for i in "$@"; do
	printf '%s: ' "${i##*/}"
	"$dir/images" -walk "$i" 2>"$dir/reads" >/dev/null
	cat "$dir/reads"
done
