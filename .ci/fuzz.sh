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
# fuzz PACKAGE TARGET. By default go test spends up to a minute on making each
# interesting input smaller, longer than the whole run; and a run that ends in
# the middle of that may fail with nothing but "context deadline exceeded" and no
# input. Such a run is repeated once; an input that fails is a failure at once.
fuzz() {
	for again in yes no; do
		out=$("$go" test -run '^$' -fuzz "^$2\$" -fuzztime "${FUZZTIME:-5s}" -fuzzminimizetime 20x "$1" 2>&1) && return
		[[ $again = yes && $out = *"context deadline exceeded"* && $out != *"Failing input"* ]] || break
	done
	echo "$out"
	return 1
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
			fuzz "$pkg" "$n" || failed+=("$pkg $n")
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
