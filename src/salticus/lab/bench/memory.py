"""The peak of memory of this process, for what is measured in processes of their own."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path


def peak() -> float:
    """Bytes, since the process began or `new_peak` was called."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def new_peak() -> float:
    """The peak of memory from now on, where the system lets it be set back."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak()
