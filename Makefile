# `make help` lists the targets. ARGS is appended to what a target runs, as in
# `make train ARGS='--topology=distributed --num_actors=2'`. TESTS are the folders
# and files that test targets run, as in `make test-third TESTS=tests/agents`.

.DEFAULT_GOAL := help

# What one process has compiled of this package is read by all that follow it:
# tests start hundreds.
unexport PYTHONDONTWRITEBYTECODE

ARGS ?=
TESTS := tests
export VENV ?= .venv
BIN := $(VENV)/bin

# Whether $(VENV) is up to date is told by what is in the files, not by their
# times: .ci/set_up compares, and installs only what has changed.
.PHONY: set-up
set-up:
	@.ci/set_up

# Installs what it needs alone; the other targets add the rest.
.PHONY: train
train: export EXTRAS ?= cpu,gymnasium
train: set-up  ## Train a DQN agent on Catch.
	$(BIN)/repertory train --agent=dqn --env=catch --steps=9000 $(ARGS)

# Three at a time on two cores, for many tests wait most of their time.
.PHONY: test
test: set-up  ## Run the tests, except those of the next two targets.
	$(BIN)/python -m pytest $(TESTS) --numprocesses=3 --dist=worksteal $(ARGS)

.PHONY: test-second
test-second:  ## Run the tests on the second stack, which is Python 3.11's.
	@$(MAKE) test PYTHON=3.11 VENV=.venv311

# Another Python by PYTHON=3.13 VENV=.venv313.
.PHONY: test-third
test-third: PYTHON = 3.12
test-third: VENV = .venv312
test-third:  ## Run the tests on the third stack, which is Python 3.12's and 3.13's.
	@$(MAKE) test PYTHON=$(PYTHON) VENV=$(VENV)

.PHONY: test-learning
test-learning: set-up  ## Run only the tests that train agents.
	$(BIN)/python -m pytest $(TESTS) -m learning \
	  --override-ini=faulthandler_timeout=7200 $(ARGS)

.PHONY: test-chaos
test-chaos: set-up  ## Run only the tests that kill and break things, and rare cases.
	$(BIN)/python -m pytest $(TESTS) -m chaos \
	  --override-ini=faulthandler_timeout=3600 $(ARGS)

# Looked for before gigabytes of CUDA are installed. Python 3.11, whose
# TensorFlow brings them; another environment, for it has other extras.
.PHONY: benchmark-gpu
benchmark-gpu:  ## Measure a GPU beside the CPU; installs CUDA into .venv_gpu.
	@command -v nvidia-smi >/dev/null || { printf '%s\n' \
	  'There is no nvidia-smi here: install the driver of the GPU first.' \
	  'Without a GPU, try it by:' \
	  '  make set-up && $(BIN)/python benchmarks/gpu.py \' \
	  '    --devices=CPU:0,CPU:1 --smallest' >&2; exit 1; }
	@EXTRAS=gpu PYTHON=$${PYTHON:-3.11} VENV=.venv_gpu .ci/set_up
	.venv_gpu/bin/python benchmarks/gpu.py $(ARGS)

.PHONY: lint
lint: set-up  ## Check style, format and types.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

.PHONY: format
format: set-up  ## Format the code and repair what can be repaired safely.
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

.PHONY: docs
docs: set-up  ## Build the documentation into build/docs.
	$(BIN)/python -m sphinx -W docs build/docs $(ARGS)

# For the Python $(1). Keeps the pins that still fit; ARGS=--upgrade renews
# them. Neither hosts nor paths may get into the file.
define lock
uv pip compile setup.cfg --quiet --python-version $(1) \
  --extra cpu --extra dev --extra docs \
  --extra atari --extra box2d --extra bsuite --extra dm-control --extra envpool \
  --extra gymnasium --extra gymnax --extra minatar --extra minigrid --extra ray \
  --extra notebooks --extra plots --extra study --extra video \
  --extra wandb \
  --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
  --output-file $(2) $(ARGS) >build/lock.log
endef

.PHONY: lock
lock: set-up  ## Bring constraints*.txt up to date with setup.cfg; needs uv.
	$(call lock,3.10,constraints.txt)
	$(call lock,3.11,constraints-3.11.txt)
	$(call lock,3.12,constraints-3.12.txt)

.PHONY: clean
clean:  ## Remove what was built; keeps .venv* and runs/.
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache
	find . -path './.venv*' -prune -o -path ./runs -prune -o \
	  -type d -name __pycache__ -prune -exec rm -rf {} +

.PHONY: help
help:  ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*  ## /  make \1\t/p' $(MAKEFILE_LIST) | \
	  expand --tabs=24
