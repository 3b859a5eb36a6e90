#!/usr/bin/env bash
# Runs tiers of the test suite one after the other, each as its own make
# target. A failing tier does not keep later ones from running; any failure
# fails the whole. At the end: what failed, with the first lines each failure
# printed, the result, the time and the tests of each tier, and the time of all.
#
#   scripts/tiers.sh unit e2e lab
set -uo pipefail

# failures prints the beginning of every failure in a log of gotestsum, and of every
# wrong verdict.
failures() {
	awk '/^(=== FAIL|=== Errors|make.*Error|verdicts:|[0-9]+  (WRONG|LIE) )/ { left = 12 } /^DONE / { left = 0 } left-- > 0' "$1" | head -n 150
}

logs=out/test
mkdir -p "$logs"
report=()
broken=()

for tier in "$@"; do
	echo "== $tier"
	begin=$SECONDS
	if "${MAKE:-make}" --no-print-directory "$tier" 2>&1 | tee "$logs/$tier.log"; then
		result=passed
	else
		result=FAILED
		broken+=("$tier")
	fi
	tests=$(sed -n 's/^DONE //p' "$logs/$tier.log" | paste -sd '+')
	kept=$(grep '^KEPT ' "$logs/$tier.log")
	report+=("$(printf '%-13s %s in %4d s   %s' "$tier" "$result" $((SECONDS - begin)) "${tests//+/ + }${kept:+; $kept}")")
done

for tier in "${broken[@]}"; do
	printf '\n== what failed in %s (all of it is in %s)\n' "$tier" "$logs/$tier.log"
	failures "$logs/$tier.log"
done

printf '\n'
printf '%s\n' "${report[@]}"
echo "tiers: $(($# - ${#broken[@]})) passed, ${#broken[@]} failed, in $((SECONDS / 60)) min $((SECONDS % 60)) s"
((${#broken[@]} == 0))
