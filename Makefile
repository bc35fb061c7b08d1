# All paths are relative, so the clone may live under a path with spaces.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Nothing from the caller's environment may put the source tree in front of the installed wheel.
unexport PYTHONPATH
unexport PYTHONHOME

PYTHON ?= python3
WORKERS ?= 2
PORT ?= 8080
SECONDS ?= 60
ARGS ?=

VENV := .venv
DEMO := .venv-demo
SERVE := .venv-serve
TEST := .venv-test
WHEELS := .build/wheel
PIP := -m pip --disable-pip-version-check --quiet

# Directories are listed too: their time changes when a file is added or removed.
SOURCES := $(shell find src -not -name '*.pyc' -not -name '__pycache__' 2>/dev/null)

.PHONY: help
help: ## Show this list
	@echo "wevent: histograms of an endless stream under personalised w-event privacy"
	@echo
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' \
	  | while IFS='|' read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done
	@echo
	@echo "Variables: PYTHON=$(PYTHON)  WORKERS=$(WORKERS) (parallel test processes)  PORT=$(PORT) (of serve)  SECONDS=$(SECONDS) (of fuzz)  ARGS= (passed on by demo, serve, bench, fuzz, test, soak and audit)"

.PHONY: system
system: ## Check Python, and on Debian as root install python3-venv if it is missing
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "wevent needs Python 3.11 or newer, but '$(PYTHON)' was not found; install it or name another one: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "wevent needs Python 3.11 or newer, but '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1); name another one: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing python3-venv, which '$(PYTHON)' needs to make virtual environments"; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null; \
	  fi; \
	  "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "'$(PYTHON)' cannot make virtual environments; install the venv package that belongs to it (Debian and Ubuntu: sudo apt-get install python3-venv) and run make again." >&2; exit 2; }; }

.PHONY: strace
strace: # Power cuts are replayed from what strace records
	@command -v strace >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing strace, which the fault campaign records runs with"; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    apt-get update -qq && apt-get install -y -qq strace >/dev/null; \
	  fi; \
	  command -v strace >/dev/null || { \
	    echo "The fault campaign needs strace to replay power cuts; install it (Debian and Ubuntu: sudo apt-get install strace) and run make again." >&2; exit 2; }; }

.PHONY: nginx
nginx: # The documented reverse proxy is run for real, and the how-to with curl; no service is started
	@PATH="$$PATH:/usr/sbin"; has_all() { command -v nginx && command -v curl && command -v openssl; } >/dev/null; has_all || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing nginx, curl and openssl, which the tests of the service use"; \
	    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1; \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends nginx curl openssl >/dev/null; \
	  fi; \
	  has_all || { \
	    echo "The tests of the service need nginx, curl and openssl; install them (Debian and Ubuntu: sudo apt-get install nginx curl openssl) and run make again." >&2; exit 2; }; }

.PHONY: chromium
chromium: # The pages of the service are tested in the system's browser
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing Chromium, which the pages of the service are tested in"; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    apt-get update -qq && apt-get install -y -qq chromium >/dev/null; \
	  fi; \
	  command -v chromium >/dev/null || { \
	    echo "The pages of the service are tested in Chromium; install it (Debian: sudo apt-get install chromium) and run make again." >&2; exit 2; }; }

