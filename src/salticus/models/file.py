"""Models as folders: a manifest that people can read, and arrays; nothing in them is executed.

``manifest.json`` tells what the model is and how it came about, ``arrays.npz`` holds its numbers.
The same model makes the same bytes, so that equal training can be told by equal hashes.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from salticus import plugins
from salticus.errors import InputError
from salticus.exchange.place import new_folder
from salticus.models.model import Calibrated, Model
from salticus.types import STEP, Inputs, Metadata
from salticus.types.state import State, unpack
from salticus.version import VERSION

FORMAT = 1
"""Counts up whenever older versions could not read, or would misread, what this one writes."""

MANIFEST, ARRAYS = "manifest.json", "arrays.npz"

KINDS = {
    "dnn": "salticus.models.deep:DeepModel",
    "sequence": "salticus.models.deep:SequenceModel",
    "trees": "salticus.models.trees:TreesModel",
    "frequency": "salticus.models.linear:LinearModel",
}
"""The kinds of models by name; none needs what only training needs."""

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first time that a zip file knows
_TRIED = 3  # rows
_OPEN = ("threshold",)  # arrays in which infinity means something: every known value is below


@dataclass(frozen=True, slots=True)
class Saved:
    """A model that can be used: calibrated, with its vocabulary, and where it comes from.

    `vocabulary` is the settings and arrays of ``features.metadata.Vocabulary``. `manifest` is plain
    data; what a file needs besides is added to it when it is written. It must hold `inputs`: what
    the model is to be asked with, as `asked` tells.
    """

    model: Calibrated
    vocabulary: tuple[dict[str, Any], State]
    manifest: dict[str, Any] = field(default_factory=dict)


def save_model(folder: Path, saved: Saved) -> str:
    """Write a model into a new or empty folder, whole or not at all; its fingerprint.

    A model whose numbers are not all finite is refused: training has gone wrong.
    """
    model, (words, hashes) = saved.model.model, saved.vocabulary
    flat = _flat(
        {"model": model.arrays(), "calibration": saved.model.arrays(), "vocabulary": hashes}
    )
    for name, array in flat.items():
        _check_finite(folder, name, array)
    blob = packed(flat)
    manifest = {
        **_made_by(),
        "kind": model.kind,
        **saved.manifest,
        "vocabulary_hashes": {name: _digest(a.tobytes()) for name, a in hashes.items()},
        "settings": {
            "model": model.settings(),
            "calibration": saved.model.settings(),
            "vocabulary": words,
        },
        "arrays": {name: [str(a.dtype), list(a.shape)] for name, a in flat.items()},
        "arrays_sha256": _digest(blob),
        "trial": _trial(saved.model, saved.manifest),
    }
    text = _sealed(_plain(manifest))
    with new_folder(folder) as part:
        (part / ARRAYS).write_bytes(blob)
        (part / MANIFEST).write_text(text, "utf-8")
    return fingerprint(folder)


def write_manifest(folder: Path, about: dict[str, Any]) -> dict[str, Any]:
    """Write a model that is no more than a manifest into a new or empty folder; the manifest."""
    manifest: dict[str, Any] = _plain({**_made_by(), **about})
    with new_folder(folder) as part:
        (part / MANIFEST).write_text(_sealed(manifest), "utf-8")
    return manifest


def _made_by() -> dict[str, Any]:
    return {"format": FORMAT, "salticus": VERSION}


def load_model(folder: Path) -> Saved:
    """The model of a folder; InputError names the file and says what is wrong with it."""
    manifest = read_manifest(folder)
    states = _states(folder, manifest)
    kind, settings = manifest.get("kind"), manifest["settings"]
    if kind not in KINDS:
        raise InputError(
            f"{folder}: a model of the kind {kind!r}, which is not known here "
            f"(known: {', '.join(KINDS)}); is this the version that made it?"
        )
    trained: type[Model] = plugins.load("model", kind, KINDS)
    try:
        inner = trained.of(settings["model"], states.get("model", {}))
        model = Calibrated.of(settings["calibration"], states.get("calibration", {}), inner)
        said, now = np.array(manifest["trial"]), np.array(_trial(model, manifest))
        if said.shape != now.shape or not np.allclose(said, now, rtol=1e-4, atol=1e-6):
            raise ValueError("its answers are not those that it gave when it was saved")
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{folder}: arrays and settings do not fit together ({what}); train the model again"
        ) from error
    return Saved(model, (settings["vocabulary"], states.get("vocabulary", {})), manifest)


def fingerprint(folder: Path) -> str:
    """SHA-256 of a model's two files: equal for models that are equal in every bit."""
    return _digest(b"".join((folder / name).read_bytes() for name in (MANIFEST, ARRAYS)))


