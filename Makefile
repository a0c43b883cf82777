# The verbs of this project; `make` alone lists them.

SWIFT ?= swift
# An import that Package.swift does not name is an error: this is what holds the layers apart.
CHECKED := --explicit-target-dependency-import-check error
# One release configuration for running, installing and measuring, in a folder of its own, so that it
# is built beside the tests.
RELEASE_PATH ?= .build-release
RELEASE := -c release --static-swift-stdlib $(CHECKED) --scratch-path $(RELEASE_PATH) \
	-Xswiftc -use-ld=lld
# The simulator exports its names: it replaces functions of the C library for libcurl and SQLite, too.
SIMULATOR := $(RELEASE)
# A small program: no exported names, no unwind tables, packed
# relocations, which gold cannot write and glibc before 2.36 cannot read (decision 34).
RELEASE += -Xlinker -z -Xlinker pack-relative-relocs \
	-Xlinker --version-script=$(CURDIR)/Fixtures/link/exports.map \
	-Xlinker -T -Xlinker $(CURDIR)/Fixtures/link/no-unwind.ld
PREFIX ?= /usr/local
UNITDIR ?= $(PREFIX)/lib/systemd/system
FUZZ_SECONDS ?= 60
BENCH_FLAGS ?=
CRASH ?= 300
SECONDS ?= 600
SEED ?= 1
TEST_FLAGS ?=
SEEDS ?= 1000
FRESH ?= 0
FROM ?= 1
HOURS ?=
# How long `make soak` goes on: HOURS=2, or seconds.
SOAK_SECONDS ?= $(if $(HOURS),$(shell echo $$(( $(HOURS) * 3600 ))),7200)
# `all` runs every story under the thread sanitizer, not only those in which threads meet.
TSAN_STORIES ?= threads
PARTS ?=
# Nothing is built twice in CI. Whole modules and no tables of variables take an eighth less processor
# time there; elsewhere a change would compile its module anew. Modules that the compiler of their code
# writes, and not a process of its own, save a tenth more: macros are expanded once.
ifdef CI
CHECKED += -Xswiftc -whole-module-optimization -Xswiftc -num-threads -Xswiftc $(shell nproc) \
	-Xswiftc -gline-tables-only -Xswiftc -no-emit-module-separately-wmo
endif
ASAN := $(CHECKED) --sanitize address --scratch-path .build-asan
TSAN := $(CHECKED) --sanitize thread --scratch-path .build-tsan
# The limit of a test's time counts from where the test is admitted. Most tests block the thread they
# are on, and there is one for each core: without a width all are admitted at once, and those that
# wait for a thread exceed their limits on a slow machine.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH := $(shell nproc)
# What is run under the sanitizer, and nothing else is built for it: the daemon, and the tests of what
# is used by several threads.
tsan-build: export SLUICE_TARGET = Reactor,HTTPServer,Store,Upstream,sluice
TOOLS := Fixtures/tools
PAGES := Sources/sluice/sluice.docc

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup run cluster demo build release release-daemon lab test test-unit options tsan tsan-build asan lint format layers bench secure-bench loops-bench crash cost planted differential differential-peers soak nightly simulator simulate simulate-bulk simulate-coverage instructions instructions-kept fuzz docs install deb deb-test clean ci

