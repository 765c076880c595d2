"""The docs are true: their commands run, their links lead somewhere, nothing is left out."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import re
import runpy
import shlex
import signal
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl
import pytest
from typer.main import get_command

from salticus import allocate, checks, config, extract, predict, schedule, store
from salticus.allocate import gate
from salticus.cli import app
from salticus.exchange.write import export_log
from salticus.store.sqlite.store import SqliteStore
from salticus.types import Purpose, Status

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")])
REFERENCE = DOCS / "reference"
MARK = "@@@"


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    return [Block(language, text) for language, text in found]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


# ------------------------------------------------------------------------- what the docs say is run


class Step(NamedTuple):
    """A piece of a page's script, and the lines that must appear in its output, in this order.

    A step whose first line is an error of ours must exit with 2, all others with 0.
    """

    script: str
    expected: list[str]

    @property
    def code(self) -> int:
        return 2 if self.expected and self.expected[0].startswith("salticus: ") else 0


PATIENCE_S = 900.0  # for a whole page; only one that hangs takes so long

Run = Future[list[tuple[Step, int, str]]]


def steps(page: Path) -> Iterator[Step]:
    """The console and Python blocks of a page; a Python block that begins with a file's name is
    saved under that name."""
    for block in blocks(page):
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
                command, *expected = part.splitlines()
                yield Step(command, [line for line in expected if line.strip()])
        elif block.language == "python":
            name = re.match(r"# (\w+\.py)\n", block.text)
            where = f"cat > {name[1]}" if name else "python -W error"
            yield Step(f"{where} <<'{MARK}'\n{block.text}{MARK}", [])


def run(page: Path, folder: Path, salticus: Path) -> list[tuple[Step, int, str]]:
    """Run a page from top to bottom in one shell: each step, its exit code and its output."""
    todo = list(steps(page))
    script = "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n"
    script += "".join(f"{step.script}\necho {MARK} $?\n" for step in todo)
    places = (salticus.parent, Path(sys.executable).parent, os.environ["PATH"])
    path = os.pathsep.join(map(str, places))
    shell = subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        stdout, _ = shell.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)  # what a page started in the background too
        stdout, _ = shell.communicate()
    parts = re.split(rf"^{MARK} (\d+)\n", stdout, flags=re.M)
    assert len(parts) == 2 * len(todo) + 1, stdout
    ends = zip(todo, parts[::2], parts[1::2], strict=False)
    return [(step, int(code), output) for step, output, code in ends]


RUNNABLE = [page for page in PAGES if any(steps(page))]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, warm: Path) -> Iterator[dict[Path, Run]]:
    """All pages at once: most of their time is spent waiting."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        folders = [tmp_path_factory.mktemp(page.stem) for page in RUNNABLE]
        pairs = zip(RUNNABLE, folders, strict=True)
        yield {page: pool.submit(run, page, folder, warm) for page, folder in pairs}


def pattern(line: str) -> str:
    """Numbers stand for any number, runs of blanks for one another, `...` for anything.

    Our errors are compared to the letter.
    """
    text = re.escape(" ".join(line.split())).replace(re.escape("..."), ".*")
    return text if line.startswith("salticus: ") else re.sub(r"\d+", r"\\d+", text)


def test_a_pattern_takes_other_numbers_but_no_other_words() -> None:
    assert re.search(pattern("visits   32"), "the visits 7")
    assert re.search(pattern("a ... c"), "a 3 c")
    assert not re.search(pattern("visits 32"), "visit 32")
    assert not re.search(pattern("visits 32"), "visits x")
    assert not re.search(pattern("salticus: 4 visits"), "salticus: 3 visits")


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_the_examples_of_a_page_run(page: Path, runs: dict[Path, Run]) -> None:
    for step, code, output in runs[page].result():
        shown = f"{step.script}\n{output}"
        assert code == step.code, shown
        text = " ".join(output.split())
        wanted = ".*".join(map(pattern, step.expected))
        assert re.search(wanted, text), f"wanted {step.expected}\n{shown}"


def test_the_tutorial_is_run() -> None:
    assert len(list(steps(DOCS / "tutorial" / "first-crawl.md"))) > 8


