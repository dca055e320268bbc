# make demo    train on the built-in digits, write a report, show a grid
# make test    checks and tests, as CI runs them
# make install the environment alone; make check: ruff, format, pyright; make bench: speed as ratios

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEMO   := runs/demo

.PHONY: demo test check install bench wheel clean
.DEFAULT_GOAL := demo

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "gencaps needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

install: $(STAMP)

demo: $(STAMP)
	@rm -rf $(DEMO)
	@# 8 x 8 pixels: one thread is as fast as several, and far faster on a busy machine
	OMP_NUM_THREADS=1 $(BIN)/gencaps train variational --data digits --out $(DEMO)
	@echo
	$(BIN)/gencaps generate $(DEMO) --n 10
	@$(BIN)/python -m gencaps.cli.demo $(DEMO)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

test: check
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

bench: $(STAMP)
	$(BIN)/python benchmarks/routing.py

wheel: $(STAMP)
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) dist build
