"""The first day of a new user: a shop in the mall is watched, and every message is understood."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import PATIENCE_S, Street, wait_for

CODE = re.compile(r"Traceback|0x[0-9a-f]{6}|\bself\b|\bNone\b|\bTrue\b|Error\(")


@dataclass
class User:
    """Someone who types commands into a terminal of 80 columns, and reads what they say."""

    folder: Path
    salticus: Path

    def types(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command; whatever it says must not look like a programmer's."""
        done = subprocess.run(
            [self.salticus, *words],
            cwd=self.folder,
            env=os.environ | {"COLUMNS": "80"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        print(f"$ salticus {' '.join(words)}\n{done.stdout}{done.stderr}-> {done.returncode}")
        assert not CODE.search(done.stdout + done.stderr)
        return done

    def reads(self, *words: str) -> str:
        """What a command says that works, as running text."""
        done = self.types(*words)
        assert done.returncode == 0, done
        assert done.stderr == ""
        return " ".join(done.stdout.split())

    def is_told(self, code: int, *words: str) -> str:
        """What a command says that does not, in one line if it is on standard error."""
        done = self.types(*words)
        assert done.returncode == code, done
        assert len(done.stderr.splitlines()) <= 1
        return " ".join((done.stdout + done.stderr).split())

    def edits(self, setting: str, line: str) -> None:
        """Take the `#` away, and write something else behind."""
        file = self.folder / "salticus.toml"
        text, found = re.subn(rf"(?m)^#?{setting} = \S+", line, file.read_text(), count=1)
        assert found
        file.write_text(text)


@pytest.fixture
def user(tmp_path: Path, warm: Path) -> User:
    folder = tmp_path / "desk"
    folder.mkdir()
    return User(folder, warm)


@pytest.fixture
def home(street: Street) -> str:
    """The address of a shop whose prices change all the time."""
    flags = ("--shops=1", "--offers=30", "--speed=86400", "--days=3650", "--delay=0.01")
    mall = street.start("mall", street.folder, *flags, "--no-wait")
    urls = street.folder / "urls.txt"
    wait_for(lambda: urls.exists() or mall.poll() is not None, "the mall")
    return urls.read_text().partition("/o/")[0]


def test_the_first_day(user: User, home: str) -> None:
    sitemap = f"{home}/sitemap.xml"
    get_ready(user, sitemap)
    add_the_shop(user, sitemap)
    ask_the_doctor(user, home)
    change = watch(user)
    look(user, change, sitemap)
    tidy_up(user, change["url"])


def get_ready(user: User, sitemap: str) -> None:
    assert "no such file; `salticus init` writes one" in user.is_told(2, "add", sitemap)
    said = user.reads("init")
    assert "Write your contact into it" in said
    for next_step in ("salticus add --sitemap", "salticus doctor", "salticus run"):
        assert next_step in said
    assert "fetch.contact is empty" in user.is_told(2, "run")
    assert "Give an e-mail or web address" in user.is_told(1, "config", "check")
    user.edits("contact", 'contact = "me@example.org"')
    user.edits("budget", "budget = 1000000")
    user.edits("tick", 'tick = "1s"')
    user.edits("delay", 'delay = "10ms"')
    assert user.reads("config", "check") == "salticus.toml is in order"


def add_the_shop(user: User, sitemap: str) -> None:
    said = user.is_told(1, "add", "--sitemap", sitemap)
    assert "0 sources read, 0 new pages found" in said
    assert f"{sitemap} could not be read: unsafe" in said
    assert f"`salticus doctor {sitemap}` tells what can be done" in said
    assert "fetch.allow_private" in user.is_told(1, "doctor", sitemap)
    user.edits("allow_private", 'allow_private = ["127.0.0.1"]')
    said = user.reads("add", "--sitemap", sitemap, "--tag", "shop")
    assert said == "0 new, 1 known already 1 source read, 30 new pages found"


def ask_the_doctor(user: User, home: str) -> None:
    said = user.reads("doctor", f"{home}/o/1")
    for word in ("31 pages to visit on 1 host", "every host can take its share", "robots.txt"):
        assert word in said
    assert re.search(r"ok value: offer: [\d.]+ EUR (?:In|OutOf)Stock \(price ", said)
    assert said.endswith(" 0 failed")
    said = user.is_told(1, "doctor", f"{home}/private/secret")
    assert "robots.txt disallows this path (Disallow: /private/)" in said
    said = user.is_told(1, "doctor", f"{home}/o/none")
    assert "the server answered 404 → See whether the URL is right" in said


def watch(user: User) -> dict[str, str]:
    """Crawl, and hear of changes meanwhile; the first one."""
    words = [sys.executable, "-m", "salticus"]
    follow = subprocess.Popen(
        [*words, "changes", "--follow", "--diff", "--after", "0"],
        cwd=user.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    crawl = subprocess.Popen(
        [*words, "run", "--for", "1h"], cwd=user.folder, stdout=subprocess.PIPE, text=True
    )
    try:
        assert follow.stdout is not None
        lines = [follow.stdout.readline() for _ in range(2)]
        said = user.reads("doctor")
        assert f"a crawl is running (process {crawl.pid})" in said
        assert "was not tried: a crawl is running" in said
        wait_for(lambda: "never visited 0" in user.reads("status"), "every page to be visited")
    finally:
        for process in (follow, crawl):
            process.send_signal(signal.SIGINT)
        ends = [process.communicate(timeout=PATIENCE_S) for process in (follow, crawl)]
    assert (follow.returncode, ends[0][1]) == (0, "")
    assert crawl.returncode == 0
    assert re.search(r"visits +\d+\n +changes +\d+\n +failures +0\n", ends[1][0])
    changes: list[dict[str, str]] = [json.loads(line) for line in lines]
    assert changes[0]["changed"] is True
    assert set(changes[0]["diff"]) <= {"price", "text"}
    return changes[0]


def look(user: User, change: dict[str, str], sitemap: str) -> None:
    said = user.reads("show", change["url"])
    for word in ("state well", f"named by {sitemap}", "last visits", "changes a day (estimate)"):
        assert word in said
    assert re.search(r"[↑↓] [\d.]+ EUR \([+-][\d.]+ %\)|\[-.*-\] \{\+.*\+\}", said)
    assert change["url"] in user.reads("pages", "--sort", "changes", "--desc", "--limit", "100")
    assert "no open alerts" in user.reads("alerts")
    said = user.reads("status")
    for word in ("running no", "pages 31", "never visited 0", "sources 1", "open alerts -"):
        assert word in said
    assert "is not in the store; add it with `salticus add" in user.is_told(
        2, "show", sitemap + "x"
    )


def tidy_up(user: User, url: str) -> None:
    assert user.reads("pages", url, "--pause") == "1 page edited"
    said = user.is_told(1, "forget", url)
    assert "1 page would go, with" in said
    assert "say --yes to do it" in said
    assert user.reads("forget", url, "--yes") == "1 page forgotten"
