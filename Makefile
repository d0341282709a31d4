# Versions of the tools, and nowhere else. They are run, not required: none of
# them is in go.mod.
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
HUGO        := github.com/gohugoio/hugo@v0.165.0

# Where make site writes the pages.
SITE ?= dist/site

# What is supported: this list, and no other.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

# Where a program that makes ids can be built, besides PLATFORMS, and what it needs.
LIBRARY_PLATFORMS := freebsd/amd64 openbsd/amd64 netbsd/amd64 dragonfly/amd64 solaris/amd64 illumos/amd64 aix/ppc64 \
  android/arm64 plan9/amd64 js/wasm wasip1/wasm
LIBRARY := . ./lease ./pool ./sequence ./document ./public ./store/memory

# How long each fuzz target runs.
FUZZTIME ?= 10s

# How long the torture harms each store. In 7m or more it waits for the ids of a pool that
# was lost, which start about five minutes later.
TORTURE ?= 2m

# How many shards move in the long form of the moves.
MOVES ?= 20

# How many schedules are simulated, and the seed of the first: a long run can be done
# in parts.
N ?= 10000000
FROM ?= 1

# Which packages are tested, and which of their tests; all, where it is not set.
PACKAGES ?=
RUN ?=

# RACE=1 runs each test of make test under the race detector, but what it has no part in.
RACE ?=

# How many packages are tested at once: mostly they wait for servers and clocks.
CORES   := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
AT_ONCE := $(shell echo $$(($(CORES) + 1)))

# What the race detector has no part in, and takes ten times as long with it:
# simulations, plans and pages, each in one goroutine, the test servers, and tests of other processes
# and of the repository.
RACELESS := firn/plan|internal/pagefile|internal/term|internal/block|internal/sim|internal/mutants|internal/testserver|internal/torture|internal/model|internal/moves|internal/repotest|firn/clients

# SQLite is C translated to Go, which takes ten times as long under the detector, and finds nothing of firn's.
DETECTOR := -race -gcflags='modernc.org/...=-race=false'

# What make test runs without it in any case, and make race runs too. These packages start the
# command some thousand times, and a command with the detector takes four times the processor
# time to start; what it runs is tested under the detector in the packages below. These tests
# measure memory, mostly wait for other processes and servers, or have one goroutine and much to do.
CALLERS        := cmd/firn|internal/readme
RACELESS_TESTS := Processes|Year.*|Even|EvenForAYear|EvenOverManyLives|Killed|Aborted|Late|Restarted|Promoted|StandbyBehind|Stalled|IdleMemory|PipelineMemory|StateSet|ChangesThatAreSafe|Story
RACELESS_IN    := $(shell grep -rlE --include=*_test.go '^func Test($(RACELESS_TESTS))\>' . | xargs -n1 dirname | sort -u)
PACKAGES_BUT    = $$(go list ./... | grep -vE '/($(1))(/|$$)')

# What make check tests: what needs no servers, or hardly any.
QUICK := . ./lease ./page ./pool ./sequence ./document ./public/... ./plan ./verify ./store ./store/memory ./client \
  ./server ./server/console ./internal/term ./internal/block ./internal/record ./internal/pagefile ./internal/pageagent ./internal/leash ./internal/nearest \
  ./internal/picture ./internal/configfile ./internal/golden ./internal/version ./internal/shortfile ./internal/trouble ./internal/repotest

# Which versions of PostgreSQL make postgres has tests talk to, and between which shards move then.
VERSIONS := 14 15 16 17 18
PAIRS    := 14-15 14-16 14-17 14-18 15-16 15-17 15-18 16-17 16-18 17-18
# What is moved between two versions.
PAIR_TESTS := ^Test(ShardsUpgrade|ICU|ThereAndBack|QuotedNames|MoveUnderWriters|AlteredMove|VerifyKeys|RefusesPolicies|Hosted.*)$$

# What make full consists of. It can be done in parts, on one commit.
ALL_PARTS := tests race builds copied postgres reached sim fuzz model mutants moves torture
PARTS     ?= $(ALL_PARTS)

# What looks after the servers that tests talk to.
SERVERS := go run ./internal/testserver/servers

SELF   := $(MAKE) # not by its own name in a recipe, else make -n runs it
GOTEST  = go test -p $(AT_ONCE) -timeout 75m

