#!/bin/sh
# Makes the images of this folder: one small tree, one image of each compressor
# and one that is not compressed. Needs squashfs-tools, attr and root.
set -eu
cd "$(dirname "$0")"
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
mkdir -p "$t/lib/torch" "$t/bin"
echo "__version__ = '2.6.0+cpu'" >"$t/lib/torch/version.py"
seq 1 1100 >"$t/lib/numbers" # more than one block
ln -s ../lib/numbers "$t/bin/link"
truncate -s 20000 "$t/hole"
printf tail >>"$t/hole"
mkfifo "$t/fifo"
: >"$t/empty"
for i in 1 2 3 4 5 6 7 8 9; do echo $i >"$t/lib/torch/m$i.py"; done
setfattr -n user.a -v b "$t/empty"
chmod 755 "$t"
find "$t" -exec touch -h -d 2026-01-02T03:04:05Z {} +
for c in gzip lzma lzo xz lz4 zstd; do
	mksquashfs "$t" $c.sqsh -comp $c -b 4096 -nopad -all-root -noappend -quiet -no-progress
done
mksquashfs "$t" plain.sqsh -b 4096 -noI -noD -noF -noX -nopad -all-root -noappend -quiet -no-progress
