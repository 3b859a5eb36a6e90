#!/usr/bin/env bash
# Checks style: gofumpt, staticcheck, shellcheck and clang-format, of which
# "scripts/setup.sh lint" installs the last two. Runs every check before it fails.
set -uo pipefail

tool() {
	local name=$1
	shift
	go tool -modfile=internal/tools/go.mod "$name" "$@"
}

# Written by hand: generators have their own style.
go_files() {
	git ls-files --cached --others --exclude-standard '*.go' |
		xargs -r grep --files-without-match '^// Code generated '
}

check_gofumpt() {
	local files
	files=$(go_files | xargs -r go tool -modfile=internal/tools/go.mod gofumpt -l) || return 1
	[[ -z $files ]] && return 0
	printf 'gofumpt: not formatted:\n%s\n' "$files" >&2
	return 1
}

require() {
	command -v "$1" >/dev/null && return
	echo "lint: $1 is not installed, $2 not checked: scripts/setup.sh lint installs it" >&2
	return 1
}

# Modules of their own.
check_module() {
	(cd "$1" && go tool -modfile="$OLDPWD/internal/tools/go.mod" staticcheck -tags "${2:-}" ./...)
}

check_shell() {
	require shellcheck "scripts were" || return 1
	git ls-files --cached --others --exclude-standard '*.sh' '*.generator' .ci/run | xargs -r shellcheck
}

check_c() {
	require clang-format-19 "C was" || return 1
	git ls-files --cached --others --exclude-standard '*.c' '*.h' ':!bpf/libbpf' | xargs -r clang-format-19 --dry-run --Werror
}

failed=0
check_gofumpt || failed=1
for tags in '' e2e,lab,guest; do
	tool staticcheck -tags "$tags" ./... || failed=1
done
check_module internal/browser browser || failed=1
check_module internal/e2e backends || failed=1
# As build.sh and make backends compile it, so that nothing is compiled twice.
CGO_ENABLED=0 GOFLAGS=-trimpath check_module internal/e2e/prometheus backends,remove_all_sd || failed=1
check_module internal/documents || failed=1
check_module cmd/rdmaradar || failed=1
check_module internal/packaging image || failed=1
check_shell || failed=1
check_c || failed=1
exit "$failed"
