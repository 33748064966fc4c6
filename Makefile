# The whole workflow. Everything is made inside the checkout (.venv, build/), except Apache Kafka's jars for the tests,
# which go to the user's cache. PYTHON chooses the interpreter: make test PYTHON=python3.13

PYTHON ?= python3
# Processes of a test run. Integration tests wait more than they compute, so two cores have time for four.
JOBS   ?= 4

VENV  := .venv
BIN   := $(VENV)/bin
PURE  := build/pure
HOT_TESTS := tests/unit/test_compiled.py tests/unit/records tests/unit/storage tests/unit/protocol tests/unit/broker tests/unit/coordinator tests/unit/network \
    tests/unit/client/producer tests/unit/client/consumer tests/unit/simulation tests/simulation
PYTEST := $(BIN)/pytest -q -n $(JOBS)
CORES = $(shell getconf _NPROCESSORS_ONLN)

# How the hot modules are installed, and so what tests/unit/test_compiled.py expects to find.
FORM  := $(if $(filter 1,$(BARNABAS_PURE)),pure,compiled)

export PYTHON
export BARNABAS_EXPECT := $(FORM)
# With bytecode kept, a process of a test run neither compiles the modules nor rewrites the assertions of 500 test files again.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help run install install-check test check quick lint unit unit-pure suite integration bench crash chaos soak processes throttle quotas console-load moves transactions simulate spark-crash screenshots fuzz fuzz-console attack authorization-matrix secured-clients kafka-metrics kafka protocol clean

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/make \1 \t\2/p' Makefile | expand -t 20

run: $(VENV)/installed  ## Install and run a broker on localhost:9092; the first time uncompiled, while it is compiled for the next
ifeq ($(FORM),pure)
	@$(MAKE) --no-print-directory -s $(VENV)/pure
else
	@rm -f $(VENV)/pure; $(BIN)/python scripts/compile --for-run
endif
	@exec $(BIN)/python scripts/up $(UP)

install: $(VENV)/$(FORM)  ## Make .venv with the barnabas command, compiled, and nothing else

# Lint and the uncompiled half need nothing compiled: they begin at once, and fill the time in which the suite waits for a broker or a JVM.
test: $(VENV)/installed  ## Everything: lint, the hot modules uncompiled, and the whole suite compiled, with Apache Kafka beside it
	@$(MAKE) --no-print-directory -j4 lint-beside unit-pure-beside suite

check: $(VENV)/installed  ## Lint and unit tests: the quick round while working
	@$(MAKE) --no-print-directory -j3 lint-beside unit

# A target beside others: behind them where the cores are busy, and with its output in one piece.
%-beside: $(VENV)/packages
	@mkdir -p build; nice -n 5 $(MAKE) --no-print-directory JOBS=2 $* > build/$*.log 2>&1; code=$$?; echo; cat build/$*.log; exit $$code

suite: $(VENV)/tested kafka
	$(PYTEST) --durations 50 tests

# Uncompiled, so that an edit is tried at once: the sources of the checkout without the compiled libraries. SINCE=main takes in commits.
quick: $(VENV)/packages $(PURE)  ## The unit tests that concern what you changed, uncompiled: make quick SINCE=main
	@$(BIN)/ruff check -q src tests benchmarks setup.py
	@tests=$$($(BIN)/python -m tests.touched $(or $(SINCE),HEAD)) && if [ -z "$$tests" ]; then echo "No unit test concerns this change."; \
	    else PYTHONPATH=$(CURDIR)/$(PURE) BARNABAS_EXPECT=pure $(PYTEST) $$tests; fi

lint: $(VENV)/packages  ## ruff and mypy --strict, over src, tests and benchmarks
	$(BIN)/ruff check src tests benchmarks setup.py
	$(BIN)/ruff format --check src tests benchmarks setup.py
	$(BIN)/mypy --strict

unit: $(VENV)/tested
	$(PYTEST) tests/unit

# The hot modules once more as plain Python: a copy of the sources without the compiled libraries, found first on the path.
unit-pure: $(VENV)/packages $(PURE)
	PYTHONPATH=$(CURDIR)/$(PURE) BARNABAS_EXPECT=pure $(PYTEST) $(HOT_TESTS)

.PHONY: $(PURE)
$(PURE):
	@rm -rf $(PURE) && mkdir -p $(PURE) && tar -C src --exclude '*.so*' -cf - . | tar -C $(PURE) -xf -

integration: $(VENV)/tested kafka
	$(PYTEST) tests/integration

bench: $(VENV)/tested  ## Measure, next to the limit of this machine
	$(BIN)/python -m benchmarks

