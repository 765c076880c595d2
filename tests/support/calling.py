"""Commands one after the other in one process, which starts once and not once for each."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import traceback
from unittest import mock

from salticus.cli import main


def answers(commands: list[list[str]]) -> list[tuple[int, str]]:
    """The exit code of each command, and what it said on standard error."""
    return [_answer(words) for words in commands]


def _answer(words: list[str]) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["salticus", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code: object = main()
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            code = traceback.print_exc() or 1
    return int(code or 0), err.getvalue()  # type: ignore[call-overload]


if __name__ == "__main__":
    print(json.dumps(answers(json.loads(sys.argv[1]))))