help:
	@echo 'setup    install the Debian packages that are missing'
	@echo 'run      build, start the daemon and the sample CDN, print what to play'
	@echo 'cluster  start three daemons behind HAProxy, print what to play'
	@echo 'demo     play the sample twice, the second time without the CDN, and compare'
	@echo 'build    build everything for debugging'
	@echo 'release  build the daemon and the sample CDN for use, below RELEASE_PATH=.build-release'
	@echo 'lab      build sluice-lab, the program of those who tune'
	@echo 'test     run every test'
	@echo 'test-unit  run the tests of one library, as in make test-unit TARGET=HLS'
	@echo 'options  write the page of options from the definitions'
	@echo 'tsan     run the tests of loops, store and scenarios under the thread sanitizer'
	@echo 'asan     run unit tests and stories under the address sanitizer, which also finds leaks'
	@echo 'lint     check style and unproved claims of safety, and print the ten largest types'
	@echo 'format   rewrite the sources in the house style'
	@echo 'layers   build with the import check and print who may import whom'
	@echo 'bench    measure, and print one table (BENCH_FLAGS=--json for machines)'
	@echo 'secure-bench  compare TLS and HTTP/2 to players with nginx and HAProxy'
	@echo 'loops-bench  measure hits with 1, 2, 4 and 8 event loops beside nginx'
	@echo 'crash    kill the daemon and cut its power, CRASH=300 times or CRASH=3600s, and check all bytes'
	@echo 'differential  hold random requests, faults and changes against the origin (SECONDS=600 SEED=1)'
	@echo 'differential-peers  hold a mount against RFC 9111, Varnish and Traffic Server (SECONDS=600 SEED=1)'
	@echo 'soak     use the release daemon in every way for HOURS=2, check all bytes, and fail where it grows'
	@echo 'nightly  sanitizers, fuzzers, simulator, soak, crashes and comparisons, in hours; one table (PARTS=...)'
	@echo 'simulate  run the whole daemon in simulated worlds, SEEDS=1000 of them, or for HOURS=8'
	@echo 'simulate-bulk  simulate a month, a year and a week of few bytes, in which nothing may grow'
	@echo 'simulate-coverage  tell what of the state machines SEEDS=100 worlds never reached'
	@echo 'instructions  count instructions of fixed work, and fail where a path grew by over 3 per cent'
	@echo 'cost     count how the work of parsers and writers grows, and fail where it is over n log n'
	@echo 'planted  plant known faults in a copy, one at a time, and have the simulator find each (NAMES=...)'
	@echo 'instructions-kept  take the counts as the new ones to keep to'
	@echo 'fuzz     fuzz the parsers of what strangers send, FUZZ_SECONDS=60 each'
	@echo 'docs     write the documentation of all layers to .build/docs'
	@echo 'install  install below DESTDIR and PREFIX=/usr/local'
	@echo 'deb      pack Debian packages into .build/deb'
	@echo 'deb-test  install, upgrade, remove and purge the package in a fresh Debian root'
	@echo 'clean    remove what was built'
	@echo 'ci       what a change must pass'

setup:
	@$(TOOLS)/setup all

run:
	@$(TOOLS)/setup play
	@$(MAKE) --no-print-directory release
	@exec $(TOOLS)/run "$$($(SWIFT) build $(RELEASE) --show-bin-path)"

cluster: release
	@exec $(TOOLS)/cluster "$$($(SWIFT) build $(RELEASE) --show-bin-path)"

demo:
	@$(TOOLS)/setup play
	@$(MAKE) --no-print-directory release
	@exec $(TOOLS)/demo "$$($(SWIFT) build $(RELEASE) --show-bin-path)"

build:
	$(SWIFT) build $(CHECKED)

release: release-daemon
	$(SWIFT) build $(RELEASE) --product sample-cdn

# The console's player is where `make setup` put it.
release-daemon:
	$(SWIFT) build $(RELEASE) --product sluice
	@[ $(abspath $(RELEASE_PATH)) = $(CURDIR)/.build ] || ln -sfn $(CURDIR)/.build/players $(RELEASE_PATH)/players

lab:
	$(SWIFT) build $(RELEASE) --product sluice-lab

test:
ifeq ($(TEST_FLAGS),)
	@$(TOOLS)/test $(SWIFT) $(RELEASE_PATH) $(CHECKED)
else
	$(SWIFT) test $(CHECKED) $(TEST_FLAGS)
endif

tsan-build:
	$(SWIFT) build $(TSAN) --build-tests

# One library with what is below it and its tests, in a build of its own: a change of a leaf does not
# build the daemon.
test-unit:
	@test -n "$(TARGET)" -a -d "Tests/$(TARGET)Tests" || \
		{ echo "usage: make test-unit TARGET=HLS; there is no Tests/$(TARGET)Tests" >&2; exit 64; }
	SLUICE_TARGET=$(TARGET) $(SWIFT) test $(CHECKED) --scratch-path .build-unit/$(TARGET) $(TEST_FLAGS)

options: build
	@$(TOOLS)/options .build/debug/sluice $(PAGES)/Using/Options.md >.build/options.md
	@cp .build/options.md $(PAGES)/Using/Options.md

