# Everything a developer runs. `make` alone lists the targets.
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
# A run of the tests starts hundreds of processes; each of them would compile all of Sealane again.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help up setup test quick check lint format sim kill bench proto fuzz build clean

PYTHON ?=
SEEDS ?= 1000
MINUTES ?= 1
ROUNDS ?= 100
DATA ?= ./sealane-data
WORKERS ?= 2
ARGS ?=

BIN := .venv/bin
CODE := hatch_build.py $(foreach folder,src tests bench examples,$(if $(shell find $(folder) -name '*.py' -print -quit 2>/dev/null),$(folder)))

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## (.*)/  make \1\t\2/' | expand -t 16

up: ## run a node from this checkout, its data in DATA=./sealane-data, until Ctrl-C
	@PYTHON='$(PYTHON)' .ci/up --data '$(DATA)' $(ARGS)

setup: ## make .venv with this checkout and all it needs (again only when that changes)
	@PYTHON='$(PYTHON)' .ci/setup

test: lint ## check, then run every test; ARGS="-k words" to choose
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

quick: lint ## the same without what takes long: Spark, fuzzing, kills and simulated seeds
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not slow and not simulation' $(ARGS)

check: lint ## lint, types, and the tests of the architecture
	@$(BIN)/python -m pytest tests/architecture

lint: setup ## ruff and mypy alone
	@$(BIN)/ruff check --quiet --output-format concise $(CODE) || { echo 'make lint: ruff found the above; `make format` mends what it can' >&2; exit 1; }
	@$(BIN)/ruff format --check --quiet $(CODE) || { echo 'make lint: run `make format`' >&2; exit 1; }
	@$(BIN)/mypy --no-error-summary $(CODE) || { echo 'make lint: mypy found the above' >&2; exit 1; }

format: setup ## format the code and mend what ruff can
	@$(BIN)/ruff check --quiet --fix-only $(CODE)
	@$(BIN)/ruff format --quiet $(CODE)

sim: setup ## run the simulator for SEEDS=1000 seeds
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) $(ARGS)

kill: setup ## kill a node under load, ROUNDS=100 times, and see that nothing is lost
	@$(BIN)/python -m tests.kill --rounds $(ROUNDS) $(ARGS)

bench: setup ## measure, beside the peers; results go to bench/results; ARGS="--quick" for a look, "--help" for more
	@$(BIN)/python -m bench $(ARGS)

proto: setup ## make the code of the grpc door anew from its .proto
	@$(BIN)/python -m tests.grpc_code

fuzz: setup ## throw hostile bytes at every decoder, MINUTES=1 each; ARGS="--only tokens" to choose, "--help" for more
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(ARGS)

build: setup ## wheel and source distribution, in dist/
	@$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null && ls dist

clean: ## remove everything that was made here, .venv too
	@rm -rf .venv build dist clients/node/node_modules clients/node/dist clients/node/build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
