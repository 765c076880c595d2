"""The house style, measured: sizes, names, docstrings, and what must not be in the tree."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "salticus"
MODULES = sorted(SOURCE.rglob("*.py"))
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Block = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
)  # fmt: skip


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def functions(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def body_lines(function: Function) -> int:
    """Lines of a function without its head and its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def nesting(node: ast.AST) -> int:
    """How many blocks stand inside one another; an `elif` is no deeper than its `if`."""
    deepest = 0
    for child in ast.iter_child_nodes(node):
        chained = isinstance(node, ast.If) and node.orelse == [child]
        inside = isinstance(child, Block) and not (chained and isinstance(child, ast.If))
        deepest = max(deepest, nesting(child) + inside)
    return deepest


def public(tree: ast.Module) -> Iterator[ast.ClassDef | Function]:
    """The classes and functions that a module shows."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            yield node


def test_the_measures_measure() -> None:
    tree = ast.parse('def f(x):\n  """Doc."""\n  if x:\n    return 1\n  elif y:\n    return 2')
    assert [body_lines(f) for f in functions(tree)] == [4]
    assert nesting(tree) == 2
    assert nesting(ast.parse("if a:\n    if b:\n        c")) == 2


# ------------------------------------------------------------------------------------------- sizes


def test_modules_are_short() -> None:
    lines = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: n for name, n in lines.items() if n > 400} == {}


def test_the_loop_is_one_screen() -> None:
    assert len((SOURCE / "crawl" / "loop.py").read_text("utf-8").splitlines()) <= 110


def test_functions_are_short() -> None:
    assert {where: n for where, n in measured(body_lines) if n > 60} == {}


def test_most_functions_are_very_short() -> None:
    lengths = sorted(n for _, n in measured(body_lines))
    assert lengths[int(0.95 * len(lengths))] <= 35
    assert lengths[len(lengths) // 2] <= 8


def test_code_is_flat() -> None:
    """At most five blocks inside one another in a function, itself not counted."""
    assert {where: n for where, n in measured(nesting) if n > 5} == {}


def measured(measure: Callable[[Function], int]) -> Iterator[tuple[str, int]]:
    """The measure of every function of the package."""
    for path in MODULES:
        for function in functions(tree_of(path)):
            yield f"{name_of(path)}:{function.name}", measure(function)


# ------------------------------------------------------------------------------- names, docstrings


def test_what_is_public_has_a_docstring() -> None:
    bare = []
    for path in MODULES:
        tree = tree_of(path)
        bare += [] if ast.get_docstring(tree) else [name_of(path)]
        silent = (node for node in public(tree) if not ast.get_docstring(node))
        bare += [f"{name_of(path)}:{node.name}" for node in silent]
    assert bare == []


def test_names_say_something() -> None:
    empty = re.compile(r"utils?\b|helpers?\b|managers?\b", re.IGNORECASE)
    names = set()
    for path in MODULES:
        nodes = ast.walk(tree_of(path))
        names |= {node.name for node in nodes if isinstance(node, ast.ClassDef | Function)}
        names |= {path.stem, path.parent.name}
    assert "Loop" in names
    assert {name for name in names if empty.search(name.replace("_", " "))} == set()


# -------------------------------------------------------------------------------------- the picture


def test_files_in_the_architecture_exist() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", ARCHITECTURE.read_text("utf-8")))
    assert len(named) > 20
    absent = sorted(name for name in named - {"allocate/mine.py"} if not (SOURCE / name).is_file())
    assert not absent


def test_layers_in_the_architecture_are_those_of_the_linter() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    text = ARCHITECTURE.read_text("utf-8").partition("## The layers")[2]
    lines = text.split("```")[1].strip().splitlines()
    drawn = [re.match(r"(\w+(?: [|:] \w+)*)(?:\s{2}|$)", line) for line in lines]
    assert [layer and layer[1] for layer in drawn] == layers


def test_every_stage_is_in_the_architecture() -> None:
    text = ARCHITECTURE.read_text("utf-8")
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {name for name in folders if not re.search(rf"\b{name}\b", text)} == set()


# ------------------------------------------------------------------- what must not be in the tree


def tracked() -> Iterator[Path]:
    """Files that belong to the project."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name != ".git")
    for folder in ("src", "tests", "docs", ".ci"):
        found = (path for path in (ROOT / folder).rglob("*") if path.is_file())
        yield from (path for path in found if "__pycache__" not in path.parts)


def test_no_machine_and_no_registry_is_named() -> None:
    places = ("home", "root", "Users", "work", "opt", "var")
    registries = ("pypi", "pythonhosted", "npmjs", "anaconda", "jsdelivr", "unpkg", "cdnjs")
    place = rf"(?<![\w.~$}}/-])/(?:{'|'.join(places)})/\w"
    registry = rf"\b(?:{'|'.join(registries)})\.(?:org|com)"
    forbidden = re.compile(f"{place}|{registry}")
    assert forbidden.search("in /" + "home/me/x")
    assert forbidden.search(f"https://{registries[0]}.org/simple")
    assert not forbidden.search("GET http://a.example/" + "work/x")
    for path in tracked():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found = forbidden.search(text)
        assert found is None, f"{name_of(path)}: {found[0] if found else ''}"