tsan: tsan-build
	$(SWIFT) build $(CHECKED) --build-tests
	@TSAN_STORIES=$(TSAN_STORIES) $(TOOLS)/tsan $(SWIFT) .build .build-tsan

asan:
	@$(TOOLS)/asan $(SWIFT) $(ASAN)

lint:
	@$(TOOLS)/lint $(SWIFT)

format:
	$(SWIFT) format --in-place --parallel --recursive Sources Tests Fixtures/fuzz Package.swift

layers: build
	@$(TOOLS)/layers $(SWIFT)

bench: release lab
	$(SWIFT) build $(RELEASE) --product Bench
	@exec "$$($(SWIFT) build $(RELEASE) --show-bin-path)/Bench" $(BENCH_FLAGS)

loops-bench: release
	@$(TOOLS)/loops-bench "$$($(SWIFT) build $(RELEASE) --show-bin-path)"

secure-bench: release
	@$(TOOLS)/secure-bench "$$($(SWIFT) build $(RELEASE) --show-bin-path)"

crash: build
	@$(TOOLS)/crash $(CRASH)

differential:
	@SLUICE_DIFFERENTIAL_SECONDS=$(SECONDS) SLUICE_DIFFERENTIAL_SEED=$(SEED) \
		$(SWIFT) test $(CHECKED) --filter '^OperationStories\..*DifferentialTests'

differential-peers:
	@PEERS_SECONDS=$(SECONDS) PEERS_SEED=$(SEED) \
		$(SWIFT) test $(CHECKED) --filter '^BenchTests\..*PeerDifferentialTests'

# The daemon is the one that is shipped; the players are those of the tests.
soak: release
	$(SWIFT) build $(CHECKED) --build-tests
	@$(TOOLS)/soak $(SWIFT) "$$($(SWIFT) build $(RELEASE) --show-bin-path)/sluice" $(SOAK_SECONDS)

nightly:
	@$(TOOLS)/nightly $(SWIFT) $(PARTS)

simulator:
	$(SWIFT) build $(SIMULATOR) --product sluice-simulate

simulate: simulator
	@exec "$$($(SWIFT) build $(SIMULATOR) --show-bin-path)/sluice-simulate" \
		$(if $(HOURS),--hours $(HOURS),--from $(FROM) --seeds $(SEEDS) --fresh $(FRESH) \
		--listed Fixtures/simulation/seeds)

simulate-bulk: simulator
	@for span in live-month home-year feeds-week; do \
		"$$($(SWIFT) build $(SIMULATOR) --show-bin-path)/sluice-simulate" --bulk $$span || exit 1; \
	done

simulate-coverage:
	@$(TOOLS)/simulate-coverage $(SWIFT) $(SEEDS)

cost: release
	$(SWIFT) build $(RELEASE) --product Cost
	@$(TOOLS)/cost "$$($(SWIFT) build $(RELEASE) --show-bin-path)"

planted:
	@$(TOOLS)/planted $(SWIFT) $(NAMES)

instructions instructions-kept: release
	@$(TOOLS)/instructions "$$($(SWIFT) build $(RELEASE) --show-bin-path)" \
		$(if $(filter %-kept,$@),--write)

fuzz:
	@$(TOOLS)/fuzz $(FUZZ_SECONDS)

docs:
	@$(TOOLS)/docs $(SWIFT)

install: release lab
	@$(TOOLS)/install "$$($(SWIFT) build $(RELEASE) --show-bin-path)" "$(DESTDIR)" "$(PREFIX)" "$(UNITDIR)"

deb:
	@$(TOOLS)/setup deb
	@$(MAKE) --no-print-directory release
	$(SWIFT) build $(RELEASE) --product generate-manual
	@$(TOOLS)/deb "$$($(SWIFT) build $(RELEASE) --show-bin-path)" .build/deb

deb-test: deb
	@$(TOOLS)/deb-test .build/deb "$$($(SWIFT) build $(RELEASE) --show-bin-path)"

clean:
	rm -rf .build .build-release .build-tsan .build-asan .build-fuzz .build-unit .build-planted .build-coverage

ci:
	@.ci/run
