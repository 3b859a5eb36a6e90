#!/usr/bin/env bash
# Installs what a target needs and the machine lacks, on Debian and its
# relatives. Fast and silent when nothing is missing.
#
#   scripts/setup.sh GROUP...     groups: demo generate unit lab lint bench browser screenshots
set -euo pipefail

# What each group needs, as Debian packages.
packages_of() {
	case $1 in
	demo) echo libibverbs-dev ibverbs-providers ;;
	unit) echo libibverbs-dev ibverbs-providers busybox-static xz-utils zstd systemd rpm bubblewrap jq curl ;;
	generate) echo clang-19 llvm-19 ;;
	lab) echo libibverbs-dev librdmacm-dev qemu-system-x86 mmdebstrap busybox-static kmod cpio xz-utils zstd e2fsprogs ;;
	lint) echo shellcheck clang-format-19 ;;
	bench) echo libibverbs-dev ibverbs-providers bpftrace linux-perf ;;
	browser) echo chromium fonts-dejavu-core "$(command -v npm >/dev/null || echo npm)" ;;
	screenshots) echo pngquant ;;
	*)
		echo "setup: unknown group \"$1\": use demo, generate, unit, lab, lint, bench, browser or screenshots" >&2
		return 2
		;;
	esac
}

# Commands that every target needs and that this script does not install: a
# Go that is too old or missing is for the owner of the machine to choose.
require_commands() {
	local command missing=()
	for command in go gcc make; do
		command -v "$command" >/dev/null || missing+=("$command")
	done
	if ((${#missing[@]} > 0)); then
		echo "setup: not found in PATH: ${missing[*]}; install Go 1.26 or newer (https://go.dev/dl), gcc and make, then run again" >&2
		return 1
	fi
}

installed() {
	[[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

require_apt() {
	if ! command -v apt-get >/dev/null; then
		echo "setup: missing: $*; this system has no apt-get, install their equivalents by hand" >&2
		return 1
	fi
	if ((EUID != 0)); then
		echo "setup: missing: $*; installing needs root: run \"sudo apt-get install $*\", or this target as root" >&2
		return 1
	fi
}

apt_install() {
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 \
		install --yes --no-install-recommends "$@" </dev/null >/dev/null
}

# One that cannot be had keeps apt-get from installing any: then each by itself.
install() {
	local package
	echo "setup: installing $*"
	apt-get -qq -o Acquire::Retries=3 update ||
		echo "setup: apt-get update failed, trying with the package lists at hand" >&2
	apt_install "$@" && return
	for package in "$@"; do
		apt_install "$package" || true
	done
}

main() {
	local group package names list wanted=() missing=() failed=()
	(($# > 0)) || { echo "usage: scripts/setup.sh GROUP..." >&2; return 2; }
	require_commands
	for group in "$@"; do
		names=$(packages_of "$group")
		read -r -a list <<<"$names"
		wanted+=("${list[@]}")
	done
	for package in "${wanted[@]}"; do
		installed "$package" || missing+=("$package")
	done
	((${#missing[@]} > 0)) || return 0

	require_apt "${missing[@]}"
	install "${missing[@]}"
	for package in "${missing[@]}"; do
		installed "$package" || failed+=("$package")
	done
	if ((${#failed[@]} > 0)); then
		echo "setup: could not install: ${failed[*]}; \"apt-get install ${failed[*]}\" shows why" >&2
		return 1
	fi
}

main "$@"
