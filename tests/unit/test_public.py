"""The public face of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import salticus


def test_every_public_name_is_there_and_sorted() -> None:
    assert salticus.__all__ == sorted(salticus.__all__)
    assert all(getattr(salticus, name) for name in salticus.__all__)
    homes = {name for names in salticus._HOMES.values() for name in names}
    assert homes | {"__version__"} == set(salticus.__all__)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="nosuch"):
        _ = salticus.nosuch


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import salticus, sys; print('numpy' in sys.modules or 'aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
