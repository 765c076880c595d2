"""What all tests share.

Properties draw forty examples each, and others in every run: the whole must fit its time. They
have no deadline: how long an example takes says more of the machine than of the code.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.testing
from hypothesis import settings

from salticus.exchange import probe

settings.register_profile("brief", max_examples=40, deadline=None)
settings.load_profile("brief")

# A test that runs commands would have all of them made anew for each.
typer.main.get_command = typer.testing._get_command = functools.cache(typer.main.get_command)

LONG = {"docs", "render", "store_trouble", "showing", "gate", "simulate", "baselines"}
LONG |= {"learning", "calibration", "kill", "scrapy", "zoo", "desk", "deep", "planted"}
WARM = Path(__file__).with_name("warm.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first: no worker shall be left alone with one in the end."""
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in LONG)


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The command `salticus`, which starts at once; for tests that run many. It cannot be killed
    with SIGKILL: whoever does that starts a process of their own."""
    folder = tmp_path_factory.mktemp("warm")
    command, door = folder / "salticus", folder / "door"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {WARM} {door} "$@"\n')
    command.chmod(0o755)
    server = subprocess.Popen([sys.executable, WARM, door], start_new_session=True)
    try:
        while not door.exists():
            assert server.poll() is None, "the server of commands did not start"
            time.sleep(0.05)
        yield command
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


@pytest.fixture(scope="module")
def read_here() -> Iterator[None]:
    """Tables are read in this process, not in one of their own; for files that are sound."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "_child", lambda questions: list(probe._answers(questions)))
        yield
