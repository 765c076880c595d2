# Every target makes its own virtual environment with pip; nothing else is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

PARTS := test-properties test-unit-a-d test-integration test-unit-e-z

.PHONY: demo test $(PARTS) soak check bench browser clean

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

# Three at once: most machines have two cores, and many tests wait. Each speaks when it is done.
# One thread each, because threads that wait for one another spin: with two, training a model in
# one part while others run takes six times the processor time.
$(PARTS) soak: export OMP_NUM_THREADS := 1
$(PARTS) soak: export OPENBLAS_NUM_THREADS := 1
test: $(VENV)/dev browser
	@$(MAKE) --no-print-directory --output-sync=target -j3 $(PARTS) check

test-properties: $(VENV)/dev
	$(BIN)/pytest -m "not soak" tests/property src

test-unit-a-d: $(VENV)/dev
	$(BIN)/pytest -m "not soak" tests/unit/test_[a-d]*.py

test-integration: $(VENV)/dev
	$(BIN)/pytest -m "not soak" tests/integration tests/checks

test-unit-e-z: $(VENV)/dev
	$(BIN)/pytest -m "not soak" tests/unit/test_[e-z]*.py

soak: $(VENV)/dev
	$(BIN)/pytest -m soak

check: $(VENV)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# For the tests of rendering, which are skipped where no browser can be had.
BROWSERS := chromium chromium-browser google-chrome chrome
browser:
	@for name in $(BROWSERS); do command -v $$name > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		(apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium) \
			> /dev/null 2>&1 || echo "no browser could be installed"; \
	else echo "no browser is installed: the tests of rendering will be skipped"; fi

bench: $(VENV)/dev
	$(BIN)/salticus bench fetch
	$(BIN)/salticus bench fetch --mixed
	$(BIN)/salticus bench simulate

clean:
	rm -rf $(VENV) out
