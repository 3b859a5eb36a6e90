#!/usr/bin/env bash
# Runs tiers of the test suite one after the other, each as its own make
# target. A failing tier does not keep later ones from running; any failure
# fails the whole. At the end: the result, the time and the tests of each.
#
#   scripts/tiers.sh unit e2e lab
set -uo pipefail

logs=out/test
mkdir -p "$logs"
failed=0
report=()

for tier in "$@"; do
	echo "== $tier"
	begin=$SECONDS
	if "${MAKE:-make}" --no-print-directory "$tier" 2>&1 | tee "$logs/$tier.log"; then
		result=passed
	else
		result=FAILED
		failed=$((failed + 1))
	fi
	tests=$(grep '^DONE ' "$logs/$tier.log" | tail -n 1)
	report+=("$(printf '%-6s %s in %4d s   %s' "$tier" "$result" $((SECONDS - begin)) "${tests#DONE }")")
done

printf '\n'
printf '%s\n' "${report[@]}"
echo "tiers: $(($# - failed)) passed, $failed failed"
((failed == 0))
