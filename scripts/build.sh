#!/usr/bin/env bash
# Builds bin/otelcol-rdma from builder-config.yaml, and bin/rdmaradar. The module is
# generated anew each time, which is quick; what has not changed is not compiled again.
set -euo pipefail

dist=out/dist
ebpf=github.com/cilium/ebpf

generate() {
	local log=out/dist.log
	go build -C internal/tools -o "$PWD/bin/tools/builder" go.opentelemetry.io/collector/cmd/builder
	if ! bin/tools/builder --config builder-config.yaml --skip-compilation >"$log" 2>&1; then
		cat "$log" >&2
		return 1
	fi
}

# Minimal version selection may lift a dependency above what this module was
# tested with. For the BPF loader that is a change of its own, not a side effect.
check_ebpf_version() {
	local ours theirs
	ours=$(go list -m -f '{{.Version}}' "$ebpf")
	theirs=$(go list -C "$dist" -m -f '{{.Version}}' "$ebpf")
	if [[ $ours != "$theirs" ]]; then
		echo "build: the distribution would use $ebpf $theirs, this module is tested with $ours: raise it in go.mod, or lower the component in builder-config.yaml that asks for it" >&2
		return 1
	fi
}

# The version of the distribution, which its own program is generated with.
version() {
	sed -n 's/^  version: *//p' builder-config.yaml
}

echo "build: bin/otelcol-rdma (some minutes the first time)"
mkdir -p bin/tools "$dist"
generate
check_ebpf_version
CGO_ENABLED=0 go build -C "$dist" -trimpath -ldflags='-s -w' -o "$PWD/bin/otelcol-rdma" .
echo "build: bin/rdmaradar"
CGO_ENABLED=0 go build -C cmd/rdmaradar -trimpath -ldflags="-s -w -X main.version=$(version)" -o "$PWD/bin/rdmaradar" .
