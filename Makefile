# Two commands do the main things, each with all of its own set-up:
#   make report   measure this machine, price it, and leave the site in site/
#   make test     lint, types, layers, a strict site build and all tests
# PYTHON=python3.12 chooses the interpreter that the private .venv is made from.

VENV := .venv
BIN := $(VENV)/bin
export PYTHON ?= python3
export NO_MKDOCS_2_WARNING := 1
# Whatever the caller's setting: hundreds of processes would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=
# Two test processes, a file to each: what two files build and keep is built twice, no more.
WORKERS := --numprocesses 2 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help report measure site serve test test-all check check-code check-site format lock models operators schemas screenshots unchanged clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

report: $(VENV)/report.installed  ## measure what is not measured yet, then build the site in site/
	$(BIN)/epochcost run --study starter --resume
	$(BIN)/epochcost build
	@echo "The report: file://$(CURDIR)/site/index.html  (or: make serve)"

measure: $(VENV)/report.installed  ## measure the starter study again from the beginning
	$(BIN)/epochcost run --study starter

site: $(VENV)/report.installed  ## build the site from the results there are
	$(BIN)/epochcost build

serve: $(VENV)/report.installed  ## preview the site, rebuilt when a spec or template changes
	$(BIN)/epochcost serve

test: check  ## checks and tests; 10 to 15 minutes on 2 cores
	$(BIN)/pytest -m "not slow" $(WORKERS)

test-all: check  ## every test, the slow ones too, on examples drawn anew; hours
	$(BIN)/pytest --hypothesis-profile explore $(WORKERS)

# The types and the site take a core each for most of a minute.
check: $(VENV)/dev.installed  ## lint, types, layers, specs, a strict build of the site
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-code check-site

check-code: $(VENV)/dev.installed
	$(BIN)/mypy
	$(BIN)/lint-imports

check-site: $(VENV)/dev.installed
	$(BIN)/epochcost check
	$(BIN)/taplo fmt --check 'specs/**/*.toml'
	$(BIN)/epochcost build --strict --site-dir .cache/check-site

format: $(VENV)/dev.installed  ## format the code and the specs
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/taplo fmt 'specs/**/*.toml'

# One resolution for all: the smaller locks are constrained to the versions of the largest.
LOCK = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
	--python-version 3.11 --custom-compile-command "make lock"
COMPILE = $(LOCK) pyproject.toml --extra build

lock: $(VENV)/dev.installed  ## pin all requirements again, for all platforms
	$(BIN)/pip install --quiet uv
	$(COMPILE) $(UPGRADE) --extra dev -o requirements/dev.txt
	$(COMPILE) --extra run -c requirements/dev.txt -o requirements/run.txt
	$(COMPILE) --extra gpu -c requirements/dev.txt -o requirements/gpu.txt
	$(COMPILE) --extra site -c requirements/dev.txt -o requirements/site.txt
	$(COMPILE) --extra run --extra site -c requirements/dev.txt -o requirements/report.txt

models:  ## export the models again (TORCH_PYTHON: an interpreter with the packages of their headers)
	set -e; for exporter in models/export_*.py; do $(or $(TORCH_PYTHON),uv run) $$exporter; done

operators: $(VENV)/dev.installed  ## write the library's list of operators again from its rules and ONNX's suite
	PYTHONPATH=runner/onnxstep/tests $(BIN)/python -m oracle
	sed 's#(adding-an-operator.md)#(../how-to/add-an-operator.md)#' \
		runner/onnxstep/docs/operators.md > docs/reference/operators.md

schemas: $(VENV)/dev.installed  ## write docs/schemas and the generated pages of docs/reference again from the code
	$(BIN)/epochcost schema --pages docs/reference

screenshots: $(VENV)/dev.installed  ## renew docs/images from the results there are
	$(BIN)/epochcost build --site-dir .cache/screenshots
	$(BIN)/python tests/integration/screenshots.py .cache/screenshots docs/images

unchanged: $(VENV)/dev.installed  ## renew the counts of the models, and the digests that a redesign is held to
	EPOCHCOST_RENEW_UNCHANGED=1 $(BIN)/pytest --quiet tests/models/test_counts.py tests/integration/test_unchanged.py

clean:  ## remove what was built; keeps results
	rm -rf site .cache build dist

$(VENV)/dev.installed: requirements/dev.txt requirements/bootstrap.sh pyproject.toml
	requirements/bootstrap.sh $(VENV) requirements/dev.txt
	requirements/chromium.sh
	touch $(VENV)/report.installed $@

$(VENV)/report.installed: requirements/report.txt requirements/bootstrap.sh pyproject.toml
	requirements/bootstrap.sh $(VENV) requirements/report.txt
	touch $@
