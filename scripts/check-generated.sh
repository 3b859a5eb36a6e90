#!/usr/bin/env bash
# Generates everything anew in a copy of the tree and fails on any difference:
# what is committed must be what the sources and the pinned tools give.
set -euo pipefail

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

tar --create --exclude=./.git --exclude=./bin --exclude=./out . | tar --extract --directory "$copy"
cp -a "$copy" "$copy.before"
trap 'rm -rf "$copy" "$copy.before"' EXIT

"${MAKE:-make}" --no-print-directory -C "$copy" generate

if ! diff --recursive --no-dereference --brief "$copy.before" "$copy"; then
	echo "check-generated: the files above are not what their sources give with $(clang-19 --version | head -n 1): run \"make generate\" and commit the result" >&2
	exit 1
fi
