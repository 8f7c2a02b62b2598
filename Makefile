# The targets that people and .ci/run use. NCCLINIC_NO_SKIP=1 in the environment
# turns tests that skip because something is missing into failures.

GO      ?= go
OUT     ?= bin
FUZZTIME ?= 10s
TESTFLAGS ?= -timeout 30m

# Packages that run commands or read this machine; all others build for js/wasm.
NATIVE = /internal/(run|cli|testenv|collect/node|collect/slurm)$$

.PHONY: build test test-wheels bench lint docs docs-check static wasm fuzz deps clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o $(OUT)/ncclinic ./cmd/ncclinic

deps:
	lab/deps.sh

test: deps
	$(GO) test $(TESTFLAGS) ./...

# Real wheels of many releases and platforms, each in every form and compressor (6 GB of downloads, once; 8 GB of temporary space, an hour).
test-wheels:
	lab/deps.sh morewheels
	NCCLINIC_WHEELS=1 $(GO) test -count=1 -timeout 120m -v -run 'RealWheel|RealForms' ./internal/collect/target ./internal/cli

bench:
	$(GO) test -run '^$$' -bench . -benchmem -timeout 30m ./bench/...

lint:
	@files=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$files" ] || { echo "not gofmt'd: $$files" >&2; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	shellcheck lab/*.sh .ci/run .ci/*.sh

docs:
	UPDATE_GOLDEN=1 $(GO) test -run HeaderIndex ./rules
	$(GO) run ./cmd/ncclinic docs docs

# The committed pages are what the rule files and the command tree say today.
docs-check:
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && $(GO) run ./cmd/ncclinic docs "$$tmp" && \
	for f in "$$tmp"/*; do diff -r "docs/$${f##*/}" "$$f" || { echo "docs/$${f##*/} is out of date: run make docs" >&2; exit 1; }; done

# One file without an interpreter (dynamic loader), for both architectures.
static:
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && for arch in amd64 arm64; do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -o "$$tmp/$$arch" ./cmd/ncclinic || exit 1; \
		readelf -lW "$$tmp/$$arch" >"$$tmp/headers" || exit 1; \
		if grep -E '^ *(INTERP|DYNAMIC) ' "$$tmp/headers"; then echo "$$arch is not static" >&2; exit 1; fi; \
		echo "static: linux/$$arch, $$(wc -c <"$$tmp/$$arch") bytes"; \
	done

wasm:
	GOOS=js GOARCH=wasm $(GO) build $$($(GO) list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' ./internal/... ./rules/... | grep -vE '$(NATIVE)')

fuzz:
	FUZZTIME=$(FUZZTIME) GO=$(GO) .ci/fuzz.sh

clean:
	rm -rf $(OUT)
