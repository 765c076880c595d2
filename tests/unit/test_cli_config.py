"""The settings as a file that people edit: all of it is there, true, and checked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import msgspec
import pytest

from salticus.config import (
    Caps,
    Config,
    Desk,
    Extract,
    Fetch,
    Hook,
    Host,
    Models,
    Rule,
    Sources,
    Time,
    parse,
)
from salticus.config.file import default_text
from salticus.views.settings import MASK, as_toml, effective

from .cli_stage import SETTINGS, Stage

HOLD = """
import sys
from pathlib import Path
from salticus.store.sqlite.database import instance_lock

with instance_lock(Path(sys.argv[1])):
    print("held", flush=True)
    input()
"""
SECTIONS: dict[str, type[msgspec.Struct]] = {
    "fetch": Fetch,
    "extract": Extract,
    "caps": Caps,
    "sources": Sources,
    "hosts": Host,
    "pages": Rule,
    "on_change": Hook,
    "models": Models,
    "desk": Desk,
    "clock": Time,
}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


# ----------------------------------------------------------------------------- the default settings


def sections(text: str) -> dict[str, str]:
    """The lines of each section; those at the top under ''."""
    parts = re.split(r"(?m)^#?\[+(\w+)\]+$", text)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def uncommented(text: str) -> str:
    """The settings with every one switched on."""
    return re.sub(r"(?m)^#(?=[a-z\[])", "", text)


def test_the_default_settings_are_the_defaults() -> None:
    assert effective(parse(tomllib.loads(default_text()))) == effective(Config())


def test_every_setting_stands_in_its_section() -> None:
    found = sections(default_text())
    assert set(found) == {"", *SECTIONS}
    for name, struct in {"": Config, **SECTIONS}.items():
        wanted = {f.name for f in msgspec.structs.fields(struct)} - {*SECTIONS, "folder", "file"}
        named = re.findall(r"(?m)^#?(?: or: )?(\w+) = ", found[name])
        assert sorted(named) == sorted(wanted), name


def test_what_is_commented_out_is_the_default_or_an_example() -> None:
    found, usual = parse(tomllib.loads(uncommented(default_text()))), Config()
    written, default = plain(found), plain(usual)
    for name in default.keys() - SECTIONS.keys():
        assert default[name] in (written[name], None), name
    for section in ("fetch", "extract", "caps", "sources", "models", "desk", "clock"):
        for name, value in default[section].items():
            assert value in (written[section][name], None, []), f"{section}.{name}"
    hook = plain(Hook())
    for name in ("timeout", "workers", "first"):
        assert written["on_change"][name] == hook[name]


def plain(config: Any) -> dict[str, Any]:
    """Settings as they are written, with None for what is not set."""
    fields = msgspec.structs.fields(config)
    return {
        f.name: written(getattr(config, f.name)) for f in fields if f.name not in ("folder", "file")
    }


def written(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return plain(value)
    return list(value) if isinstance(value, tuple) else vars(value) if _is_unit(value) else value


def _is_unit(value: Any) -> bool:
    return type(value).__name__ == "Budget"


def test_the_file_fits_a_terminal() -> None:
    assert max(map(len, default_text().splitlines())) <= 82


def test_contact_and_budget_are_filled_in() -> None:
    hostile = 'a"b\\c\n[fetch] ünï'
    config = parse(tomllib.loads(default_text(contact=hostile, budget="12%")))
    assert (config.fetch.contact, config.budget.amount) == (hostile, 0.12)


def test_init_writes_them(stage: Stage) -> None:
    new = stage.folder / "new"
    said = stage.run("init", str(new), "--contact", "me@example.org", "--budget", "5000")
    assert said.code == 0
    for word in ("salticus add", "--sitemap", "salticus doctor", "salticus run"):
        assert word in said.out
    text = (new / "salticus.toml").read_text()
    assert text == default_text(contact="me@example.org", budget="5000")
    assert stage.run("config", "default").out == default_text()
    assert stage.run("init", str(new)).code == 2
    assert "not a budget" in stage.run("init", str(stage.folder / "b"), "--budget", "x").err


# ---------------------------------------------------------------------------------- check and show


def test_good_settings_are_in_order(stage: Stage) -> None:
    assert stage.run("config", "check", str(stage.file)).out == f"{stage.file} is in order\n"
    assert json.loads(stage.run("config", "check", str(stage.file), "--json").out)["ok"] is True


GOOD = '[fetch]\ncontact = "a@b.org"\n'
WRONG = {
    "nosuch = 1": "unknown field `nosuch`",
    GOOD + '[[pages]]\nmatch = "*"\nselect = {x = "css:[["}': "no CSS selector",
    GOOD + '[[hosts]]\nmatch = "*"\nauth = "env:NO_SUCH"': "NO_SUCH",
    GOOD + '[on_change]\ncommand = "no-such-program --now"': "no program 'no-such-program'",
    'policy = "nosuch"\n' + GOOD: "no policy is called 'nosuch'",
    'budget = "10%"': "fetch.contact is empty",
    'policy = "bfs"\nfinding = "30%"\n' + GOOD: "'bfs' does not take it: remove the setting",
    GOOD + "[sources]\nhistory = 0": "sources.history must be more than 0",
    GOOD + '[sources]\nhalf_life = "0s"': "sources.half_life must be more than 0",
}


@pytest.mark.parametrize(("text", "problem"), WRONG.items(), ids=range(len(WRONG)))
def test_wrong_settings_are_named(stage: Stage, text: str, problem: str) -> None:
    stage.file.write_text(text)
    said = stage.run("config", "check", str(stage.file))
    assert said.code == 1
    assert problem in " ".join(said.out.split())
    told = json.loads(stage.run("config", "check", str(stage.file), "--json").out)
    assert (told["ok"], problem in told["problems"][0]["said"]) == (False, True)


SECRETS = (
    SETTINGS
    + """
[[hosts]]
match = "*.example.org"
proxy = "http://me:hunter2@proxy.example:3128"
auth = "me:hunter2"
headers = { "X-Key" = "hunter2" }
cookies = { "session" = "hunter2", "other" = "env:SESSION" }

[on_change]
command = """
    + "\"curl --header 'X-Key: hunter2' https://hooks.example/hunter2\"\n"
)


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    stage = Stage(tmp_path, SECRETS)
    for words in (["config", "show"], ["config", "show", "--json"]):
        said = stage.ok(*words)
        assert "hunter2" not in said
        assert MASK in said
        assert "env:SESSION" in said
        assert "proxy.example:3128" in said
        assert f"curl {MASK}" in said


def test_what_is_shown_can_be_read_again() -> None:
    config = parse(tomllib.loads(uncommented(default_text())))
    shown = as_toml(effective(config))
    assert as_toml(effective(parse(tomllib.loads(shown)))) == shown
    assert 'hours = "22:00-06:00 Europe/Vienna"' in shown


# ------------------------------------------------------------------------------------------- reload


def test_without_a_crawl_there_is_nothing_to_reload(stage: Stage) -> None:
    assert "no crawl is running" in stage.refusal("config", "reload")


def test_a_command_that_is_no_crawl_is_left_alone(stage: Stage) -> None:
    stage.furnish()
    with holder(stage.store) as process:
        if Path("/proc").exists():
            said = stage.refusal("config", "reload")
            assert f"process {process} works on" in said
        os.kill(process, 0)


@contextmanager
def holder(store: Path) -> Iterator[int]:
    """Another process that holds the store, and would die of SIGHUP."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store)], stdin=PIPE, stdout=PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        yield process.pid
    finally:
        process.communicate("enough\n")
    assert process.returncode == 0