def test_the_api_is_used_as_a_user_would() -> None:
    main = runpy.run_path(str(ROOT / "tests" / "typing" / "api.py"))["main"]
    main()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_settings_in_the_docs_are_accepted(page: Path) -> None:
    for block in blocks(page):
        if block.language == "toml" and "[project" not in block.text:
            config.parse(tomllib.loads(block.text))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_the_docs_exist(page: Path) -> None:
    known = commands()
    for block in blocks(page):
        if block.language in ("console", "sh"):
            for words in salticus_words(block.text):
                names = [" ".join(words[:depth]) for depth in (3, 2, 1)]
                name = next((each for each in names if each in known), None)
                assert name, f"there is no command {names[0]!r}"
                given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
                assert given <= known[name], f"{name} has no {given - known[name]}"


def salticus_words(text: str) -> Iterator[list[str]]:
    """The words after `salticus` of every command line in a block."""
    for line in text.splitlines():
        for part in re.findall(r"(?:^\$ |^|[;&|(] ?)salticus ([a-z][^|;&)>]*)", line):
            yield shlex.split(part, comments=True)


# ------------------------------------------------------------------------------------------- links


def anchors(page: Path) -> set[str]:
    """The fragments that a page's headings answer to."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", prose, re.M)
    bare = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.strip().replace(" ", "-") for title in bare}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        target, _, fragment = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{link} leads nowhere"
        if fragment:
            assert fragment in anchors(path), f"{link}: no such heading"


def test_every_page_is_linked_from_the_readme_or_another_page() -> None:
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in PAGES
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))
    }
    assert {page for page in PAGES if page not in linked} <= {ROOT / "README.md"}


# ------------------------------------------------------------------------------ nothing is left out


def section(page: Path, heading: str) -> str:
    """What a page says under a heading, up to the next of the same or a higher rank."""
    text = page.read_text("utf-8")
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.M)
    assert found, f"{name_of(page)} has no heading {heading!r}"
    rest = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.M)
    return rest[: end.start()] if end else rest


def tree() -> Iterator[tuple[str, Any]]:
    """Every command by its full name."""

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        for short, inner in getattr(command, "commands", {}).items():
            yield from walk(f"{name} {short}".strip(), inner)
        if not getattr(command, "commands", None):
            yield name, command

    yield from walk("", get_command(app))


def commands() -> dict[str, set[str]]:
    """The options of every command."""
    return {
        name: {"--help"} | {flag for p in command.params for flag in p.opts if flag[0] == "-"}
        for name, command in tree()
    }


@pytest.mark.parametrize("name", commands())
def test_commands_are_documented(name: str) -> None:
    text = section(REFERENCE / "cli.md", f"salticus {name}")
    for flag in commands()[name] - {"--help"}:
        assert re.search(rf"`[^`]*{re.escape(flag)}\b[^`]*`", text), f"{name} {flag}"
    documented = set(re.findall(r"^\| `(--[a-z-]+)", text, re.M))
    assert documented <= commands()[name], "the page knows options that are gone"


TABLES: dict[str, type[msgspec.Struct]] = {
    "fetch": config.Fetch,
    "extract": config.Extract,
    "caps": config.Caps,
    "sources": config.Sources,
    "models": config.Models,
    "desk": config.Desk,
    "clock": config.Time,
    "hosts": config.Host,
    "pages": config.Rule,
    "on_change": config.Hook,
}
REPEATED = ("hosts.", "pages.", "on_change.")  # tables that are not there by default


def keys(struct: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """Every setting, with the names of its tables."""
    for field in msgspec.structs.fields(struct):
        if not prefix and field.name in TABLES:
            yield from keys(TABLES[field.name], f"{field.name}.")
        elif field.name not in ("folder", "file"):  # where the settings lie is not a setting
            yield prefix + field.name


def documented_keys() -> dict[str, str]:
    """The rows of the tables of settings: key and default."""
    text = (REFERENCE / "configuration.md").read_text("utf-8")
    return dict(re.findall(r"^\| `([a-z_.]+)` \| (.*?) \|", text, re.M))


def test_settings_are_documented() -> None:
    assert list(documented_keys()) == list(keys(config.Config))


def test_defaults_in_the_docs_are_the_defaults() -> None:
    said: dict[str, Any] = {}
    for key, default in documented_keys().items():
        if default == "none" or key.startswith(REPEATED):
            continue
        table, _, name = key.rpartition(".")
        place = said.setdefault(table, {}) if table else said
        place[name] = tomllib.loads(f"x = {default.strip('`')}")["x"]
    found, usual = config.parse(said), config.Config()
    assert (found.budget.amount, found.budget.per_page) == (1.0, True)
    assert msgspec.structs.replace(found, budget=usual.budget) == usual
    for key, default in documented_keys().items():
        if default == "none" and not key.startswith(REPEATED):
            value: Any = usual
            for name in key.split("."):
                value = getattr(value, name)
            assert not value, f"{key} has a default"


@pytest.mark.parametrize(
    ("heading", "builtin"),
    [
        ("Predictors", predict.IN_A_CRAWL),
        ("Spacings", schedule.BUILTIN),
        ("Gates", gate.BUILTIN),
        ("Extractors", extract.BUILTIN),
        ("Stores", store.BUILTIN),
    ],
)
def test_parts_are_documented(heading: str, builtin: dict[str, str]) -> None:
    text = section(REFERENCE / "parts.md", heading)
    assert re.findall(r"^### `(\w+)`", text, re.M) == list(builtin)
    for where in builtin.values():
        assert f"`{where}`" in text


def test_policies_are_listed_with_their_classes() -> None:
    text = section(REFERENCE / "parts.md", "Policies")
    rows = re.findall(r"^\| \[`(\w+)`\]\(policies/(\w+)\.md\) \| `([\w.:]+)` \|", text, re.M)
    assert [(name, where) for name, _, where in rows] == list(allocate.BUILTIN.items())
    assert all(name == page for name, page, _ in rows)


def test_policies_that_find_new_pages_are_listed() -> None:
    text = section(REFERENCE / "parts.md", "Policies that find new pages")
    rows = re.findall(r"^\| `(\w+)` \| `([\w.:]+)` \|", text, re.M)
    assert rows == list(allocate.DISCOVERY.items())


@pytest.mark.parametrize("name", allocate.BUILTIN)
def test_every_policy_has_a_page_with_a_plot(name: str) -> None:
    folder = REFERENCE / "policies"
    page, image = folder / f"{name}.md", folder / "img" / f"{name}.svg"
    text = page.read_text("utf-8")
    for heading in ("Formula", "Paper", "Notes", "Cost"):
        assert section(page, heading).strip(), heading
    assert text.startswith(f"# `{name}`\n")
    assert f"(img/{name}.svg)" in text
    assert f"`{allocate.BUILTIN[name]}`" in text
    assert image.read_text("utf-8").startswith("<svg")
    assert image.stat().st_size < 60_000
    assert f"| [`{name}`]({name}.md) |" in (folder / "README.md").read_text("utf-8")


def test_there_are_no_pages_of_policies_that_are_gone() -> None:
    folder = REFERENCE / "policies"
    assert {path.stem for path in folder.glob("*.md")} == {*allocate.BUILTIN, "README"}
    assert {path.stem for path in folder.glob("img/*")} == {*allocate.BUILTIN}


def test_the_store_is_documented(tmp_path: Path) -> None:
    path = tmp_path / "crawl.db"
    asyncio.run(make_store(path))
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT name FROM pragma_table_list WHERE type IN ('table', 'virtual')"
        query += " AND schema = 'main' AND name NOT LIKE 'sqlite_%'"  # what FTS5 keeps is a shadow
        for (table,) in db.execute(query).fetchall():
            text = section(REFERENCE / "store.md", f"`{table}`")
            columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            assert sorted(re.findall(r"^\| `(\w+)`", text, re.M)) == sorted(columns), table


async def make_store(path: Path) -> None:
    made = await SqliteStore.open(path)
    await made.close()


@pytest.mark.parametrize(("heading", "kinds"), [("Statuses", Status), ("Purposes", Purpose)])
def test_statuses_and_purposes_are_documented(heading: str, kinds: Any) -> None:
    text = section(REFERENCE / "store.md", heading)
    assert re.findall(r"^\| `(\w+)`", text, re.M) == [kind.label for kind in kinds]


def test_the_log_format_is_documented(tmp_path: Path) -> None:
    export_log(lambda table: iter(()), tmp_path / "log", name="empty")
    for path in sorted((tmp_path / "log").iterdir()):
        text = section(REFERENCE / "log-format.md", f"`{path.name}`")
        if path.suffix == ".parquet":
            columns = list(pl.read_parquet_schema(path))
            assert re.findall(r"^\| `(\w+)`", text, re.M) == columns, path.name


def test_the_law_suites_are_documented() -> None:
    text = (REFERENCE / "laws.md").read_text("utf-8")
    folder = Path(checks.__file__).parent
    for path in sorted(folder.glob("[a-z]*.py")):
        module = importlib.import_module(f"salticus.checks.{path.stem}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("check_") and function.__module__ == module.__name__:
                assert f"`{module.__name__}.{name}`" in text, name
