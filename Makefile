# Every target is one word; `make` alone lists them.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
BIN := .venv/bin
UNIT := $(BIN)/pytest tests/unit
INTEGRATION := $(BIN)/pytest --numprocesses=2 --dist=loadfile --no-loadscope-reorder tests/integration

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15

.PHONY: setup
setup: ## install what running the lab needs, and make .venv
	@scripts/setup run

.PHONY: develop
develop: ## the same, with what the tests and checks need
	@scripts/setup test

.PHONY: reproduce
reproduce: setup ## measure the default rows; the last line is the report's path
	@$(BIN)/dsbisect reproduce

.PHONY: reproduce-claims
reproduce-claims: setup ## test published claims, each by its experiment; the last line is the page's path
	@UV_PYTHON_DOWNLOADS=never .tools/bin/uv sync --quiet --frozen --inexact --extra load || \
		echo "Locust could not be installed: tool-bottleneck will say so"
	@$(BIN)/dsbisect reproduce --claims --rows published

.PHONY: test
test: develop ## set up, then the checks and the tests that each change needs, as CI does
	@$(MAKE) --jobs=2 --output-sync=target check
	@$(INTEGRATION) -m "not whole"

.PHONY: test-all
test-all: develop ## the same with every test there is: before a change of many parts lands
	@$(MAKE) --jobs=2 --output-sync=target lint types unit-all
	@$(INTEGRATION) --durations=15

.PHONY: check
check: lint types unit ## what takes seconds: run it before each commit

.PHONY: quick
quick: develop ## after a change: rules, types by a daemon, the unit tests of what it touches
	@$(BIN)/ruff check --quiet && $(BIN)/ruff format --check --quiet
	@$(BIN)/dmypy run -- --use-fine-grained-cache & types=$$!; failed=0; \
	tests=$$($(BIN)/python tests/support/touched.py) || failed=1; \
	if [ -n "$$tests" ]; then $(BIN)/pytest --quiet -m "not whole" $$tests || failed=1; fi; \
	wait $$types && exit $$failed

.PHONY: lint
lint: develop ## ruff's rules and format, the order of imports, the tmt plan
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports
	@$(BIN)/tmt --root examples/tmt lint --failed-only --enforce-check C000

.PHONY: types
types: develop ## mypy and pyright
	@$(BIN)/mypy
	@$(BIN)/pyright

.PHONY: unit
unit: develop ## the tests that need no container, as each change needs them
	@$(UNIT) -m "not whole"

.PHONY: unit-all
unit-all: develop ## the same with every case, and more examples of each law
	@$(UNIT)

.PHONY: unit-times
unit-times: develop ## the same, and write how long each file takes, for `make quick`
	@$(UNIT) --quiet --record -m "not whole"

.PHONY: integration
integration: develop ## the tests that run the real thing
	@$(INTEGRATION)

.PHONY: golden
golden: develop ## write the golden files again; look at the difference before a commit
	@DSBISECT_REGEN=1 $(UNIT)

.PHONY: report-picture
report-picture: develop ## take the picture in README.md again; look at it before a commit
	@DSBISECT_PICTURE=docs/report.png $(BIN)/pytest tests/integration/results/test_report_browser.py

.PHONY: examples
examples: develop ## validate the patches in examples/ and write what was found; BENCH=NAME for one
	@$(BIN)/python benchmarks/examples.py $(BENCH)

.PHONY: bench-builds
bench-builds: develop ## time builds against clean ones; BENCH=--bisection
	@$(BIN)/python benchmarks/builds.py $(BENCH)

.PHONY: bench-cli
bench-cli: develop ## how long the command line takes to answer
	@$(BIN)/python benchmarks/cli.py $(BENCH)

.PHONY: bench-harness
bench-harness: develop ## how steady samples and answers are next to a noisy neighbour
	@$(BIN)/python -m benchmarks.harness $(BENCH)

.PHONY: bench-faults
bench-faults: develop ## 60 random kills over real searches; BENCH="--rows 5 --commits 0" for few
	@$(BIN)/python benchmarks/faults.py $(BENCH)

.PHONY: bench-code
bench-code: develop ## how much code, how many words, how heavy the program; BENCH=--commit=REVISION
	@$(BIN)/python benchmarks/code_size.py $(BENCH)

.PHONY: bench-compare
bench-compare: develop ## what `compare` names of made-up loads, and in how many runs; BENCH="--number 100"
	@$(BIN)/python benchmarks/compared_pairs.py $(BENCH)

.PHONY: bench-many
bench-many: develop ## many machines, runs and samples: what steps and pages cost; what machines gain
	@$(BIN)/python -m benchmarks.many $(BENCH)

.PHONY: bench-search
bench-search: develop ## the search against its peers, into docs/; BENCH=--quick for a glance
	@UV_PYTHON_DOWNLOADS=never .tools/bin/uv sync --quiet --frozen --inexact --package dsbisect-search-benchmark
	@$(BIN)/dsbisect-search-benchmark $(BENCH)

.PHONY: bench-upstream
bench-upstream: develop ## known answers in a clone of 389-ds-base: REPO=PATH; BENCH="--only leak"
	@$(BIN)/python benchmarks/upstream.py "$(REPO)" $(BENCH)

.PHONY: bench-workloads
bench-workloads: develop ## each workload over Debian's rows, in one table; BENCH="--only W"
	@$(BIN)/python -m benchmarks.workloads $(BENCH)
.PHONY: bench-planted
bench-planted: develop ## changes planted in a real tree, each named by its load: REPO=PATH
	@$(BIN)/python -m benchmarks.planted "$(REPO)" $(BENCH)

.PHONY: schema
schema: develop ## write the JSON Schemas of matrix.yaml and report.json, and the page of a workload's keys
	@$(BIN)/dsbisect matrix schema >matrix.schema.json.new
	@mv matrix.schema.json.new matrix.schema.json
	@$(BIN)/dsbisect show --schema >docs/report.schema.json.new
	@mv docs/report.schema.json.new docs/report.schema.json
	@DSBISECT_REGEN=1 $(BIN)/pytest --quiet tests/unit/project/test_workload_keys.py

.PHONY: site
site: develop ## the pages as a site in dist/site; a link that leads nowhere is an error
	@UV_PYTHON_DOWNLOADS=never .tools/bin/uv sync --quiet --frozen --inexact --group site
	@scripts/lay-out-site dist/pages
	@$(BIN)/zensical build --clean --strict --config-file mkdocs.yml
	@echo dist/site/index.html

.PHONY: release
release: develop ## packages built twice and equal, SBOM and notes in dist/release; RELEASE="--key KEY.pem --tag"
	@$(MAKE) --jobs=2 --output-sync=target check
	@$(BIN)/python scripts/release.py $(RELEASE)

.PHONY: clean
clean: ## remove what building and testing left in this folder; not results, not images
	@[ ! -e .dmypy.json ] || $(BIN)/dmypy stop || true
	@rm -rf .venv .tools dist .mypy_cache .dmypy.json .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
