"""Commands in this process, which starts once and not once for each; or, run as a script, in one
of their own."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import NamedTuple
from unittest import mock

from salticus.cli import main


class Said(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def call(*words: str) -> Said:
    """Run `salticus` with these words. Errors that are not ours are raised."""
    code, out, err = 0, StringIO(), StringIO()
    named = mock.patch.object(sys, "argv", ["salticus", *words])
    with named, redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return Said(code, out.getvalue(), err.getvalue())


if __name__ == "__main__":
    print(json.dumps([call(*words) for words in json.loads(sys.argv[1])]))
