#!/usr/bin/env bash
# Prints the packages that have tests behind a build tag, one a line, and fails
# when there are none: a tier that tests nothing must not pass.
#
#   scripts/tagged-packages.sh e2e
set -euo pipefail

files=$(grep --recursive --files-with-matches --include='*_test.go' \
	--exclude-dir=out --exclude-dir=bin "^//go:build.*\b$1\b" .) || {
	echo "tagged-packages: no test has the build tag \"$1\"" >&2
	exit 1
}
xargs -n 1 dirname <<<"$files" | sort --unique
