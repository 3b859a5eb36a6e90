#!/usr/bin/env bash
# Builds the backends that the tests of this module ask, from their own modules:
# bin/tools/jaeger, bin/tools/prometheus, bin/tools/promtool and the gateway's
# collector, bin/tools/gateway. What has not changed is not built again.
#
#   internal/e2e/build.sh [jaeger] [prometheus] [promtool] [gateway]
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

# Generated anew each time, like bin/otelcol-rdma.
gateway() {
	local log=out/gateway.log
	mkdir -p out/gateway
	go build -C internal/tools -o "$PWD/bin/tools/builder" go.opentelemetry.io/collector/cmd/builder
	if ! bin/tools/builder --config internal/e2e/gateway/builder-config.yaml --skip-compilation >"$log" 2>&1; then
		cat "$log" >&2
		return 1
	fi
	CGO_ENABLED=0 go build -C out/gateway -trimpath -ldflags='-s -w' -o "$PWD/bin/tools/gateway" .
}

(($# > 0)) || set -- jaeger prometheus promtool gateway
echo "build: $* (some minutes the first time)"
mkdir -p bin/tools
for name in "$@"; do
	case $name in
	jaeger) build jaeger github.com/jaegertracing/jaeger/cmd/jaeger ;;
	prometheus | promtool) prometheus "$name" ;;
	gateway) gateway ;;
	*)
		echo "build: unknown backend \"$name\": use jaeger, prometheus, promtool or gateway" >&2
		exit 2
		;;
	esac
done
