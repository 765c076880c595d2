"""Models as folders: they come back to the last bit, or are refused by name."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salticus.errors import InputError
from salticus.models import file
from salticus.models.file import (
    Saved,
    asked,
    fingerprint,
    load_model,
    packed,
    read_manifest,
    save_model,
)
from salticus.models.linear import LinearModel
from salticus.models.model import Calibrated, Curve
from salticus.types import Inputs, Metadata

NAMES = ("page_month", "page_recent")


def rows(n: int = 5) -> tuple[Inputs, Metadata]:
    rng = np.random.default_rng(0)
    dense = rng.random((n, 2)).astype(np.float32)
    dense[0, 0] = np.nan
    page, none = np.arange(n), np.zeros((n, 0), dtype=np.int32)
    inputs = Inputs(page, page, dense, np.zeros((n, 0, 3), dtype=np.float32), NAMES)
    codes = np.zeros((n, 1), dtype=np.int32)
    return inputs, Metadata(codes, none, ("brand",), (4,), 16)


def saved(slope: float = 0.7) -> Saved:
    one = np.array([[slope], [0.5]])
    model = LinearModel("page_month", (6, 24), one, one, np.array([-2.0, -1.0]), np.empty(0))
    bent = Curve("isotonic", 1.0, 0.0, np.array([-1.0, 1.0]), np.array([-3.0, 0.5]))
    words = {"brand": np.array([3, 5, 9], dtype=np.uint64)}
    about = {"task": "change", "metrics": {"auc": np.float64(0.9), "ece": float("nan")}}
    shape = {"inputs": asked(NAMES, 0, rows()[1])}
    return Saved(Calibrated(model, (Curve(), bent)), ({"fields": ["brand"]}, words), about | shape)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(tmp_path / "model", saved())
    return tmp_path / "model"


def test_a_model_comes_back_to_the_last_bit(folder: Path) -> None:
    again, first = load_model(folder), saved()
    assert (again.model.probabilities(*rows()) == first.model.probabilities(*rows())).all()
    settings, arrays = again.vocabulary
    assert settings == {"fields": ["brand"]}
    assert arrays["brand"].tolist() == [3, 5, 9]
    assert arrays["brand"].dtype == np.uint64
    assert again.manifest["metrics"] == {"auc": 0.9, "ece": None}
    assert again.manifest["kind"] == "frequency"


def test_nothing_in_a_model_is_pickled(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["arrays.npz", "manifest.json"]
    with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)
    with pytest.raises(ValueError, match="pickle|Object"):
        packed({"a": np.array([{}], dtype=object)})


def test_one_model_makes_the_same_bytes_and_another_other_ones(tmp_path: Path) -> None:
    marks = [save_model(tmp_path / name, saved(slope)) for name, slope in
             (("a", 0.7), ("b", 0.7), ("c", 0.8))]  # fmt: skip
    assert marks[0] == marks[1] == fingerprint(tmp_path / "b")
    assert marks[0] != marks[2]
    one = {"x": np.arange(3), "y": np.ones((2, 2))}
    assert packed(one) == packed({"y": one["y"], "x": one["x"]})
    grid = np.arange(6).reshape(2, 3)
    assert packed({"y": np.asfortranarray(grid)}) == packed({"y": grid})


def test_arrays_keep_type_and_shape() -> None:
    arrays = {"a": np.array(2.5), "b": np.zeros((0, 3), np.float32), "c": np.array([True]),
              "d/e": np.array([2**64 - 1], np.uint64)}  # fmt: skip
    with np.load(io.BytesIO(packed(arrays)), allow_pickle=False) as found:
        assert {*found.files} == {*arrays}
        for name, array in arrays.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            assert (found[name] == array).all()


def test_an_occupied_folder_is_refused_and_nothing_is_left_behind(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    save_model(target, saved())  # an empty one will do
    with pytest.raises(InputError, match="model: already there and not empty"):
        save_model(target, saved())
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="file: already there"):
        save_model(tmp_path / "file", saved())
    with pytest.raises(InputError, match="cannot be written"):
        save_model(tmp_path / "file" / "model", saved())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "model"]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_model_that_is_not_finite_is_not_saved(tmp_path: Path, wrong: float) -> None:
    with pytest.raises(InputError, match=r"model/slope holds 1 numbers that are not finite"):
        save_model(tmp_path / "model", saved(wrong))
    assert not (tmp_path / "model").exists()


def refused(folder: Path, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        load_model(folder)
    assert str(folder) in str(error.value)


def alter(folder: Path, sealed: bool = True, **changed: Any) -> None:
    """Change entries of the manifest; sealed: as if it had been written so."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8")) | changed
    manifest.pop("manifest_sha256") if sealed else None
    text = file._sealed(manifest) if sealed else json.dumps(manifest)
    (folder / "manifest.json").write_text(text, "utf-8")


