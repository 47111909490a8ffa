# `make demo` runs the main job, `make test` every check and test. Both set up what is missing first.
SHELL := /bin/sh
.DEFAULT_GOAL := help
BIN := .venv/bin
ARGS ?=
export PYTHON ?=
# Tests load in one process what the product keeps apart: CAD kernel, mesher and graph engine together need more room
# for thread-local storage than glibc leaves by default.
export GLIBC_TUNABLES ?= glibc.rtld.optional_static_tls=16384

.PHONY: help demo test check programs faults probes soak fuzz images cases e2e bench eval setup web docs manifests fresh format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## create a bracket, mesh it, solve it and show the stresses, through the server
	@scripts/setup all
	@$(BIN)/metaforge demo $(ARGS)

test: programs check ## every check and every test
	@$(BIN)/python -m pytest -q $(ARGS)

check: setup ## formatting, lint, types, import layers, generated files
	@scripts/check

programs: ## install the real programs (ccx, ngspice, the sandbox), where apt and root are at hand
	@scripts/setup all,dev

real: setup ## only the tests that run real programs
	@$(BIN)/python -m pytest -q -m program $(ARGS)

faults: setup ## ten faults that users of such servers reported, against the running server; ARGS="-k 05" for one
	@$(BIN)/python -m pytest -q tests/faults $(ARGS)

probes: programs ## each limit, by a probe that tries to break it, in each runner, as root and as an ordinary user
	@$(BIN)/python -m pytest -q tests/probes $(ARGS)

soak: setup ## many calls over sessions that vanish, shortened; METAFORGE_SOAK=whole for a million
	@$(BIN)/python -m pytest -q -s tests/soak $(ARGS)

fuzz: setup ## every parser of foreign bytes, guided by coverage; SECONDS=1800 for half an hour each (default 60)
	@METAFORGE_FUZZ_SECONDS=$(or $(SECONDS),60) METAFORGE_FUZZ_FOLDER=.fuzz $(BIN)/python -m pytest -q tests/fuzz $(ARGS)

images: programs ## build every adapter's image and the server's, and try each; IMAGES="spice kicad" for some
	@scripts/images $(IMAGES)
	@METAFORGE_TEST_IMAGES=$(or $(shell echo $(IMAGES) | tr ' ' ','),all) $(BIN)/python -m pytest -q tests/images $(ARGS)

cases: programs ## the shared cases as a table: case, quantity, expected, got, verdict
	@$(BIN)/python -m pytest -q -m cases $(ARGS)

e2e: setup ## other people's clients: Claude Code, Codex, the Inspector, the conformance suite
	@$(BIN)/python -m pytest -q -m e2e $(ARGS)

eval: setup ## how well knowledge search finds what it should and refuses what it should not
	@$(BIN)/python tests/knowledge_eval $(ARGS)

bench: setup ## the figures, as ratios against bare servers
	@$(BIN)/python -m benchmarks $(ARGS)

setup: ## system packages, .venv, the package and the dashboard; quick when nothing is to do
	@scripts/setup all,dev
	@$(BIN)/python -m metaforge.web.frontend --optional

web: ## the dashboard's htmx and 3-D view, from the npm registry
	@scripts/setup all,dev
	@$(BIN)/python -m metaforge.web.frontend

docs: setup ## write docs/reference and the outputs in README from the code
	@$(BIN)/python scripts/write_docs.py $(ARGS)

manifests: setup ## write every adapter's manifest.json from its code
	@$(BIN)/python scripts/write_manifests.py $(ARGS)

fresh: ## prove `make demo` on a bare Debian (root and mmdebstrap needed)
	@scripts/fresh_machine demo

format: setup ## format the code
	@$(BIN)/ruff format && $(BIN)/ruff check --fix

clean: ## remove everything that set-up and runs made in this folder
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .fuzz build dist src/metaforge/web/static/built
