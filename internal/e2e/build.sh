#!/usr/bin/env bash
# Builds the backends that the tests of this module ask, from their own modules:
# bin/tools/jaeger, bin/tools/prometheus and bin/tools/promtool. What has not
# changed is not built again.
#
#   internal/e2e/build.sh [jaeger] [prometheus] [promtool]
set -euo pipefail
cd "$(dirname "$0")/../.."

# Each has a module to itself: they ask for different versions of what they share.
build() {
	local module=$1 package=$2
	CGO_ENABLED=0 go build -C "internal/e2e/$module" -trimpath -ldflags='-s -w' -tags "${3:-}" \
		-o "$PWD/bin/tools/${package##*/}" "$package"
}

# Prometheus finds nothing by itself here, and the clients of all the clouds are the
# larger part of its build.
prometheus() {
	build prometheus "github.com/prometheus/prometheus/cmd/$1" remove_all_sd
}

(($# > 0)) || set -- jaeger prometheus promtool
echo "build: $* (some minutes the first time)"
mkdir -p bin/tools
for name in "$@"; do
	case $name in
	jaeger) build jaeger github.com/jaegertracing/jaeger/cmd/jaeger ;;
	prometheus | promtool) prometheus "$name" ;;
	*)
		echo "build: unknown backend \"$name\": use jaeger, prometheus or promtool" >&2
		exit 2
		;;
	esac
done
