# `make demo` and `make test` set up everything they need in .venv; nothing else is touched.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
# How many test files run at once.
JOBS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The machine learning libraries run one thread each: two coders and the sandbox share the cores.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM ?= false

.PHONY: help demo test lint format engine clean

help:
	@echo "make demo    set up, warm up two coders, train them in the tree, print what they learned"
	@echo "make test    set up and run the tests (SLOW=1: the slow ones too; ARGS='-k tree': pytest's)"
	@echo "make lint    ruff and mypy"
	@echo "make format  rewrite the code in the house style"
	@echo "make engine  install and start a Docker engine where none answers (root, Debian)"
	@echo "make clean   remove what make and the tools have written, runs/ excepted"

demo: $(VENV)/.ready-demo
	$(BIN)/mars-envs demo $(ARGS)

test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(if $(SLOW),,-m "not slow") $(ARGS)

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

engine:
	@bash sandbox/image/engine.sh

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"mars-envs needs Python 3.11 or newer, {sys.executable} is {v[0]}.{v[1]}; name another: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

# torch goes first and pinned: asked for by another package, pip may fetch gigabytes of CUDA instead.
$(VENV)/.ready-demo: requirements/demo.txt pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV) (about two minutes the first time) ..."
	$(PIP) "$$(grep '^torch==' requirements/demo.txt)"
	$(PIP) -r requirements/demo.txt
	$(PIP) --no-deps -e .
	@touch $@

$(VENV)/.ready-dev: requirements/dev.txt $(VENV)/.ready-demo
	$(PIP) -r requirements/dev.txt
	@touch $@
