#!/bin/bash
# Runs every fuzz target of the module for FUZZTIME (default 5s), one after
# another: `go test -fuzz` takes one target of one package at a time.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
go=${GO:-go}

list=$("$go" test -list '^Fuzz' ./internal/... ./rules/...) || {
	echo "$list"
	exit 1
}
names=()
failed=()
count=0
while read -r word pkg _; do
	case $word in
	Fuzz*) names+=("$word") ;;
	ok)
		for n in "${names[@]}"; do
			count=$((count + 1))
			echo "fuzz: $pkg $n"
			out=$("$go" test -run '^$' -fuzz "^$n\$" -fuzztime "${FUZZTIME:-5s}" "$pkg" 2>&1) || {
				echo "$out"
				failed+=("$pkg $n")
			}
		done
		names=()
		;;
	esac
done <<<"$list"

if [ ${#failed[@]} -gt 0 ]; then
	printf 'fuzz failed: %s\n' "${failed[@]}"
	exit 1
fi
echo "fuzz: $count targets"
