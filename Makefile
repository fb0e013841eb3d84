# TApp. `make` alone lists the targets.

SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS     += --no-print-directory

# Nodes of the cluster: NODES real ones, which need Linux and root (NODES=sim: none), and SIM simulated ones. Unset: as the
# cluster is, or 2 and 20.
NODES ?=
SIM   ?=
# Another minor version of Kubernetes, one that has a file in devcluster/kubernetes, for clusters with simulated nodes.
KUBERNETES ?=
OTHER  = $(if $(KUBERNETES),--kubernetes $(KUBERNETES))
SIZE   = $(if $(NODES),--nodes $(NODES)) $(if $(SIM),--sim $(SIM))
# Where the cluster of `make up` and `make demo` has its state.
STATE ?= $(CURDIR)/.devcluster

# What the container image is for. Tests and the demo need no other than this machine's.
PLATFORMS ?= linux/amd64,linux/arm64
HOST       = linux/$(shell go env GOARCH 2>/dev/null)

GO       = 1.26.4
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
TOOL     = go tool -modfile=tools/go.mod
REPORT   = go run ./test/report -count '$(or $(COUNT),dist/count)' -failures '$(or $(FAILURES),dist/failures)'
# How many bytes the program may have on any platform, so that nothing large is linked unnoticed.
LARGEST = 60000000
# Every module of this repository.
MODULES  = . devcluster tools test/chart test/argocd
PACKAGES = ./...

# One way to compile for all that is made here, the programs of the cluster and the image among it: each other way compiles
# Kubernetes' libraries anew, which takes minutes. The race detector has to differ.
export CGO_ENABLED = 0
export GOFLAGS    := $(filter-out -trimpath,$(shell go env GOFLAGS 2>/dev/null)) -trimpath

##@ Use

.PHONY: build
build: need-go ## Build bin/tapp, and bin/kubectl-tapp, which is a link to it.
	@go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/tapp .
	@ln -sf tapp bin/kubectl-tapp

.PHONY: image
image: need-go ## Build dist/tapp-image.tar, the container image for PLATFORMS (without Docker), and dist/tapp-sbom.json.
	@cd tools && go run ./image -source .. -version '$(VERSION)' -revision "$$(git rev-parse HEAD 2>/dev/null || true)" \
	  -platforms '$(PLATFORMS)' -largest $(LARGEST) -archive ../dist/tapp-image.tar -sbom ../dist/tapp-sbom.json

.PHONY: release
release: need-go ## Build all of a release into dist/: the image with its SBOM and licences, the chart and its OCI artifact, SHA256SUMS.
	@cd tools && go run ./image -release -source .. -version '$(VERSION)' -revision "$$(git rev-parse HEAD 2>/dev/null || true)" \
	  -platforms '$(PLATFORMS)' -largest $(LARGEST) -archive ../dist/tapp-image.tar -sbom ../dist/tapp-sbom.json
	@cd dist && sha256sum --check --quiet SHA256SUMS

.PHONY: demo
demo: PLATFORMS = $(HOST)
demo: WITH = --cert-manager
demo: image up ## Start a cluster, install TApp by Helm, and show what it does (first time: 6 to 10 minutes to build Kubernetes).
	@STATE='$(STATE)' bash test/demo/demo.sh

.PHONY: demo-fleet
demo-fleet: build bin/devcluster ## Start a hub and three member clusters, and show one application in all of them.
	@STATE='$(STATE)' bash test/demo/fleet.sh

.PHONY: down-fleet
down-fleet: bin/devcluster ## End the clusters of demo-fleet.
	@STATE='$(STATE)' bash test/demo/fleet.sh down

.PHONY: up
up: bin/devcluster ## Start or repair the cluster: NODES real nodes (or NODES=sim for none), SIM simulated ones.
	@bin/devcluster up --dir '$(STATE)' $(SIZE) $(OTHER) $(WITH)