.PHONY: postgresql
postgresql: # The tests start servers of their own; the one that the package would start is not wanted
	@has_server() { ls -d /usr/lib/postgresql/*/bin/initdb || command -v initdb; } >/dev/null 2>&1; has_server || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing PostgreSQL, which shared journals are tested with"; \
	    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1; \
	    mkdir -p /etc/postgresql-common && { [ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf; }; \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql >/dev/null; \
	  fi; \
	  has_server || { \
	    echo "Shared journals are tested with a PostgreSQL server; install it (Debian and Ubuntu: sudo apt-get install postgresql) and run make again." >&2; exit 2; }; }

.PHONY: java
java: # Spark runs on it
	@has_java() { java -version 2>&1 | grep -qE 'version "(17|21)'; }; has_java || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing Java, which Spark runs on"; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    apt-get update -qq && { apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null || apt-get install -y -qq --no-install-recommends openjdk-21-jre-headless >/dev/null; }; \
	  fi; \
	  has_java || { \
	    echo "Spark runs on Java 17 or 21; install it (Debian: sudo apt-get install openjdk-17-jre-headless) and run make again." >&2; exit 2; }; }

.PHONY: setup
setup: $(VENV)/.stamp ## Make .venv: editable install with all extras and the development tools
	@echo "Ready: $(VENV)/bin/wevent --help"

$(VENV)/.stamp: pyproject.toml | system
	@echo "Installing wevent (editable), all extras and development tools into $(VENV)"
	@[ -x $(VENV)/bin/python ] || "$(PYTHON)" -m venv $(VENV)
	@$(VENV)/bin/python $(PIP) install --editable '.[all,dev]'
	@touch $@

$(DEMO)/.stamp: pyproject.toml | system
	@echo "Installing wevent and what the demo needs into $(DEMO)"
	@[ -x $(DEMO)/bin/python ] || "$(PYTHON)" -m venv $(DEMO)
	@$(DEMO)/bin/python $(PIP) install --editable '.[experiments]'
	@touch $@

.PHONY: demo
demo: $(DEMO)/.stamp ## Publish an example stream into demo/, verify it, compare all mechanisms, draw a picture
	@rm -rf demo
	@echo && echo "1. An example stream:  wevent init demo"
	@$(DEMO)/bin/wevent init demo
	@echo && echo "2. Publish it:  wevent publish --config demo/wevent.toml"
	@$(DEMO)/bin/wevent publish --config demo/wevent.toml
	@echo && echo "3. Re-check every window of every user:  wevent verify demo/run.journal"
	@$(DEMO)/bin/wevent verify demo/run.journal
	@echo && echo "4. Every mechanism against the truth of an invented city:  wevent demo --plot demo/demo.png"
	@$(DEMO)/bin/wevent demo --plot demo/demo.png $(ARGS)

$(SERVE)/.stamp: pyproject.toml | system
	@echo "Installing wevent and what the service needs into $(SERVE)"
	@[ -x $(SERVE)/bin/python ] || "$(PYTHON)" -m venv $(SERVE)
	@$(SERVE)/bin/python $(PIP) install --editable '.[client,serve]'
	@touch $@

.PHONY: serve
serve: $(SERVE)/.stamp ## Serve an invented city until Ctrl-C: the page is at http://127.0.0.1:8080/ (PORT= another one)
	@$(SERVE)/bin/python examples/live_city.py --port "$(PORT)" $(ARGS)

# `check` and `test` run the same analysis; the argument is the environment that has the tools.
define static_analysis
	@echo "ruff check" && $(1)/bin/python -m ruff check --quiet .
	@echo "ruff format" && $(1)/bin/python -m ruff format --check --quiet . || { echo "Not formatted; run: $(1)/bin/python -m ruff format ." >&2; exit 1; }
	@echo "mypy --strict" && $(1)/bin/python -m mypy --no-error-summary
	@echo "lint-imports" && { report="$$($(1)/bin/lint-imports 2>&1)" || { echo "$$report" >&2; exit 1; }; }
endef

.PHONY: check
check: $(VENV)/.stamp ## Under a minute: ruff, mypy --strict, import layers, unit tests but the slow ones
	$(call static_analysis,$(VENV))
	@echo "pytest tests/unit" && $(VENV)/bin/python -m pytest tests/unit -q -n $(WORKERS) -m "not slow" $(ARGS)

$(TEST)/.created: pyproject.toml | system
	@echo "Making $(TEST) for the built wheel"
	@[ -x $(TEST)/bin/python ] || "$(PYTHON)" -m venv $(TEST)
	@$(TEST)/bin/python $(PIP) install 'build>=1.2' 'hatchling>=1.27'
	@touch $@

$(WHEELS)/.stamp: $(TEST)/.created $(SOURCES) README.md LICENSE
	@echo "Building the wheel"
	@rm -rf $(WHEELS) && mkdir -p $(WHEELS)
	@$(TEST)/bin/python -m build --wheel --no-isolation --outdir $(WHEELS) . >$(WHEELS)/build.log 2>&1 || { cat $(WHEELS)/build.log >&2; exit 1; }
	@touch $@

# pip keeps an installed wheel of the same version, hence the uninstall.
$(TEST)/.stamp: $(WHEELS)/.stamp
	@echo "Installing the wheel, all extras and development tools into $(TEST)"
	@$(TEST)/bin/python $(PIP) uninstall --yes wevent 2>/dev/null
	@$(TEST)/bin/python $(PIP) install "$$(echo $(WHEELS)/wevent-*.whl)[all,dev]"
	@touch $@

.PHONY: test
test: $(TEST)/.stamp | strace nginx chromium postgresql java ## Everything: build the wheel, install it, analyse, run the whole suite against it
	$(call static_analysis,$(TEST))
	@echo "pytest tests (against the installed wheel)" && WEVENT_EXPECT_INSTALLED=1 $(TEST)/bin/python -m pytest tests -n $(WORKERS) --dist loadgroup $(ARGS)

# Warnings are errors: broken links and anchors, pages that the menu lacks or names in vain.
.PHONY: docs
docs: $(VENV)/.stamp ## Build the documentation as a site into .build/site; it opens from the disk
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs --quiet build --strict
	@echo "Open .build/site/index.html in a browser, or run: make docs-serve"

.PHONY: docs-serve
docs-serve: $(VENV)/.stamp ## Show the documentation at http://127.0.0.1:8090/ (PORT= another one) while it is written
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs serve --strict --dev-addr "127.0.0.1:$(if $(filter 8080,$(PORT)),8090,$(PORT))"

.PHONY: bench
bench: $(VENV)/.stamp ## Measure speed and memory; writes benchmarks/results/
	@$(VENV)/bin/python -m benchmarks $(ARGS)

.PHONY: fuzz
fuzz: $(VENV)/.stamp ## Fuzz every parser, SECONDS= (60) each; ARGS=--keep keeps what reaches more in tests/fuzz/corpus
	@$(VENV)/bin/python -m tests.fuzz --seconds "$(SECONDS)" $(ARGS)

.PHONY: soak
soak: $(VENV)/.stamp | strace postgresql ## Many examples, whole lives, pairs of runs, kills, hostile inputs, mutants; hours
	@HYPOTHESIS_PROFILE=soak $(VENV)/bin/python -m pytest tests/property -n $(WORKERS) $(ARGS)
	@HYPOTHESIS_PROFILE=soak $(VENV)/bin/python -m pytest tests/unit -m hypothesis -n $(WORKERS) $(ARGS)
	@WEVENT_SLOTS=300 $(VENV)/bin/python -m pytest tests/contract -n $(WORKERS) $(ARGS)
	@WEVENT_PAIRS=5000 WEVENT_PAIRS_RESULT=docs/results/neighbouring-runs.json $(VENV)/bin/python -m pytest tests/property/test_neighbouring_runs.py $(ARGS)
	@WEVENT_SERVICE_PAIRS=500 WEVENT_SERVICE_PAIRS_RESULT=docs/results/neighbouring-services.json $(VENV)/bin/python -m pytest tests/service/test_neighbouring_services.py $(ARGS)
	@WEVENT_LIVES=500 $(VENV)/bin/python -m pytest tests/property/test_whole_life.py -n $(WORKERS) $(ARGS)
	@WEVENT_TRANSITION_LIVES=5000 WEVENT_TRANSITION_RESULT=docs/results/transitions.json $(VENV)/bin/python -m pytest tests/property/test_transitions.py $(ARGS)
	@WEVENT_KILLS=1000 WEVENT_SOAK_RESULT=docs/results/soak.json $(VENV)/bin/python -m pytest tests/fault/test_kill.py -k many $(ARGS)
	@WEVENT_SERVICE_KILLS=200 WEVENT_SERVICE_RESULT=docs/results/service-kills.json $(VENV)/bin/python -m pytest tests/service/test_service_kills.py -k load $(ARGS)
	@WEVENT_SPARK_KILLS=20 WEVENT_SPARK_RESULT=docs/results/spark-kills.json $(VENV)/bin/python -m pytest tests/spark/test_kills.py $(ARGS)
	@WEVENT_REPLICA_KILLS=50 WEVENT_REPLICA_RESULT=docs/results/replica-kills.json $(VENV)/bin/python -m pytest tests/postgres/test_replicas.py -k under_load $(ARGS)
	@WEVENT_REPLICA_FAULTS=200 WEVENT_REPLICA_FAULTS_RESULT=docs/results/replica-faults.json $(VENV)/bin/python -m pytest tests/postgres/test_replica_campaign.py $(ARGS)
	@WEVENT_SCHEMA_EXAMPLES=1000 $(VENV)/bin/python -m pytest tests/service/test_service_schema.py $(ARGS)
	@HYPOTHESIS_PROFILE=soak $(VENV)/bin/python -m pytest tests/service/test_service_answers.py $(ARGS)
	@$(VENV)/bin/python -m tests.fault.campaign --number 1000 --jobs $(WORKERS) --out docs/results/campaign
	@$(VENV)/bin/python -m tests.fuzz --seconds 600
	@WEVENT_FUZZ=100000 WEVENT_FUZZ_SEED=$$RANDOM $(VENV)/bin/python -m pytest tests/fault/test_hostile_input.py $(ARGS)
	@$(VENV)/bin/python -m tests.mutation --number 500 --seed 1 --jobs $(WORKERS)

.PHONY: audit
audit: $(VENV)/.stamp ## Audit every mechanism with all its options, count false alarms, look for the bugs of the zoo; writes docs/results/
	@$(VENV)/bin/python -m tests.audits $(ARGS)
	@$(VENV)/bin/python -m tests.zoo --seconds 60 --out docs/results/zoo.md

.PHONY: clean
clean: ## Remove environments, wheels and caches
	@rm -rf $(VENV) $(DEMO) $(SERVE) $(TEST) .build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