def reseal(folder: Path, **changed: Any) -> None:
    """Replace arrays; the hashes are right."""
    with np.load(folder / "arrays.npz") as arrays:
        blob = packed({**{name: arrays[name] for name in arrays.files}, **changed})
    (folder / "arrays.npz").write_bytes(blob)
    alter(folder, arrays_sha256=hashlib.sha256(blob).hexdigest())


def test_what_is_no_model_is_refused(tmp_path: Path, folder: Path) -> None:
    refused(tmp_path / "nowhere", "no such folder; `salticus train` makes models")
    refused(tmp_path, "not a model: it has no manifest.json")
    (folder / "manifest.json").write_text("[]")
    refused(folder, "manifest.json: not the manifest of a model")
    (folder / "manifest.json").write_text("{")
    refused(folder, "manifest.json: damaged: not JSON")


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "arrays.npz").unlink()
    refused(folder, "not a whole model: arrays.npz is missing")


def test_another_version_is_named(folder: Path) -> None:
    alter(folder, format=99, salticus="7.0")
    refused(folder, r"made by salticus 7\.0 in format 99; this is salticus .* reads format 1")


@pytest.mark.parametrize("place", [10, -10, 400])
def test_damage_is_told(folder: Path, place: int) -> None:
    blob = bytearray((folder / "arrays.npz").read_bytes())
    blob[place] ^= 1
    (folder / "arrays.npz").write_bytes(blob)
    refused(folder, "arrays.npz: damaged, or of another model")


def test_a_truncated_file_and_one_that_is_none_are_told(folder: Path) -> None:
    for blob in (b"", b"PK\x03\x04nonsense", b"not a zip"):
        (folder / "arrays.npz").write_bytes(blob)
        refused(folder, "damaged, or of another model")
        alter(folder, arrays_sha256=hashlib.sha256(blob).hexdigest())
        refused(folder, "arrays.npz: damaged: ")


def test_an_altered_manifest_is_told(folder: Path) -> None:
    alter(folder, sealed=False, task="click")
    refused(folder, "manifest.json: altered since it was written")


def test_numbers_that_are_not_finite_are_told(folder: Path) -> None:
    reseal(folder, **{"model/slope": np.array([[np.nan], [0.5]])})
    refused(folder, "model/slope holds 1 numbers that are not finite")


def test_wrong_shapes_are_told(folder: Path) -> None:
    reseal(folder, **{"model/slope": np.ones((3, 1))})
    refused(folder, r"model/slope is float64 \(3, 1\), but manifest.json says float64 \(2, 1\)")


def test_arrays_that_fit_no_model_are_told(folder: Path) -> None:
    """Though the manifest lists them as they are."""
    reseal(folder, **{"model/slope": np.ones((3, 1))})
    listed = read_manifest(folder)["arrays"]
    alter(folder, arrays={**listed, "model/slope": ["float64", [3, 1]]})
    refused(folder, "arrays and settings do not fit together")


def test_a_model_that_answers_otherwise_than_it_did_is_told(folder: Path) -> None:
    reseal(folder, **{"model/slope": np.full((2, 1), 9.0)})
    refused(folder, "its answers are not those that it gave when it was saved")


def test_settings_that_lack_something_are_told(folder: Path) -> None:
    settings = read_manifest(folder)["settings"]
    alter(folder, settings={**settings, "model": {}})
    refused(folder, "arrays and settings do not fit together .KeyError")


def test_an_unknown_kind_is_named(folder: Path) -> None:
    alter(folder, kind="oracle")
    refused(folder, r"kind 'oracle', which is not known here \(known: dnn, sequence, trees, freq")
