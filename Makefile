# Every target makes its own virtual environment with pip; nothing else is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test soak check bench clean

# The core alone, without extras: what a user installs.
$(VENV)/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/dev: $(VENV)/core
	$(PIP) -e '.[dev]'
	touch $@

demo: $(VENV)/core
	$(BIN)/salticus demo

test: check
	$(BIN)/pytest -m "not soak"

soak: $(VENV)/dev
	$(BIN)/pytest -m soak

check: $(VENV)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev
	$(BIN)/salticus bench fetch
	$(BIN)/salticus bench simulate

clean:
	rm -rf $(VENV) out
