# Each target does its own set-up: the virtual environment, the tools, the plugin. When all is there that takes half a second.

# The current one, unless one is named: make up STACK=dev
STACK ?=
# Passed on to pulumi or pytest, such as ARGS=--refresh or ARGS="-k resize".
ARGS ?=
# Tests wait about as much as they compute: three files at once, each whole and in one process, keep two cores busy.
SIDE_BY_SIDE ?= -n 3 --dist loadfile --no-loadscope-reorder
# What only some stacks need, and tests of every kind of stack.
EVERY_STACK := --with kubectl --with pulumi-resource-kubernetes
# Tools that not every machine has, and that tests of what is measured or of clusters elsewhere need.
MEASURING := $(EVERY_STACK) --with observability --with kwok-charts --with helm

# What a change of the core is likely to break, on real control planes.
CORE := tests/unit \
  $(foreach name,bad_input changes faults first_run lifecycle repair,tests/e2e/test_$(name).py) \
  $(foreach name,faults kwok_runtime node_pool resource_slices,tests/integration/test_$(name).py)
# Kind, federations, autoscalers, experiments, other versions of Kubernetes, the pages' commands, samples of soak ...
REST = $(filter-out $(CORE),$(wildcard tests/e2e/test_*.py tests/integration/test_*.py)) tests/soak

BIN := .venv/bin
KUMULUS := ./kumulus

.DEFAULT_GOAL := help
.PHONY: help setup kind-image up preview down test test-rest test-all soak lint bench clean clean-tools

help: ## this list
	@echo "usage: make TARGET [STACK=quickstart] [ARGS=...]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv and the tools of every usual stack, and nothing else
	@$(KUMULUS) venv
	@$(KUMULUS) tools $(EVERY_STACK)

kind-image: ## make and load a node image for the runtime kind, where no image registry is in reach
	@$(KUMULUS) kind-image $(ARGS)

up: ## fetch what is missing, then bring the stack up
	@$(KUMULUS) up "$(STACK)" $(ARGS)

preview: ## fetch what is missing, then show what `make up` would change
	@$(KUMULUS) preview "$(STACK)" $(ARGS)

down: ## destroy what the stack made
	@$(KUMULUS) down "$(STACK)" $(ARGS)

test: ## fetch what is missing, then run the tests of the core
	@$(KUMULUS) venv --dev
	@$(KUMULUS) tools --with kubectl
	@eval "$$($(KUMULUS) env)" && $(BIN)/python -m pytest $(SIDE_BY_SIDE) $(CORE) $(ARGS)

test-rest: ## fetch what is missing, then run all other tests
	@$(KUMULUS) venv --dev
	@$(KUMULUS) tools $(MEASURING)
	@eval "$$($(KUMULUS) env)" && $(BIN)/python -m pytest $(SIDE_BY_SIDE) $(REST) $(ARGS)

test-all: test test-rest ## both

soak: ## fetch what is missing, then try every fault in full, which takes hours
	@$(KUMULUS) venv --dev
	@$(KUMULUS) tools $(EVERY_STACK)
	@eval "$$($(KUMULUS) env)" && $(BIN)/python -m tests.soak $(ARGS)

lint: ## ruff, mypy --strict and import-linter
	@$(KUMULUS) venv --dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: ## fetch what is missing, then measure
	@$(KUMULUS) venv --dev
	@$(KUMULUS) tools $(EVERY_STACK)
	@eval "$$($(KUMULUS) env)" && $(BIN)/python -m benchmarks $(ARGS)

clean: ## remove .venv and caches; refused while a cluster is up
	@$(KUMULUS) clean

clean-tools: ## also remove the tools, which have to be downloaded or built again
	@$(KUMULUS) clean --tools
