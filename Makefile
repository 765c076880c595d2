# Every target makes its own virtual environment with pip; nothing else is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test laws tests soak check bench browser clean

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

# Tests start hundreds of processes, each of which would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE

test: $(VENV)/dev browser
	@$(MAKE) --no-print-directory -j2 check tests

# Threads that wait for one another spin, where there are fewer cores than tests.
laws tests soak: export OMP_NUM_THREADS := 1
laws tests soak: export OPENBLAS_NUM_THREADS := 1

# First, in one process: they compile to machine code what the others load then.
laws: $(VENV)/dev
	$(BIN)/pytest -m "not soak" tests/checks src

# More at once than most machines have cores, because many tests wait. In the order in which they
# are collected: by default files of few tests come last, and those take long.
tests: laws
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not soak" tests/integration tests/property tests/unit

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
