"""Nothing reaches upward, not even through a string that is imported or started later."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import salticus

ROOT = Path(salticus.__file__).parent
SETTINGS = Path(__file__).parents[2] / "pyproject.toml"
NAMED = re.compile(r"salticus(?:\.\w+)+(?::\w+)?")


def ranks() -> dict[str, int]:
    """The height of every folder and module at the top, the lowest layer first."""
    contracts = tomllib.loads(SETTINGS.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    names = [re.split(r"\s*[|:]\s*", layer) for layer in layers]
    return {name: -height for height, layer in enumerate(names) for name in layer}


RANKS = ranks()


def named(source: str) -> Iterator[str]:
    """The folders of ours that strings name, also those of a module that is started: `-m`."""
    for node in ast.walk(ast.parse(source)):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and NAMED.fullmatch(text):
            yield text.split(".")[1].partition(":")[0]
        started = node.elts if isinstance(node, ast.List | ast.Tuple) else ()
        started = node.args if isinstance(node, ast.Call) else started
        words = [each.value if isinstance(each, ast.Constant) else None for each in started]
        if "-m" in words[:-1] and words[words.index("-m") + 1] == "salticus":
            yield "__main__"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('BUILTIN = {"leap": "salticus.allocate.leap:Leap"}', ["allocate"]),
        ('run([python, "-m", "salticus", "train"])', ["__main__"]),
        ('run(python, "-m", "salticus.lab.bench.tick")', ["lab"]),
        ('"""Run `salticus mall`, see salticus.lab.worlds."""', []),
    ],
)
def test_strings_that_name_modules_are_found(source: str, found: list[str]) -> None:
    assert list(named(source)) == found


@pytest.mark.parametrize("folder", sorted(RANKS))
def test_no_string_reaches_upward(folder: str) -> None:
    home = ROOT / folder
    files = sorted(home.rglob("*.py")) if home.is_dir() else [home.with_suffix(".py")]
    upward = [
        f"{file.relative_to(ROOT)} names {name}"
        for file in files
        for name in named(file.read_text("utf-8"))
        if RANKS.get(name, -len(RANKS)) > RANKS[folder]
    ]
    assert not upward
