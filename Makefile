# One target per purpose; `make help` lists them. Each sees to what it needs: system packages (when
# root on Debian; otherwise it says what is missing) and the virtual environment .venv. A second
# run is quick: what was installed or built leaves a stamp in .venv.
#
#   PYTHON=python3.12 make test     another Python (then `make clean` first)
#   make test ARGS="-k plan"        arguments for pytest, the benchmarks or the demo
PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check \
       --constraint requirements/constraints.txt
NOX := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/nox --no-error-on-missing-interpreters
SOURCES := $(shell find cpp bindings cmake -type f 2>/dev/null) \
           CMakeLists.txt pyproject.toml python/prismaio/__init__.py
export PYTHON

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test soak bench wheel docs lint format types native pytest stubs build clean \
        system-build system-test

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|'

demo: $(VENV)/demo.stamp $(VENV)/package.stamp  ## trains LeNet from slow storage, plainly and through PRISMA (ARGS=--help)
	$(BIN)/prismaio demo $(ARGS)

test: $(VENV)/test.stamp $(VENV)/package.stamp  ## everything that must pass: form, types, C++ and Python tests, wheels
	$(NOX) -s lint types native tests stubs wheel

soak: $(VENV)/test.stamp $(VENV)/package.stamp  ## all trials, from where the last run stopped: ARGS="kill-engine", ARGS=--help
	$(NOX) -s soak -- $(ARGS)

pytest: $(VENV)/test.stamp $(VENV)/package.stamp  ## only the Python tests
	$(NOX) -s tests -- $(ARGS)

native: $(VENV)/test.stamp  ## only the C++ tests: release, asan, tsan
	$(NOX) -s native -- $(ARGS)

bench: $(VENV)/test.stamp $(VENV)/package.stamp  ## the figures, row by row: ARGS="cold-110k", ARGS=--help
	$(NOX) -s bench -- $(ARGS)

wheel: $(VENV)/test.stamp  ## a wheel per Python of this machine, each tried in an empty environment
	$(NOX) -s wheel -- $(ARGS)

docs: $(VENV)/docs.stamp $(VENV)/package.stamp  ## the documentation, into build/docs
	$(NOX) -s docs

lint: $(VENV)/test.stamp  ## form: ruff and clang-format
	$(NOX) -s lint

types: $(VENV)/test.stamp  ## types: mypy --strict
	$(NOX) -s types

format: $(VENV)/test.stamp  ## put all code into form
	$(NOX) -s format

stubs: $(VENV)/test.stamp $(VENV)/package.stamp  ## rewrite python/prismaio/_core.pyi
	$(NOX) -s stubs -- --write

build: $(VENV)/package.stamp  ## the package, installed into .venv as it stands in this folder

clean:  ## remove everything that was made, .venv too
	rm -rf build dist $(VENV) .ruff_cache .pytest_cache python/prismaio/testing/bin

system-build:
	@tools/system_packages.sh build

system-test:
	@tools/system_packages.sh test

$(VENV)/venv.stamp: | system-build
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 10) and \
	  f"PRISMA needs Python 3.10 or newer, and $(PYTHON) is {v[0]}.{v[1]}: PYTHON=... make")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/build.stamp: requirements/build.txt requirements/constraints.txt $(VENV)/venv.stamp
	@echo "installing what the build needs ..."
	@$(PIP) -r requirements/build.txt
	@touch $@

$(VENV)/package.stamp: $(SOURCES) $(VENV)/build.stamp
	@echo "building the package, a minute or two the first time ..."
	@$(PIP) --no-build-isolation --editable .
	@touch $@

$(VENV)/test.stamp: requirements/dev.txt requirements/test.txt $(VENV)/build.stamp | system-test
	@echo "installing what the tests need, PyTorch among it: some minutes the first time ..."
	@$(PIP) -r requirements/dev.txt -r requirements/test.txt
	@touch $@

$(VENV)/demo.stamp: requirements/demo.txt $(VENV)/build.stamp
	@echo "installing what the demo needs, PyTorch among it: some minutes the first time ..."
	@$(PIP) -r requirements/demo.txt
	@touch $@

$(VENV)/docs.stamp: requirements/docs.txt $(VENV)/build.stamp
	@$(PIP) -r requirements/docs.txt
	@touch $@
