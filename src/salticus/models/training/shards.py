"""Examples on disk: a folder with a manifest, the pages, and one file for each UTC day of a part.

    manifest.json   the recipe, names of features, rows, versions
    pages.parquet   the log's pages in the order of their rows, with `seen` and `uniform`
    train-2018-05-01.npz …

Files are arrays without pickle, and appear when they are complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from salticus.errors import InputError
from salticus.models.training.recipe import PARTS
from salticus.types import Examples, Inputs, Ints
from salticus.types.frames import pl
from salticus.types.state import State

FORMAT = 2
MANIFEST = "manifest.json"

_KINDS: dict[str, type[np.generic]] = {
    "page": np.int64,
    "hour": np.int64,
    "dense": np.float32,
    "steps": np.float32,
    "label": np.int8,
    "weight": np.float64,
    "seen": np.bool_,
    "uniform": np.bool_,
    "known": np.int64,
}


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of examples."""

    file: str
    part: str
    rows: int


class Shards:
    """The examples of a folder that `make_examples` has made; reading them is all it does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about = read_manifest(folder)
        self.names: tuple[str, ...] = tuple(self.about["names"])
        self.shards = tuple(Shard(**each) for each in self.about["shards"])

    @cached_property
    def pages(self) -> pl.DataFrame:
        """The pages of the log, row by row as `Inputs.page` counts them."""
        return pl.read_parquet(self.folder / "pages.parquet")

    def rows(self, part: str) -> int:
        return sum(shard.rows for shard in self._of(part))

    def part(self, part: str, columns: tuple[str, ...] | None = None) -> Examples:
        """All examples of train, validation or test in order of time, with these columns alone."""
        names = self.names if columns is None else columns
        shapes: dict[str, tuple[int, ...]] = {
            "dense": (len(names),),
            "steps": (self.about["recipe"]["depth"], self.about["steps"]),
            "label": (self.about["labels"],),
        }
        rows, done = self.rows(part), 0
        whole = {name: np.empty((rows, *shapes.get(name, ())), k) for name, k in _KINDS.items()}
        for shard in self._of(part):
            arrays = self._arrays(shard, names)
            for name, array in whole.items():
                array[done : done + shard.rows] = arrays[name]
            done += shard.rows
        return _examples(whole, names)

    def days(self, part: str, columns: tuple[str, ...] | None = None) -> Iterator[Examples]:
        """The examples of a part, a UTC day at a time."""
        names = self.names if columns is None else columns
        for shard in self._of(part):
            arrays = self._arrays(shard, names)
            yield _examples({name: arrays[name].astype(k) for name, k in _KINDS.items()}, names)

    def times(self, part: str) -> Ints:
        """The exact times of a part's predictions, in µs since 1970."""
        each = [read_shard(self.folder / shard.file)["at"] for shard in self._of(part)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *each])

    def _of(self, part: str) -> list[Shard]:
        if part not in PARTS:
            raise InputError(f"no such part: {part}; there are {', '.join(PARTS)}")
        return [shard for shard in self.shards if shard.part == part]

    def _arrays(self, shard: Shard, names: tuple[str, ...]) -> State:
        arrays = read_shard(self.folder / shard.file)
        if len(arrays["page"]) != shard.rows:
            raise InputError(f"{self.folder / shard.file}: not the rows that the manifest tells")
        if names != self.names:
            if strange := [name for name in names if name not in self.names]:
                raise InputError(f"{self.folder}: no feature {strange[0]}")
            arrays["dense"] = arrays["dense"][:, [self.names.index(name) for name in names]]
        return arrays


def _examples(arrays: State, names: tuple[str, ...]) -> Examples:
    page, hour, dense, steps, *rest = (arrays[name] for name in _KINDS)
    return Examples(Inputs(page, hour, dense, steps, names), *rest)


# ---------------------------------------------------------------------------------------- files


def read_manifest(folder: Path) -> dict[str, Any]:
    """What the manifest of a folder tells; InputError if it is none, or of another format."""
    path = folder / MANIFEST
    try:
        about = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: no manifest of examples ({error})") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError(f"{path}: not examples of this version of Salticus; make them again")
    return about


def write_manifest(folder: Path, about: dict[str, Any]) -> None:
    """Write the manifest, whole or not at all."""
    part = folder / f"{MANIFEST}.part"
    part.write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", "utf-8")
    part.replace(folder / MANIFEST)


def read_shard(path: Path) -> State:
    """The arrays of a file; InputError if it is damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InputError(f"{path}: not a file of examples, or damaged ({error})") from error


def write_shard(path: Path, arrays: State, fingerprint: str) -> None:
    """Write a file of examples, whole or not at all; the fingerprint tells what made it."""
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, allow_pickle=False, fingerprint=_bytes(fingerprint), **arrays)
    part.replace(path)


def rows_of(path: Path, fingerprint: str) -> int | None:
    """How many rows a file has that was made with this fingerprint; None: there is none such."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            fits = np.array_equal(arrays["fingerprint"], _bytes(fingerprint))
            return len(arrays["at"]) if fits else None
    except (OSError, ValueError, EOFError, KeyError, BadZipFile):
        return None


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)
