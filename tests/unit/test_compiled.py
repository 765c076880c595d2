"""Compiled code is kept on disk by the file it is in, so it may call none of another file."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import salticus
from salticus.types.compiled import compiled

ROOT = Path(salticus.__file__).parent
FILES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if "@compiled" in path.read_text() and path.name != "compiled.py"
]


def module_of(path: Path) -> ModuleType:
    name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    return importlib.import_module(name)


def dispatchers(module: ModuleType) -> dict[str, Any]:
    return {name: part for name, part in vars(module).items() if hasattr(part, "py_func")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_compiled_functions_call_none_of_another_file(path: Path) -> None:
    """numba looks at the age of one file only: a change in another would go unnoticed."""
    parts = dispatchers(module_of(path))
    foreign = {name for name, part in parts.items() if part.py_func.__module__ != _name(path)}
    for name, part in parts.items():
        if name not in foreign:
            assert not foreign & set(part.py_func.__code__.co_names), name


def _name(path: Path) -> str:
    return module_of(path).__name__


def test_compiled_code_does_what_the_source_says() -> None:
    def doubled(x: Any) -> Any:
        return x * 2.0

    assert compiled(doubled)(np.array([1.5])).tolist() == [3.0]
