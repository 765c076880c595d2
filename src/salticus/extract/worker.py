"""What happens inside a worker process."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import signal
from collections.abc import Collection
from pathlib import Path

import msgspec

from salticus import plugins
from salticus.errors import ExtractError
from salticus.extract import BUILTIN
from salticus.extract.base import Content, Extractor
from salticus.types import Value

try:
    import resource
except ImportError:  # not on Windows, where memory is then unlimited
    resource = None  # type: ignore[assignment]

METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
MEMORY = 2 * 10**9  # bytes beyond what the process takes when it starts
GRACE_S = 5.0

_ANSWER: msgspec.msgpack.Decoder[Value | None] = msgspec.msgpack.Decoder(Value | None)


def extract(part: Extractor, content: Content) -> Value | None:
    """What the part finds; whatever it raises becomes an ExtractError that names the URL."""
    try:
        return part.extract(content)
    except Exception as error:
        raise failure(content.url, error) from error


def failure(url: str, error: BaseException) -> ExtractError:
    """The error for a page whose extractor raised `error`."""
    if isinstance(error, ExtractError) and str(error).startswith(url):
        return error
    if isinstance(error, MemoryError):
        return ExtractError(f"{url}: the extractor needed more than {MEMORY / 1e9:g} GB")
    reason = f"{type(error).__name__}: {error}"
    return ExtractError(f"{url}: {reason[:500]}")


def prepare(names: Collection[str]) -> None:
    """Load the parts before any deadline runs, and limit what this process may take."""
    # The pool's own handler runs only between two steps of Python code, and the pool waits for
    # it before it kills; a part may be caught in C code.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for name in names:
        with contextlib.suppress(Exception):  # whoever asks for the part will be told
            _part(name)
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


def run(name: str, content: Content, deadline_s: float) -> bytes:
    """Extract with the part called `name`; the answer for `read`."""
    _alarm(deadline_s + GRACE_S)
    try:
        return msgspec.msgpack.encode(extract(_part(name), content))
    except BaseException as error:  # SystemExit must not travel to the crawler
        raise failure(content.url, error) from None
    finally:
        _alarm(0)


def read(answer: bytes, content: Content) -> Value | None:
    """What a worker answered; ExtractError if that is no value."""
    try:
        return _ANSWER.decode(answer)
    except msgspec.MsgspecError as error:
        raise failure(content.url, error) from error


def _alarm(seconds: float) -> None:
    """End this process after so long: the pool may be gone, and nobody else would."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


@functools.cache
def _part(name: str) -> Extractor:
    part: Extractor = plugins.load("extractor", name, BUILTIN)()
    return part
