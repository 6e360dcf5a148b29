# What a person runs, CI runs. `make help` lists the targets.

GO      ?= go
BIN     := bin/landfall
FAULTS  := bin/faults
MODULES := $(shell sed -n 's/^\t\.\/\(.*\)$$/\1/p' go.work)
TOOLS   := $(CURDIR)/.tools
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo development)

STATICCHECK_VERSION := v0.8.2
CYCLONEDX_VERSION   := v1.10.0
GOVULNCHECK_VERSION := v1.9.0

export GOFLAGS := $(filter-out -buildvcs=false,$(GOFLAGS)) -buildvcs=false
export CGO_ENABLED ?= 0

# Compilers, linkers and tests do not live long: they collect their garbage less often, which takes more memory and less time.
build check kafka-test long-test page-test test: export GOGC ?= 400

KAFKA   := $(TOOLS)/kafka/cluster

# How many packages are tested at once. Many tests wait for processes, so it is one more than there are processors.
PACKAGES := $(shell expr `getconf _NPROCESSORS_ONLN` + 1)

# Tests are run with -vet=off: make check vets them, by more rules than go test does.

# Unless tests are chosen (-run), make test finds no ClickHouse, as on a fresh machine: a test that needs one fails unless make long-test runs it.

# The packages that take longest are tested first, so that nothing waits for one of them in the end.
SLOWEST := ./tools/embedded/stack ./services/builder/... ./tools/proof

.DEFAULT_GOAL := help
.PHONY: alerts bazel bench build check clickhouse demo deploy-test faults fuzz generate help hosts-test image image-test kafka-secured-test kafka-start kafka-stop kafka-test kills long-test page page-test preflight sbom test test-all vulnerabilities

alerts: preflight ## Test the alerts and dashboards of deploy in the faults that they are for
	@cd tools/alerts && GOWORK=off $(GO) vet . && GOWORK=off $(GO) test -timeout 10m -parallel 20 $(ARGS) .

bazel: ## Install a Bazel for the tests of its adapter (Debian's package)
	@tools/bazel/install