crash: $(VENV)/tested  ## The slow proof: kill and tear the log thousands of times
	BARNABAS_CRASH_SEEDS=10000 $(PYTEST) --timeout 3600 tests/crash

chaos: $(VENV)/tested kafka  ## 150 faults of a cluster, 100 of them kills, then of broker and clients in transactions: make chaos FAULTS=20 SECONDS=60 SEED=7
	$(BIN)/python -m tests.integration.cluster.chaos --faults $(or $(FAULTS),150) --seed $(or $(SEED),1)
	BARNABAS_CHAOS_SECONDS=$(or $(SECONDS),600) BARNABAS_CHAOS_SEED=$(or $(SEED),1) $(BIN)/pytest -q --timeout 7200 tests/chaos

soak: $(VENV)/plotted  ## A mixed load on three brokers with restarts; memory, descriptors and latencies must stay flat: make soak MINUTES=60
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),60) --plot $(or $(PLOT),docs/soak.png)

processes: $(VENV)/tested  ## Kill a broker process of a machine under load, again and again: make processes KILLS=20
	BARNABAS_PROCESS_KILLS=$(or $(KILLS),20) $(BIN)/pytest -q --timeout 3600 tests/integration/test_processes.py

throttle: $(VENV)/tested kafka  ## A throttled reassignment under load keeps to its rate: make throttle RATE=2000000 MEGABYTES=80
	$(BIN)/python -m tests.integration.cluster.throttle --rate $(or $(RATE),2000000) --megabytes $(or $(MEGABYTES),80)

moves: $(VENV)/tested kafka  ## A broker is added, balanced onto, another drained and stopped, under load: make moves MEGABYTES=2000 RATE=50000000
	$(BIN)/python -m tests.integration.cluster.fourth_broker --megabytes $(or $(MEGABYTES),2000) --rate $(or $(RATE),50000000)

quotas: $(VENV)/tested kafka  ## Client quotas beside those of Apache Kafka, by turns; writes docs/performance.md: make quotas TURNS=5
	$(BIN)/python -m benchmarks quotas --turns $(or $(TURNS),5)

console-load: $(VENV)/tested  ## The console before 10,000 partitions and 100 million records, and its memory; writes docs/performance.md: make console-load MINUTES=60
	$(BIN)/python -m benchmarks console --turns $(or $(TURNS),5) --minutes $(or $(MINUTES),2)

transactions: $(VENV)/tested  ## 16 transactional clients on three brokers, again and again: make transactions RUNS=5
	$(BIN)/python -m tests.integration.cluster.transactions --runs $(or $(RUNS),20)

simulate: $(VENV)/tested  ## A thousand histories of a simulated cluster, 250 of a secured one, 250 with two disks, and 250 with throttles: make simulate SEEDS=40-60
	$(BIN)/python -m barnabas.simulation --seeds $(or $(SEEDS),1-1000) --jobs $(CORES)
	$(BIN)/python -m barnabas.simulation --seeds $(or $(SEEDS),1-250) --jobs $(CORES) --secured
	$(BIN)/python -m barnabas.simulation --seeds $(or $(SEEDS),1-250) --jobs $(CORES) --two-disks
	$(BIN)/python -m barnabas.simulation --seeds $(or $(SEEDS),1-250) --jobs $(CORES) --throttled

spark-crash: $(VENV)/tested kafka  ## Kill driver, executors and broker under an exactly-once stream: make spark-crash KILLS=50 SEED=7
	BARNABAS_SPARK_CRASH_KILLS=$(or $(KILLS),50) BARNABAS_SPARK_CRASH_SEED=$(or $(SEED),1) $(BIN)/pytest -q --timeout 14400 tests/spark_crash

screenshots: $(VENV)/tested kafka  ## Pictures of every page of the console, in both themes and at phone width, to build/screenshots, and those of README.md
	$(BIN)/python -m tests.integration.console.screenshots build/screenshots --readme docs/images

fuzz: $(VENV)/tested  ## 200,000 hostile frames against a broker, before and during SASL too, from a seed: make fuzz SEED=7
	$(BIN)/python -m tests.fuzz --frames 200000 --seed $(or $(SEED),1)

fuzz-console: $(VENV)/tested  ## 50,000 hostile HTTP requests to every route of the console, from a seed: make fuzz-console SEED=7 REQUESTS=200000
	$(BIN)/python -m tests.fuzz.console --requests $(or $(REQUESTS),50000) --seed $(or $(SEED),1)

secured-clients: $(VENV)/tested kafka  ## Play every client over SASL_SSL against Apache Kafka, record what it gets, and compare ours
	$(BIN)/python -m tests.integration.security.clients kafka
	$(BIN)/python -m tests.integration.kerberos.clients.record kafka
	$(PYTEST) tests/integration/security/clients tests/integration/kerberos/clients

