"""Finding damaged Parquet files: they are read in a child process, because some damage kills it.

A flipped byte can make the Parquet reader ask for more memory than any machine has, and that ends
the process at once, with no error to catch. So a child reads, answers line by line, and where it
falls silent a new one goes on with the next question.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

Question = tuple[str, list[str] | None]
"""A file, and the columns to read: none given = all, None = only name them."""

Answer = dict[str, Any]

_CHILD = (__file__,)  # what Python is given to run
_READY = "ready"
_BROKE_OFF = "its reader broke off"


def damage(paths: Sequence[Path]) -> dict[Path, dict[str | None, str]]:
    """What is wrong with each file that cannot be read: the fault of each damaged column.

    Column None stands for the file as a whole: it is no Parquet file, or its columns can be read
    one by one but not together.
    """
    both: tuple[list[str] | None, ...] = (None, [])
    answers = ask([(str(path), asked) for path in paths for asked in both])
    wholes: dict[Path, dict[str | None, str]] = {}
    columns: list[tuple[Path, str]] = []
    for path, named, read in zip(paths, answers[::2], answers[1::2], strict=True):
        if fault := named.get("fault") or read.get("fault"):
            wholes[path] = {None: fault}
            columns += [(path, column) for column in named.get("columns", ())]
    answers = ask([(str(path), [column]) for path, column in columns])
    parts: dict[Path, dict[str | None, str]] = {}
    for (path, column), answer in zip(columns, answers, strict=True):
        if fault := answer.get("fault"):
            parts.setdefault(path, {})[column] = fault
    return wholes | parts


def ask(questions: Sequence[Question]) -> list[Answer]:
    """An answer to each question, from as many children as it takes."""
    answers: list[Answer] = []
    while len(answers) < len(questions):
        answers += _child(questions[len(answers) :])
        if len(answers) < len(questions):
            answers.append({"fault": _BROKE_OFF})
    return answers


def _child(questions: Sequence[Question]) -> list[Answer]:
    """The answers of one child; fewer than questions if it died."""
    done = subprocess.run(
        [sys.executable, "-P", *_CHILD],
        input=json.dumps(questions).encode(),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        check=False,
    )
    ready, *lines = done.stdout.decode().split("\n")[:-1] or [""]
    if ready != _READY:
        raise RuntimeError(f"cannot start a reader of Parquet: {done.stderr.decode()[-500:]}")
    return [json.loads(line) for line in lines]


def answer() -> None:
    """What the child does: answer the questions on standard input, each as soon as it can.

    It runs this file alone: the rest of the package would take longer to import than to read most
    files.
    """
    questions = json.load(sys.stdin)
    for line in chain([_READY], map(json.dumps, _answers(questions))):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _answers(questions: Sequence[Question]) -> Iterator[Answer]:
    """The columns of each file, or nothing if those asked for can be decoded; they are not kept."""
    import polars as pl

    for path, columns in questions:
        try:
            file = pl.scan_parquet(path, glob=False)
            if columns is None:
                yield {"columns": file.collect_schema().names()}
            else:
                wanted = pl.col(columns) if columns else pl.all()
                file.select(wanted.is_null().sum()).collect(engine="streaming")
                yield {}
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            from salticus.exchange.folder import shown

            yield {"fault": shown(str(error).partition("\n")[0])}


if __name__ == "__main__":
    answer()