def asked(names: tuple[str, ...], steps: int, metadata: Metadata) -> dict[str, Any]:
    """What rows for a model look like, for its manifest."""
    return {
        "names": list(names),
        "steps": steps,
        "fields": list(metadata.fields),
        "sizes": list(metadata.sizes),
        "words": metadata.words.shape[1],
        "buckets": metadata.buckets,
    }


# --------------------------------------------------------------------------------------- writing


def packed(arrays: State) -> bytes:
    """Arrays as the bytes of an npz file, the same every time: no clock, no order, no pickle."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            entry = io.BytesIO()
            np.save(entry, np.asarray(arrays[name], order="C"), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _LONG_AGO), entry.getvalue())
    return buffer.getvalue()


def _flat(states: dict[str, State]) -> State:
    return {
        f"{part}/{name}": np.asarray(array)
        for part, state in states.items()
        for name, array in state.items()
    }


def _plain(data: Any) -> Any:
    """Data as JSON can hold it: what is not a number is null."""
    return msgspec.json.decode(msgspec.json.encode(data, enc_hook=lambda array: array.tolist()))


def _sealed(manifest: dict[str, Any]) -> str:
    """The manifest as text, with a hash of all the rest as its last entry."""
    whole = manifest | {"manifest_sha256": _seal(manifest)}
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _seal(manifest: dict[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    return _digest(json.dumps(rest, sort_keys=True).encode())


def _digest(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


# --------------------------------------------------------------------------------------- reading


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a model says of itself, checked; InputError if it is not a model or not for us."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; `salticus train` makes models")
    if not path.is_file():
        raise InputError(f"{folder}: not a model: it has no {MANIFEST}")
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged: not JSON ({error}); train the model again") from error
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise InputError(f"{path}: not the manifest of a model")
    if manifest["format"] != FORMAT:
        raise InputError(
            f"{path}: made by salticus {manifest.get('salticus', '?')} in format "
            f"{manifest['format']}; this is salticus {VERSION}, which reads format {FORMAT}: "
            "train the model again, or use the version that made it"
        )
    if manifest.get("manifest_sha256") != _seal(manifest):
        raise InputError(f"{path}: altered since it was written; train the model again")
    return manifest


def _states(folder: Path, manifest: dict[str, Any]) -> dict[str, State]:
    """The arrays of each part, as the manifest lists them."""
    path = folder / ARRAYS
    if not path.is_file():
        raise InputError(f"{folder}: not a whole model: {ARRAYS} is missing; train it again")
    blob = path.read_bytes()
    if _digest(blob) != manifest.get("arrays_sha256"):
        raise InputError(
            f"{path}: damaged, or of another model: its hash is not the one in {MANIFEST}; "
            "train the model again"
        )
    try:
        states = unpack(blob)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: damaged: {error}; train the model again") from error
    for name, array in _flat(states).items():
        listed = manifest["arrays"].get(name)
        if listed != [str(array.dtype), list(array.shape)]:
            says = "nothing of it" if listed is None else f"{listed[0]} {tuple(listed[1])}"
            found = f"{array.dtype} {array.shape}"
            raise InputError(f"{path}: {name} is {found}, but {MANIFEST} says {says}")
        _check_finite(path, name, array)
    return states


def _check_finite(path: Path, name: str, array: NDArray[Any]) -> None:
    if array.dtype.kind != "f":
        return
    wrong = np.isnan(array) if name.endswith(_OPEN) else ~np.isfinite(array)
    if count := np.count_nonzero(wrong):
        raise InputError(
            f"{path}: {name} holds {count:,} numbers that are not finite; training went wrong: "
            "train again with other settings"
        )


def _trial(model: Calibrated, manifest: dict[str, Any]) -> list[Any]:
    """What a model says of three made-up rows: all unknown, all 0, all 1."""
    shape = manifest["inputs"]
    rows = np.arange(_TRIED)
    dense = np.repeat(np.array([[np.nan], [0], [1]], np.float32), len(shape["names"]), axis=1)
    steps = np.full((_TRIED, shape["steps"], len(STEP)), np.nan, dtype=np.float32)
    each = [np.minimum(rows, size - 1) for size in shape["sizes"]]
    codes = np.array(each, dtype=np.int32).reshape(-1, _TRIED).T
    words = np.full((_TRIED, shape["words"]), -1, dtype=np.int32)
    words[1:, :1] = shape["buckets"] - 1
    names, fields, sizes = (tuple(shape[name]) for name in ("names", "fields", "sizes"))
    inputs = Inputs(rows, rows, dense, steps, names)
    metadata = Metadata(codes, words, fields, sizes, shape["buckets"])
    return list(model.probabilities(inputs, metadata).tolist())
