"""A mall and a crawler, each in a process of its own."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from salticus.lab.worlds.mall.audit import AccessEntry, read_entries

PATIENCE_S = 600.0  # only what hangs takes so long, however busy the machine is


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Until `condition` holds; fails the test if it never does."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


def salticus(*words: str | Path) -> subprocess.Popen[str]:
    """A command of ours in its own process."""
    command = [sys.executable, "-m", "salticus", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str], within_s: float = PATIENCE_S) -> tuple[int, str, str]:
    """Exit code and output of a process that should end by itself."""
    out, err = process.communicate(timeout=within_s)
    return process.returncode, out, err


@dataclass
class Street:
    """A mall's folder, and the processes that were started there."""

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def settings(self) -> Path:
        return self.folder / "salticus.toml"

    @property
    def database(self) -> Path:
        return self.folder / "salticus.db"

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        process = salticus(*words)
        self.processes.append(process)
        return process

    def open(self, *faults: str, **options: object) -> None:
        """Open the mall and add all its pages to the store."""
        flags = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
        flags += [f"--fault={fault}" for fault in faults]
        self.opened(self.start("mall", self.folder, *flags))
        self.add("--file", self.folder / "urls.txt")

    def opened(self, mall: subprocess.Popen[str]) -> None:
        """Wait until the mall is open."""
        wait_for(lambda: (self.folder / "urls.txt").exists() or mall.poll() is not None, "the mall")
        assert mall.poll() is None, mall.communicate()

    def add(self, *words: str | Path) -> None:
        code, _, err = finished(self.start("add", *words, "-c", self.settings))
        assert code == 0, err

    def crawl(self, *words: str) -> subprocess.Popen[str]:
        return self.start("run", "-c", self.settings, *words)

    def requests(self) -> int:
        """Requests that the mall has answered so far."""
        path = self.folder / "access.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def entries(self) -> list[AccessEntry]:
        return read_entries(self.folder / "access.jsonl")

    def sql(self, query: str) -> list[tuple[object, ...]]:
        db = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
        try:
            return db.execute(query).fetchall()
        finally:
            db.close()

    def set(self, key: str, value: str) -> None:
        """Change a setting of the file."""
        text = self.settings.read_text()
        changed = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        assert changed != text
        self.settings.write_text(changed)

    def close(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
            process.communicate()


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    place = Street(tmp_path / "mall")
    try:
        yield place
    finally:
        place.close()