# How make test RACE=1 runs each test: also one that passed before, since its servers are not part of what go test
# remembers. Without vet: make lint has run all of it.
ONCE := -count=1 -vet=off

.DEFAULT_GOAL := help
.PHONY: help build dist cross vet check test raced others race full $(addprefix full-,$(ALL_PARTS)) postgres pairs servers lint fuzz sim mutants reached torture model moves bench bench-server bench-page site fmt tidy clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the command into dist/
	CGO_ENABLED=0 go build -trimpath -o dist/ ./cmd/firn

dist: ## build a static binary for every platform into dist/, with SHA256SUMS
	@rm -f dist/firn_* dist/SHA256SUMS
	@for p in $(PLATFORMS); do \
	  os=$${p%/*}; arch=$${p#*/}; ext=; if [ $$os = windows ]; then ext=.exe; fi; \
	  echo "dist/firn_$${os}_$$arch$$ext"; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch go build -trimpath -buildvcs=auto -ldflags '-s -w' -o dist/firn_$${os}_$$arch$$ext ./cmd/firn || exit 1; \
	done
	@cd dist && { command -v sha256sum >/dev/null && sha256sum firn_* || shasum -a 256 firn_*; } > SHA256SUMS
	@go version -m dist/firn_linux_amd64 | awk '$$1 == "mod" { print "version " $$3 }' # go build takes it from git

cross: ## vet the code for every platform
	@for p in $(PLATFORMS); do \
	  echo "$$p"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go vet -trimpath ./... || exit 1; \
	done
	@for p in $(LIBRARY_PLATFORMS); do \
	  echo "$$p $(LIBRARY)"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -trimpath $(LIBRARY) || exit 1; \
	done

check: vet ## the quick loop, under a minute: formatting, vet, and the tests that need no servers
	go test -short -p $(AT_ONCE) $(QUICK)
	@echo "make test runs the others, on real servers"

test: ## run all tests but the long ones, on real servers where they are or can be installed
	$(SERVERS) run $(if $(RACE),-at-once $(AT_ONCE) $(SELF) --no-print-directory -k -j2 raced others,$(GOTEST) $(if $(RUN),-run '$(RUN)') $(or $(PACKAGES),./...))

# The two groups of make test RACE=1, which run side by side and share the slots of -at-once; together they run
# each test once. In each the package that takes longest comes first.
raced:
	CGO_ENABLED=1 $(GOTEST) $(ONCE) $(DETECTOR) -skip '^Test($(RACELESS_TESTS))$$' ./shard/move $(call PACKAGES_BUT,$(RACELESS)|$(CALLERS))
others:
	@failed=0; \
	$(GOTEST) $(ONCE) ./cmd/firn ./internal/torture/siege $$(go list ./... | grep -E '/($(RACELESS)|$(CALLERS))(/|$$)') || failed=1; \
	$(GOTEST) $(ONCE) -run '^Test($(RACELESS_TESTS))$$' $(RACELESS_IN) || failed=1; \
	exit $$failed

race: ## run the tests under the race detector, also those that make test RACE=1 does not
	CGO_ENABLED=1 $(SERVERS) run $(GOTEST) $(DETECTOR) $(if $(RUN),-run '$(RUN)') $(or $(PACKAGES),$(call PACKAGES_BUT,$(RACELESS)))

full: ## everything, for many hours: the long tests, with and without the race detector, searches, torture; or only PARTS of it
	@failed=; \
	for p in $(PARTS); do \
	  echo "=== $$p: commit $$(git rev-parse --short=8 HEAD), $$(date -u +%F)"; began=$$(date +%s); \
	  $(SELF) --no-print-directory full-$$p || failed="$$failed $$p"; \
	  echo "--- $$p: $$(($$(date +%s) - began)) s"; \
	done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

full-tests:
	FIRN_LONG=1 FIRN_REQUIRE_SERVERS=1 $(SELF) test
full-race:
	FIRN_LONG=1 FIRN_REQUIRE_SERVERS=1 $(SELF) race
full-builds: cross dist
full-copied:
	cd bench && go test ./copied
full-postgres: postgres
full-reached:
	$(SELF) reached N=100000