authorization-matrix: $(VENV)/tested kafka  ## Play every API with and without ACLs against Apache Kafka, record its answers, and compare ours
	$(BIN)/python -m tests.integration.security.matrix.record
	$(PYTEST) tests/integration/security/matrix

kafka-metrics: $(VENV)/tested kafka  ## Play a workload on Apache Kafka 3.9.1 and 4.2, record the MBeans after it, and compare our metrics
	$(BIN)/python -m tests.integration.metrics.record
	$(PYTEST) tests/integration/metrics

attack: $(VENV)/tested  ## What one client can do to the others, measured: make attack ATTACKS="produce-partitions quiet"
	$(BIN)/python -m tests.attack $(ATTACKS)

install-check: $(VENV)/tested wheels  ## Install a clone, an sdist and the wheels into empty environments, by pip and uv, compiled and pure: minutes
	$(BIN)/python -m tests.install

.PHONY: wheels
wheels: $(VENV)/packaged  ## dist/: an sdist, the wheel of plain Python, and a compiled wheel for each Python 3.11 or newer on the PATH
	$(BIN)/python scripts/wheels $(WHEELS)

# Apache Kafka's own classes, which the integration tests run against ours, and clients that cannot live in .venv.
kafka: $(VENV)/packages
	@scripts/system-packages test
	@$(BIN)/python -m tests.kafka
	@$(BIN)/python -m tests.clients
	@$(BIN)/python -m tests.class_archives

.PHONY: audit
audit: $(VENV)/audited  ## Compare the pinned packages of requirements/ with the known vulnerabilities, by pip-audit and PyPI
	@$(BIN)/python scripts/audit

.PHONY: docs
docs: $(VENV)/documented  ## The documentation site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

protocol: $(VENV)/tested  ## Write the wire codec anew from the message schemas in Apache Kafka's jars
	@scripts/system-packages test
	$(BIN)/python scripts/kafka-schemas
	$(BIN)/python -m barnabas.protocol.generator

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Barnabas needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@scripts/system-packages build
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Bytecode is written when a module is first imported: that of mypy would take longer than all the rest.
$(VENV)/installed: $(VENV)/made requirements/install.txt setup.py pyproject.toml
	$(BIN)/pip install -q --disable-pip-version-check --no-compile -r requirements/install.txt
	BARNABAS_PURE=1 $(BIN)/pip install -q --disable-pip-version-check --no-compile --no-build-isolation --no-deps -e .
	@touch $@

$(VENV)/pure: $(VENV)/installed
	@find src -name '*.so' -delete; rm -f $(VENV)/compiled
	@touch $@

.PHONY: FORCE
# Asks every time: the script compares fingerprints, and leaves the file as it is where nothing is to be compiled.
$(VENV)/compiled: $(VENV)/installed FORCE
	@rm -f $(VENV)/pure; $(BIN)/python scripts/compile

# gssapi has no wheel for Linux: it is compiled, where Kerberos has its headers.
$(VENV)/packages: $(VENV)/installed requirements/ci.txt requirements/gssapi.txt
	@scripts/system-packages unit
	$(BIN)/pip install -q --disable-pip-version-check -r requirements/ci.txt
	@if command -v krb5-config >/dev/null; then $(BIN)/pip install -q --disable-pip-version-check -r requirements/gssapi.txt; \
	    else echo "No krb5-config: GSSAPI is not tested. Install libkrb5-dev, remove $@ and run make again"; fi
	@touch $@

$(VENV)/tested: $(VENV)/$(FORM) $(VENV)/packages
	@touch $@

$(VENV)/packaged: $(VENV)/made requirements/wheels.txt
	$(BIN)/pip install -q --disable-pip-version-check --no-compile -r requirements/wheels.txt
	@touch $@

$(VENV)/audited: $(VENV)/made requirements/audit.txt
	$(BIN)/pip install -q --disable-pip-version-check --no-compile -r requirements/audit.txt
	@touch $@

$(VENV)/plotted: $(VENV)/tested requirements/soak.txt
	@scripts/system-packages test
	$(BIN)/pip install -q --disable-pip-version-check --no-compile -r requirements/soak.txt
	@touch $@

# Nothing is compiled for the site: it reads the sources.
$(VENV)/documented: $(VENV)/made requirements/docs.txt
	$(BIN)/pip install -q --disable-pip-version-check -r requirements/docs.txt
	@touch $@

clean:  ## Remove everything that was made
	@[ ! -e build/compile/lock ] || $(BIN)/python scripts/compile --stop
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .hypothesis
	find src -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
