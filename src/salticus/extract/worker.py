"""What happens inside a worker process."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from salticus.config import Extract, Rule
from salticus.extract.base import Content
from salticus.extract.reader import MEMORY, PageReader, failure
from salticus.extract.route import Route
from salticus.types import Reading

try:
    import resource
except ImportError:  # not on Windows, where memory is then unlimited
    resource = None  # type: ignore[assignment]

METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
GRACE_S = 5.0

_ANSWER: msgspec.msgpack.Decoder[Reading] = msgspec.msgpack.Decoder(Reading)

_reader = PageReader(Extract())  # of this process


def prepare(names: Collection[str], config: Extract, rules: Sequence[Rule]) -> None:
    """Load the parts before any deadline runs, and limit what this process may take."""
    # The pool's own handler runs only between two steps of Python code, and the pool waits for
    # it before it kills; a part may be caught in C code.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    global _reader
    _reader = PageReader(config, rules)
    for name in names:
        with contextlib.suppress(Exception):  # whoever asks for the part will be told
            _reader.part(name, None)
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = _size() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))


def _size() -> int:
    """Bytes of address space in use; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def run(content: Content, route: Route, deadline_s: float) -> bytes:
    """Read a page on its route; the answer for `read`."""
    _alarm(deadline_s + GRACE_S)
    try:
        return msgspec.msgpack.encode(_reader.read(content, route), enc_hook=_plain)
    except BaseException as error:  # SystemExit must not travel to the crawler
        raise failure(content.url, error) from None
    finally:
        _alarm(0)


def _plain(text: Any) -> str:
    """A parser's own kind of `str`, such as lxml's, as plain text; TypeError for all else."""
    if isinstance(text, str):
        return str(text)
    raise TypeError(f"{type(text).__name__} is no text")


def read(answer: bytes, content: Content) -> Reading:
    """What a worker answered; ExtractError if that is no value."""
    try:
        return _ANSWER.decode(answer)
    except msgspec.MsgspecError as error:
        raise failure(content.url, error) from error


def _alarm(seconds: float) -> None:
    """End this process after so long: the pool may be gone, and nobody else would."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