.PHONY: down
down: bin/devcluster ## End the cluster, and remove its traces.
	@bin/devcluster down --dir '$(STATE)'

.PHONY: status
status: bin/devcluster ## Say how the cluster is.
	@bin/devcluster status --dir '$(STATE)'

##@ Change

.PHONY: generate
generate: need-go ## Generate deepcopy functions and CRDs from the types in crd/, their copies in the chart, the pages of docs/reference, api/openapi.json with docs/api.md, and chart/README.md.
	@crds=$$(mktemp -d); trap "rm -rf '$$crds'" EXIT; \
	  $(TOOL) controller-gen object crd:generateEmbeddedObjectMeta=true paths=./crd/... output:crd:dir="$$crds"; \
	  (cd tools && go run ./crdgen "$$crds"/*.yaml); \
	  rm -f crd/bases/*.yaml chart/files/crds/*.yaml; mv "$$crds"/*.yaml crd/bases/; cp crd/bases/*.yaml chart/files/crds/; \
	  for page in metrics api; do go run ./test/reference $$page >"$$crds"/$$page.md; done; mv "$$crds"/*.md docs/reference/; \
	  go run ./test/reference openapi >"$$crds"/openapi.json; mv "$$crds"/openapi.json api/; go run ./test/reference http >"$$crds"/api.md; mv "$$crds"/api.md docs/; \
	  go run ./test/reference values >"$$crds"/README.md; mv "$$crds"/README.md chart/

.PHONY: verify
verify: generate tidy size lint ## Fail if anything generated, go.mod, go.sum or the formatting is not up to date, or the program is too large.
	@git diff --exit-code || { echo 'verify: the changes above are missing; commit them'; exit 1; }

.PHONY: size
size: build ## Fail if bin/tapp is larger than the program may be.
	@size=$$(wc -c <bin/tapp); [ "$$size" -le $(LARGEST) ] || { echo "size: bin/tapp has $$size bytes, and may have $(LARGEST): go tool nm -size -sort size of a build without -s tells what was linked"; exit 1; }

.PHONY: tidy
tidy: need-go ## Tidy go.mod and go.sum of all modules.
	@for module in $(MODULES); do (cd $$module && go mod tidy); done

.PHONY: lint
lint: need-go ## Run the linters, which encode the conventions of CONTRIBUTING.md.
	@$(TOOL) golangci-lint run ./...
	@cd devcluster && go tool -modfile=../tools/go.mod golangci-lint run --config ../.golangci.yml ./...
	@cd test/chart && go tool -modfile=../../tools/go.mod golangci-lint run --config ../../.golangci.yml ./...
	@cd test/argocd && go tool -modfile=../../tools/go.mod golangci-lint run --config ../../.golangci.yml ./...

.PHONY: fmt
fmt: need-go ## Format the code.
	@$(TOOL) golangci-lint fmt

##@ Test

.PHONY: test
test: need-go need-cc ## Test everything: vet, lint, unit tests, the cluster's own tests, and TApp on a real cluster.
	@bash test/all.sh

.PHONY: vet
vet: need-go ## Run go vet.
	@go vet -tags cluster ./...
	@cd devcluster && go vet ./...
	@cd test/chart && go vet ./...
	@cd test/argocd && go vet ./...

.PHONY: unit
# Tests of memory: of how much a plan allocates, and of what a child process may have.
UNRACED = ./plan/tapp ./helm/engine -run 'TestAllocations|TestBadCharts'
unit: export CGO_ENABLED = 1
unit: need-go need-cc ## Run the unit tests, with the race detector.
	@mkdir -p dist
	@{ go test -json -race -timeout 15m $(PACKAGES) && CGO_ENABLED=0 go test -json $(UNRACED); } | $(REPORT)

.PHONY: model
model: need-go ## Prove what the planner promises in every state of a small model, up to four instances: MODEL='-small' for a part.
	@GOGC=400 go run ./test/model $(MODEL)
	@go test -v -timeout 30m ./test/model/rollout ./test/model/stages -whole

.PHONY: mutants
mutants: need-go ## Measure the tests: each of some hundred wrong edits must fail one (MUTANTS='-only gate' for some).
	@go run ./test/mutants $(MUTANTS)

.PHONY: vulncheck
# Not a tool of tools/go.mod: it would raise the linters' libraries.
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.9.0
vulncheck: need-go ## Look for known vulnerabilities in what is compiled in: needs the Go vulnerability database, or a copy that VULNDB names.
	@go run $(GOVULNCHECK) $(if $(VULNDB),-db $(VULNDB)) $(PACKAGES)

.PHONY: devcluster-test
devcluster-test: need-go ## Run the unit tests of the other modules: the cluster's own, and the tools.
	@mkdir -p dist
	@(cd devcluster && go test -json ./... && cd ../tools && go test -json ./crdgen ./image ./plot) | $(REPORT)

.PHONY: chart-test
chart-test: need-go ## Test the Helm chart, and the health check for Argo CD, without a cluster.
	@mkdir -p dist
	@(cd test/chart && go test -json ./...) | $(REPORT)

.PHONY: argocd-test
argocd-test: need-go ## Ask Argo CD's own code what becomes of claims, without a cluster.
	@mkdir -p dist
	@(cd test/argocd && go test -json ./...) | $(REPORT)

# Which simulation, of the controller of TApps, of Apps (app), of the fleet or of Helm releases (release); how many runs it makes, and from which seed
# on; SEED replays a single one, step by step.
KIND       ?= tapp
RUNS_app   := 500
RUNS_fleet := 1000
RUNS_release := 250
RUNS_tapp  := 4000
SEEDS      ?= $(RUNS_$(KIND))
SEED_START ?= 1
SEED       ?=

.PHONY: sim
sim: need-go ## Simulate the controller under faults: SEEDS runs from SEED_START on; SEED=n replays one; KIND=fleet: a hub and its members; KIND=app: Apps; KIND=release: Helm releases.
	@mkdir -p dist; go test -c -o dist/sim.test ./test/sim$(patsubst %,/%,$(filter fleet app release,$(KIND))); \
	  if [ -n '$(SEED)' ]; then GODEBUG=asyncpreemptoff=1 dist/sim.test -test.run '^TestSeeds$$' -sim.seed '$(SEED)'; \
	  else GODEBUG=asyncpreemptoff=1 dist/sim.test -test.run '^(TestSameAgain|TestCrashPoints)$$' && dist/sim.test -sim.workers "$$(nproc)" -sim.seeds '$(SEEDS)' -sim.start '$(SEED_START)'; fi

.PHONY: sims
sims: ## Simulate all of them for longer than `make test` does: before a change of a planner or a controller is done.
	@$(MAKE) sim SEEDS=10000
	@$(MAKE) sim KIND=app SEEDS=1000
	@$(MAKE) sim KIND=release SEEDS=500
	@$(MAKE) sim KIND=fleet SEEDS=2000

.PHONY: sim-fleet
sim-fleet: ## Simulate the controller of AppSets with a hub and its members under faults.
	@$(MAKE) sim KIND=fleet

.PHONY: sim-app
sim-app: ## Simulate the controller of Apps, with field ownership, under faults.
	@$(MAKE) sim KIND=app

.PHONY: sim-release
sim-release: ## Simulate what carries out Helm releases, with the records that helm reads.
	@$(MAKE) sim KIND=release

.PHONY: shell-test
shell-test: build bin/devcluster ## Test the controller against a real API server that fails, on simulated nodes.
	@$(call on_cluster,shell,--nodes sim,./test/shell/...)

.PHONY: failover-test
failover-test: build bin/devcluster ## Kill and stop processes of TApp in the middle of their work, on simulated nodes.
	@$(call on_cluster,failover,--nodes sim,./test/failover/...)

.PHONY: admission-test
admission-test: need-go bin/devcluster ## Test the webhooks behind a real API server, by what kubectl says, on simulated nodes.
	@$(call on_cluster,admission,--nodes sim,./test/admission/...)

.PHONY: app-test
app-test: need-go bin/devcluster ## Test the kind App, its writes for 500 of them among that, on simulated nodes.
	@$(call on_cluster,app,--nodes sim,./test/app/...)

.PHONY: fleet-test
fleet-test: build bin/devcluster ## Test the fleet: hubs with three and with two member clusters, which have simulated nodes.
	@mkdir -p dist
	@test/fleet.sh '$(STATE)/fleet' 'hub --nodes api' 'member1 --nodes sim --sim 3' 'member2 --nodes sim --sim 3' 'member3 --nodes sim --sim 3' \
	  'second/hub --nodes api' 'second/member1 --nodes sim --sim 3' 'second/member2 --nodes sim --sim 3' -- bash -o pipefail -c "go test -json -tags cluster -count 1 -timeout 40m -parallel 32 $(RUN) ./test/fleet/... | $(REPORT)"

.PHONY: pair-test
pair-test: PLATFORMS = $(HOST)
pair-test: build image bin/devcluster ## Test the fleet as Helm installs it: a hub and a member, each with a real node.
	@mkdir -p dist
	@test/fleet.sh '$(STATE)/pair' 'hub --nodes 1 --sim 0' 'member --nodes 1 --sim 0' -- bash -o pipefail -c "$(foreach name,hub member,bin/devcluster push --dir '$(STATE)/pair/$(name)' dist/tapp-image.tar tapp:test && ) \
	  TAPP_IMAGE=tapp:test go test -json -tags cluster -count 1 -timeout 40m $(RUN) ./test/pair/... | $(REPORT)"

.PHONY: release-test
release-test: build bin/devcluster ## Test charts and releases beside the helm program, with public charts, on simulated nodes.
	@$(call on_cluster,release,--nodes sim --sim 2,-parallel 6 ./test/release/...)

.PHONY: api-test
api-test: need-go bin/devcluster ## Test `tapp api` against a real API server: rights, streams, faults; on simulated nodes.
	@$(call on_cluster,api,--nodes sim --sim 5,./test/api/...)

.PHONY: app-nodes-test
app-nodes-test: need-go bin/devcluster ## Run the examples of the kind App on real nodes.
	@$(call on_cluster,app-nodes,--nodes 2 --sim 0,-run TestExamples ./test/app/...)

.PHONY: plugin-test
plugin-test: build bin/devcluster ## Test kubectl tapp against a real API server and the controller, on simulated nodes.
	@$(call on_cluster,plugin,--nodes sim --sim 5,./test/plugin/...)

.PHONY: page-test
page-test: need-chromium build bin/devcluster ## Test the web page in a real browser, with a hub and a member on simulated nodes. Its pictures are in dist/page.
	@mkdir -p dist
	@test/fleet.sh '$(STATE)/page' 'hub --nodes sim --sim 5' 'member --nodes sim --sim 2' -- bash -o pipefail -c "TAPP_KUBECONFIG='$(STATE)/page/hub/kubeconfig' go test -json -tags cluster -count 1 -timeout 40m $(RUN) ./test/page/... | $(REPORT)"

.PHONY: e2e
e2e: build bin/devcluster ## Test TApp on a cluster of its own, with real nodes, which is taken down at the end.
	@$(call on_cluster,e2e,$(SIZE),./test/e2e/...)

# Those tests of e2e whose pods run on simulated nodes, or nowhere.
SIMULATED = ^(TestBadInput|TestGoodSpecTurnsBad|TestQuota|TestBackoff|TestTenIsMoreThanNine|TestStatusOfABigApp|TestControllerRestartsDuringRollout|TestThousandInstances|TestKillAndStartOne|TestKillAndStartAll|TestScale|TestTemplatePerInstance|TestDeletedPodComesBack|TestHistory|TestAutoDeleteUnusedTemplate|TestOwnerlessPodIsAdopted|TestPodOfAnotherController|TestRelease|TestDelete|TestOrphansAreAdoptedByTheNextOne|TestOrphansOfAnOlderTemplate|TestApplyTwice|TestPaused|TestRecreate|TestPolicyReCreate|TestPolicyInPlaceOnly|TestMetadataChangesRestartNothing|TestForeignMetadataStays|TestPodWithFinalizer|TestForcedUpdatesAreNotRolled|TestRollingTemplateIsSwitchedInMidRollout|TestInPlaceKeepsThePod|TestFailureWhileHeldBack)$$

.PHONY: e2e-sim-test
e2e-sim-test: build bin/devcluster ## Run the tests of e2e that need no kubelet, on simulated nodes.
	@$(call on_cluster,e2e-sim,--nodes sim --sim 22,-run '$(SIMULATED)' ./test/e2e/...)

# Versions of Kubernetes; empty: all that there are.
VERSIONS ?=

.PHONY: test-versions
test-versions: need-go ## Test TApp on each version of Kubernetes that devcluster can build, with simulated nodes (VERSIONS for some).
	@bash test/versions.sh '$(STATE)' $(VERSIONS)

.PHONY: nodes-test
nodes-test: build bin/devcluster ## Lose real nodes, and scale by real load, on a cluster of its own with three of them.
	@$(call on_cluster,nodes,--nodes 3 --sim 0 --node-grace 20s --metrics-server,./test/nodes/...)

.PHONY: install-test
install-test: PLATFORMS = $(HOST)
install-test: build image bin/devcluster ## Test TApp as Helm installs it, on a cluster of its own with cert-manager and real nodes.
	@$(call on_cluster,install,--cert-manager --nodes 2 --sim 1,./test/install/...,bin/devcluster push --dir '$(STATE)/install' dist/tapp-image.tar tapp:test && TAPP_IMAGE=tapp:test )

# The version that an upgrade comes from: a commit, or a tag of a release.
OLD ?= 9b97418

.PHONY: skew-test
skew-test: PLATFORMS = $(HOST)
skew-test: build image bin/devcluster ## Upgrade TApp from the version OLD to this one, and roll back, on a cluster of its own with a real node.
	@rm -rf dist/old && mkdir -p dist/old && git archive '$(OLD)' | tar -x -C dist/old
	@cd dist/old/tools && go run ./image -source .. -version '$(OLD)' -platforms '$(PLATFORMS)' -archive ../dist/tapp-image.tar -sbom ../dist/tapp-sbom.json
	@$(call on_cluster,skew,--nodes 1 --sim 0,./test/skew/...,bin/devcluster push --dir '$(STATE)/skew' dist/old/dist/tapp-image.tar tapp:old && bin/devcluster push --dir '$(STATE)/skew' dist/tapp-image.tar tapp:new && TAPP_OLD_CHART=$(CURDIR)/dist/old/chart TAPP_OLD_TAG=old TAPP_NEW_TAG=new )

.PHONY: certs-test
certs-test: need-go bin/devcluster ## Test certificates of our own against a real API server, while they and their CA change.
	@$(call on_cluster,certs,--nodes sim --sim 0,./test/certs/...)

# $(call on_cluster,NAME,FLAGS,PACKAGES[,FIRST]) tests packages on a cluster of their own. FIRST is put before the command.
define on_cluster
mkdir -p dist
test/cluster.sh '$(STATE)/$(1)' $(2) $(OTHER) -- bash -o pipefail -c "$(4)go test -json -tags cluster -count 1 -timeout 40m $(RUN) $(3) | $(REPORT)"
endef

# What the benchmark has measured, and the page that is made of it.
RECORD ?= docs/performance.json
PAGE   ?= docs/performance.md

.PHONY: bench
bench: build bin/devcluster ## Measure TApp beside StatefulSet and a bare client, and write docs/performance.md (BENCH: which part).
	@mkdir -p dist
	@go build -o dist/bench ./test/bench
	@$(if $(BENCH),,$(MAKE) bench-micro)
	@test/cluster.sh '$(STATE)/bench' --nodes sim $(if $(SIM),--sim $(SIM)) -- dist/bench --record '$(RECORD)' --kubeconfig '$(STATE)/bench/kubeconfig' $(BENCH)
	@$(if $(BENCH),,test/cluster.sh '$(STATE)/bench' --nodes sim -- dist/bench --record '$(RECORD)' --kubeconfig '$(STATE)/bench/kubeconfig' failover)
	@$(if $(BENCH),,test/cluster.sh '$(STATE)/bench' --nodes api -- dist/bench --record '$(RECORD)' --kubeconfig '$(STATE)/bench/kubeconfig' fleet)
	@$(MAKE) bench-report

.PHONY: bench-micro
bench-micro: build ## Measure the planners, admission and the rendering of charts alone (MICRO='-bench 440KB ./plan/release ./helm/engine': which).
	@mkdir -p dist
	@go test -run '^$$' -benchmem $(or $(MICRO),-bench . ./plan/tapp ./plan/rollout ./plan/appset ./plan/release ./webhook/tapp ./helm/engine) | tee dist/bench-micro
	@go run ./test/bench micro --record '$(RECORD)' dist/bench-micro

.PHONY: bench-report
bench-report: need-go ## Write docs/performance.md and its plots from docs/performance.json alone.
	@mkdir -p dist '$(PAGE:.md=)'
	@go run ./test/bench report --record '$(RECORD)' --page '$(PAGE)' --plots dist/plots.json
	@cd tools && go run ./plot ../dist/plots.json '$(abspath $(PAGE:.md=))'

.PHONY: clean
clean: ## Remove what was built here. (The cluster: make down.)
	@rm -rf bin dist

# What is needed, or in one line what is missing.

.PHONY: bin/devcluster
bin/devcluster: need-go
	@cd devcluster && go build -o ../bin/devcluster .

.PHONY: need-go
need-go:
	@command -v go >/dev/null || { echo 'Go is missing: install Go $(GO) or newer (https://go.dev/doc/install), and put it on the PATH' >&2; exit 1; }
	@have=$$(go env GOVERSION 2>/dev/null || GOTOOLCHAIN=local go version | cut -d ' ' -f 3); \
	  [ "$$(printf '%s\n' '$(GO)' "$${have#go}" | sort -V | head -n 1)" = '$(GO)' ] || \
	  { echo "Go is too old: this is $${have#go}, install Go $(GO) or newer (https://go.dev/doc/install)" >&2; exit 1; }

# The race detector needs a C compiler.
.PHONY: need-cc
need-cc:
	@if command -v "$${CC:-gcc}" >/dev/null; then exit 0; fi; \
	  if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	    echo 'A C compiler is missing, which the race detector needs: install gcc and the headers of libc (Debian: apt-get install gcc libc6-dev)' >&2; exit 1; \
	  fi; \
	  echo 'Installing gcc, which the race detector needs'; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends gcc libc6-dev

# The tests of the page run in it.
.PHONY: need-chromium
need-chromium:
	@if command -v chromium >/dev/null; then exit 0; fi; \
	  if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	    echo 'Chromium is missing, in which the page is tested: install it (Debian: apt-get install chromium)' >&2; exit 1; \
	  fi; \
	  echo 'Installing chromium, in which the page is tested'; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' Makefile
	@printf '\nVariables: NODES (a number, or sim), SIM, STATE, RUN (flags of go test for e2e), SEEDS, SEED_START and SEED (sim), BENCH (flags of test/bench)\n'