bench: preflight ## Run the Go benchmarks (BENCH=regexp, COUNT=n)
	@for m in $(MODULES); do echo "== $$m"; (cd $$m && $(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -count $(or $(COUNT),1) ./...) || exit 1; done

build: preflight ## Build the one binary, bin/landfall (RELEASE=1 to deploy it: without the paths of this machine, and compiled anew)
	@echo "building $(BIN)"
	@$(GO) build $(if $(RELEASE),-trimpath) -ldflags "-X main.version=$(VERSION)" -o $(BIN) ./tools/cmd/landfall

check: preflight ## Format, vet, lint, and build each module on its own
	@echo "gofmt"; out=$$(gofmt -l $(MODULES)); if [ -n "$$out" ]; then echo "not formatted (run gofmt -w): $$out"; exit 1; fi
	@echo "go vet"; $(GO) vet $(addsuffix /...,$(addprefix ./,$(MODULES)))
	@echo "each module on its own (go.work hides a missing require)"
	@for m in $(MODULES); do (cd $$m && GOWORK=off $(GO) list -export ./... >/dev/null) || { echo "module $$m does not build alone"; exit 1; }; done
	@tools/lint/run "$(TOOLS)" "$(STATICCHECK_VERSION)" $(MODULES)
	@GO="$(GO)" tools/page/run check "$(TOOLS)"

clickhouse: preflight ## Install the embedded ClickHouse for this user (pinned, from npm; 566 MB)
	@GO="$(GO)" tools/embedded/clickhouse/install

deploy-test: preflight ## Test what deploy has for systemd, compose and Kubernetes
	@cd tools/deploy && GOWORK=off $(GO) vet ./... && GOWORK=off $(GO) test -timeout 10m $(ARGS) .

demo: build ## The main job: a sample monorepo, 40 changes at once, an audited mainline
	@$(BIN) demo

faults: preflight ## The proof, see docs/guides/proof.md (SCHEDULES=n SEED=n SABOTAGE=analysis|models|proposals LEAVE=rule WITHOUT=names TRACE=1)
	@$(GO) build -o $(FAULTS) ./tools/cmd/faults
	@$(FAULTS) -schedules $(or $(SCHEDULES),10000) -seed $(or $(SEED),1) \
		-sabotage "$(SABOTAGE)" -leave "$(LEAVE)" -without "$(WITHOUT)" $(if $(TRACE),-trace)

fuzz: preflight ## Fuzz the parsers of tokens, headers and claims (EXECUTIONS=n for each, FUZZ=name)
	@tools/fuzz/run $(or $(EXECUTIONS),2000000) $(FUZZ)

generate: ## Regenerate events/v1 from schemas (needs protoc)
	@schemas/generate.sh

help: ## Show this help
	@echo "Landfall lands changes on a mainline that is green at every commit."; echo
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

hosts-test: preflight ## Test what people ask for at a code host on a real Gitea (built once, some minutes)
	@tools/gitea/run with tools/gitea/suite $(ARGS)

image: build ## Make the container image, bin/landfall-image.tar, without a daemon (Debian's packages; TAG=name, CLICKHOUSE=folder)
	@cd tools/deploy && GOWORK=off $(GO) run ./image -binary ../../$(BIN) -version "$(VERSION)" -tag "$(or $(TAG),landfall:0.1.0)" \
		-clickhouse "$(CLICKHOUSE)" -output ../../bin/landfall-image.tar

image-test: preflight ## Land a change in the unpacked image (as root; LANDFALL_TEST_IMAGE=required refuses to skip)
	@cd tools/deploy && GOWORK=off $(GO) test -timeout 20m $(ARGS) ./image

kafka-start: ## Start Apache Kafka here (NODES=1 or 3), and say where it listens
	@tools/kafka/run start "$(KAFKA)" $(or $(NODES),1)

kafka-stop: ## Stop that Kafka; its data stays in .tools/kafka/cluster
	@tools/kafka/run stop "$(KAFKA)"

kafka-test: preflight ## Run the log's conformance suite and the end-to-end tests on an Apache Kafka
	@echo "testing on Apache Kafka"
	@tools/kafka/run with tools/kafka/suite $(ARGS)

kafka-secured-test: preflight ## Run every service under its own account on an Apache Kafka with TLS, SCRAM and ACLs
	@tools/kafka/run with-secured tools/kafka/secured $(ARGS)

keycloak-test: preflight ## Test on a real Keycloak who signs in, by browser and command, and what jobs' tokens may do
	@tools/keycloak/run with tools/keycloak/suite $(ARGS)

kills: build ## Kill processes while changes land, and prove the mainline (KILLS=n SEED=n BROKER=kafka)
	@$(BIN) kills --kills $(or $(KILLS),200) --seed $(or $(SEED),1) --broker $(or $(BROKER),embedded)

long-test: bazel clickhouse ## Run the tests that make test leaves: on npm, cargo, pip, Bazel and ClickHouse, of whole deployments, and most of the proof
	@echo "testing on real package managers, build tools and servers (tools/long/tests)"
	@GO="$(GO)" tools/long/run test -vet=off -timeout 30m -p $(PACKAGES) $(ARGS)

page: preflight ## Make the web page's bundle of its sources (needs npm)
	@GO="$(GO)" tools/page/run make "$(TOOLS)"

page-test: preflight ## Test the web page in Chromium, on a landfall up (LOOKS=folder keeps pictures)
	@GO="$(GO)" tools/page/run test "$(TOOLS)" $(ARGS)

preflight:
	@command -v $(GO) >/dev/null || { echo "landfall needs Go 1.26 or newer: https://go.dev/dl"; exit 1; }
	@command -v git >/dev/null || { echo "landfall needs git 2.38 or newer: install the package git"; exit 1; }
	@$(GO) version | grep -qE 'go1\.(2[6-9]|[3-9][0-9])' || { echo "landfall needs Go 1.26 or newer; this is $$($(GO) version)"; exit 1; }

sbom: build ## List what is in the binary, as CycloneDX JSON in bin/landfall.cdx.json
	@GO="$(GO)" tools/supply/run sbom "$(TOOLS)" "$(CYCLONEDX_VERSION)" $(BIN) $(BIN).cdx.json

test: preflight ## The everyday tests (ARGS="-run X -v" to choose): all but those of long-test
	@echo "testing $(MODULES), but for the tests that make long-test runs (tools/long/tests)"
	@skip='$(if $(findstring -run,$(ARGS)),^$$)'; [ -n "$$skip" ] || skip=$$(tools/long/run skip) && \
		$(if $(findstring -run,$(ARGS)),,LANDFALL_CLICKHOUSE_HOME=/nonexistent) $(GO) test -vet=off -timeout 20m -p $(PACKAGES) -skip "$$skip" $(ARGS) $(SLOWEST) $(addsuffix /...,$(addprefix ./,$(MODULES)))

test-all: export LANDFALL_TEST_SLOW := 1
test-all: test long-test kafka-test kafka-secured-test keycloak-test hosts-test alerts deploy-test image-test page-test demo sbom vulnerabilities ## Run all tests: these, on an Apache Kafka and a Gitea too, those of alerts, of deploy, of the web page, and the demo

vulnerabilities: build ## Check the binary for known vulnerabilities (LANDFALL_VULNERABILITY_DB=folder or URL, if vuln.go.dev is out of reach)
	@GO="$(GO)" tools/supply/run vulnerabilities "$(TOOLS)" "$(GOVULNCHECK_VERSION)" $(BIN)
