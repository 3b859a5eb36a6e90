# RDMA radar. `make` alone lists the targets; what takes more than a line or
# two is in scripts/.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

export DEMO_SECONDS ?= 20
export BENCH_SECONDS ?= 500

# gotestsum says in the end what failed and what was skipped, and why.
gotestsum := go tool -modfile=internal/tools/go.mod gotestsum

# Modules of their own whose tests need nothing but Go. They are not cached: go test
# does not see that a file outside of the module changed.
modules := cmd/rdmaradar internal/documents internal/packaging

.PHONY: help demo verdicts verdicts-here verdicts-guest test unit e2e backends browser screenshots lab generate check-generated build packages image bench bench-go lint clean
.PHONY: verbsim check-demo debian-packages setup-bench setup-browser setup-demo setup-generate setup-unit setup-lab setup-lint setup-screenshots

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: check-demo setup-demo build verbsim ## watch slow work requests of a simulated job, live (root; DEMO_SECONDS=20)
	@bin/demo

test: ## run the tiers unit, e2e, backends, browser, lab, verdicts-here and verdicts-guest, and print the time of each (root)
	@LAB_KEEP=1 scripts/tiers.sh build unit e2e backends browser lab verdicts-here verdicts-guest

unit: setup-unit verbsim debian-packages check-generated ## vet, generated files, every package under the race detector, the documents
	go vet ./...
	$(gotestsum) --format pkgname -- -race -timeout 10m ./...
	for module in $(modules); do (cd $$module && go vet ./... && \
		go tool -modfile=$(CURDIR)/internal/tools/go.mod gotestsum --format pkgname -- -race -count 1 -timeout 10m ./...); done

# Two tests of the tracer at a time: most of a start is the kernel verifying programs, and
# the end waits for it to let go of probes. Four at a time are a sixth faster on two CPUs,
# and hold each other up now and then for longer than a test can bear. Those of the receiver
# wait for their collectors more than they work, and are three.
e2e: setup-demo build verbsim ## end to end on this host: simulated verbs workloads, the built collector (root)
	packages=$$(scripts/tagged-packages.sh e2e); failed=0; \
	run() { $(gotestsum) --format testname -- -tags e2e -count 1 -p 1 -timeout 25m "$$@" || failed=1; }; \
	run -parallel 2 $$(grep -v /rdmareceiver <<<"$$packages"); \
	run -parallel 3 $$(grep /rdmareceiver <<<"$$packages"); \
	exit $$failed

backends: setup-demo setup-unit build verbsim image ## the built collector with Jaeger and Prometheus, which are built first; rules and dashboards; the image; the commands of the documents (root)
	@internal/e2e/build.sh
	cd internal/e2e/prometheus && CGO_ENABLED=0 go tool -modfile=../../tools/go.mod gotestsum --format testname -- -trimpath -tags backends,remove_all_sd -count 1 -timeout 20m ./...
	cd internal/e2e && go tool -modfile=../tools/go.mod gotestsum --format testname -- -tags backends -count 1 -p 2 -timeout 20m ./...
	cd internal/packaging && go tool -modfile=../tools/go.mod gotestsum --format testname -- -tags image -count 1 -run TestImageTraces -timeout 5m .
	cd internal/documents && go tool -modfile=../tools/go.mod gotestsum --format testname -- -tags backends -count 1 -run TestCommandsOfTheDocuments -timeout 5m .
	$(gotestsum) --format testname -- -tags backends -count 1 -run TestFirstCommandOfTheReadme -timeout 5m ./internal/demo

browser: setup-browser build verbsim ## the radar page in Chromium; screenshots in out/browser (root)
	@internal/browser/fetch.sh
	cd internal/browser && go tool -modfile=../tools/go.mod gotestsum --format testname -- -tags browser -count 1 -parallel 1 -timeout 20m ./...

screenshots: setup-browser setup-screenshots build verbsim ## take the pictures of the documents anew (root)
	cd internal/browser && go test -tags browser,screenshots -count 1 -parallel 1 -run 'TestIncidentIsSeenAtOnce|TestTopology|TestCauseOfASimulatedJobIsSeen' .
	@scripts/screenshots.sh

# `make test` keeps the results of a kernel while nothing that decides them has changed:
# neither what the guest is given, nor what it boots, nor the tests.
lab: setup-lab packages ## end to end in virtual machines with soft-RoCE (root; LAB_KERNELS=6.1,6.12,newest LAB_RUN=regexp)
	packages=$$(scripts/tagged-packages.sh lab); \
	$(gotestsum) --format testname -- -tags lab -count 1 -p 1 -timeout 65m $$packages
	@cat out/lab/throughput.txt out/lab/kept.txt 2>/dev/null || true

generate: setup-generate ## regenerate BPF objects, their Go bindings and the receiver's metadata
	go generate ./...

check-generated: setup-generate ## fail when a committed generated file differs from what its source gives
	@scripts/check-generated.sh

build: ## build the collector distribution, bin/otelcol-rdma, and the companion command, bin/rdmaradar
	@scripts/build.sh

packages: build ## make a .deb and an .rpm of the collector and of the command, into out/packages
	@go run -C internal/packaging ./cmd/packages -repository "$(CURDIR)" -binaries "$(CURDIR)/bin" -out "$(CURDIR)/out/packages"

image: build ## make the container image, an OCI layout, into out/image
	@go run -C internal/packaging ./cmd/image -repository "$(CURDIR)" -binaries "$(CURDIR)/bin" -out "$(CURDIR)/out/image"

verbsim: setup-demo ## build the simulated verbs provider and workload
	@$(MAKE) --no-print-directory -C internal/verbsim

verdicts: setup-demo setup-lab build verbsim ## make everything go wrong that can, here and with soft-RoCE, and score what is said, into out/verdicts.json (root; VERDICT_RUNS=5 VERDICT_ONLY=regexp)
	@go build -buildvcs=false -o bin/verdicts ./internal/verdicts
	@bin/verdicts

verdicts-here: setup-demo build verbsim ## the part of verdicts that this machine brings about by itself, once, into out/verdicts-here.json (root; VERDICT_RUNS=1)
	@go build -buildvcs=false -o bin/verdicts ./internal/verdicts
	@VERDICT_RUNS=$${VERDICT_RUNS:-1} VERDICT_PLACE=here bin/verdicts

verdicts-guest: setup-demo setup-lab build ## the part of verdicts that is played with soft-RoCE in a virtual machine, once, into out/verdicts-guest.json (root; VERDICT_RUNS=1)
	@go build -buildvcs=false -o bin/verdicts ./internal/verdicts
	@VERDICT_RUNS=$${VERDICT_RUNS:-1} VERDICT_PLACE=guest bin/verdicts

bench: setup-bench build verbsim ## what being observed costs, side by side, into out/bench.json (root; BENCH_SECONDS=500)
	@$(MAKE) --no-print-directory -C internal/bench/loop
	@go build -o bin/bench ./internal/bench
	@bin/bench

bench-go: ## run the Go benchmarks
	go test -run '^$$' -bench . -benchmem ./...

lint: setup-lint ## gofumpt, staticcheck, shellcheck, clang-format
	@scripts/lint.sh

clean: ## remove what was built and what the demo and tests wrote
	rm -rf bin out

check-demo:
	@go build -buildvcs=false -o bin/demo ./internal/demo
	@bin/demo check

# What the tests of internal/provider read.
debian-packages:
	@internal/provider/testdata/fetch.sh

setup-bench setup-browser setup-demo setup-generate setup-unit setup-lab setup-lint setup-screenshots: setup-%:
	@scripts/setup.sh $*