full-sim: sim
full-fuzz: fuzz
full-model: model
full-mutants: mutants
full-moves: moves
full-torture:
	$(SELF) torture TORTURE=8m

postgres: ## the PostgreSQL store and shards on PostgreSQL 14 to 18, and moves from each to a newer one
	$(SERVERS) postgres
	@failed=; \
	for v in $(VERSIONS); do \
	  echo "== PostgreSQL $$v"; \
	  FIRN_REQUIRE_SERVERS=1 FIRN_TEST_POSTGRES=$$v $(SERVERS) run $(GOTEST) ./store/postgres ./shard/... || failed="$$failed $$v"; \
	done; \
	$(SELF) --no-print-directory pairs || failed="$$failed pairs"; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

pairs: ## moves of shards between the versions PAIRS of PostgreSQL
	@failed=; \
	for p in $(PAIRS); do \
	  echo "== PostgreSQL $$p"; \
	  FIRN_REQUIRE_SERVERS=1 FIRN_TEST_POSTGRES=$$p $(SERVERS) run $(GOTEST) -count=1 -run '$(PAIR_TESTS)' ./shard/move ./cmd/firn || failed="$$failed $$p"; \
	done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

servers: ## install the servers that the tests talk to (Debian, root)
	$(SERVERS) install

vet: ## formatting and vet
	@out=$$(go run $(GOFUMPT) -l .) || exit 1; \
	  if [ -n "$$out" ]; then echo "not formatted (make fmt):"; echo "$$out"; exit 1; fi
	go vet ./...

lint: vet ## formatting, vet, staticcheck, go.mod and go.sum
	go run $(STATICCHECK) ./...
	go mod tidy -diff
	go mod verify

fuzz: ## run every fuzz target for FUZZTIME
	@grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -r -n1 dirname | sort -u | while read -r dir; do \
	  for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | cut -d' ' -f2); do \
	    echo "== $$dir $$target"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; \
	  done || exit 1; \
	done

torture: ## harm to processes and to each store, at random, each for TORTURE
	FIRN_REQUIRE_SERVERS=1 $(SERVERS) run go run ./internal/torture -stores all -for $(TORTURE)

moves: ## move MOVES shards while writers use them, and again with faults
	FIRN_REQUIRE_SERVERS=1 $(SERVERS) run go run ./internal/moves -runs $(MOVES)
	FIRN_REQUIRE_SERVERS=1 $(SERVERS) run go run ./internal/moves -runs $(MOVES) -faults
	FIRN_LONG=1 FIRN_REQUIRE_SERVERS=1 $(SERVERS) run go test -count=1 -timeout 30m -run '^Test(Killed|Aborted|Late)$$' ./shard/move

mutants: ## take each rule out of the real files, and look how soon the simulation finds that
	@mkdir -p docs/proof
	go run ./internal/mutants/run > docs/proof/mutants.md.new; code=$$?; mv docs/proof/mutants.md.new docs/proof/mutants.md; exit $$code

reached: ## what of the machines' statements N simulated schedules do not reach, and should
	go run ./internal/sim/reached -n $(N)

sim: ## simulate N schedules, of the seeds from FROM on, and look for repeats
	go run ./internal/sim/run -n $(N) -from $(FROM)

model: ## search the models of the protocols, long forms too (spin; up to 8 GB)
	FIRN_MODELS=long $(SERVERS) run go test -v -count=1 -timeout 6h -run '^TestModels$$' ./internal/model

bench: ## measure firn beside other generators, about 4 minutes
	cd bench && go run .

bench-server: ## measure firn's servers beside redis-server and net/http (Linux, taskset, redis, wrk)
	cd bench && go run ./server

bench-page: ## measure the clients of the shared page beside a lease in Go (Linux, with gcc and the languages)
	cd bench && go run ./page

site: ## the pages as HTML with a search into dist/site; a browser opens its index.html
	@rm -rf $(SITE)
	CGO_ENABLED=0 go run $(HUGO) --source site --destination $(abspath $(SITE)) --noBuildLock --panicOnWarning --quiet

fmt: ## format all Go files
	go run $(GOFUMPT) -w .

tidy: ## bring go.mod and go.sum up to date
	go mod tidy

clean: ## remove what build and tests leave behind
	rm -rf dist
	$(SERVERS) clean
	go clean -testcache
