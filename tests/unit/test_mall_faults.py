"""Faults can be written down, and befall requests repeatably."""

from __future__ import annotations

import gzip
import zlib

import pytest

from salticus.errors import ConfigError
from salticus.lab.worlds.mall.faults import Dice, Fault, bomb, junk, parse_fault

HOST = "127.0.0.1:8000"


def cast(
    faults: list[Fault], paths: list[str], *, seed: int = 0, shop: int = 0
) -> list[str | None]:
    dice = Dice(faults, seed=seed, host=HOST, shop=shop)
    fallen = [dice.cast(path) for path in paths]
    return [None if fault is None else fault.kind for fault in fallen]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("hang", Fault("hang")),
        ("429:0.02:retry=2", Fault("429", 0.02, retry=2)),
        ("slow:1:seconds=0.5:paths=/c/*", Fault("slow", 1.0, paths="/c/*", seconds=0.5)),
        ("redirect:to=loop:hosts=3", Fault("redirect", to="loop", hosts="3")),
        ("huge:0.1:size=1000", Fault("huge", 0.1, size=1000)),
    ],
)
def test_a_fault_can_be_written_on_one_line(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    "text",
    ["", "plague", "hang:lots", "hang:2", "hang:-0.1", "hang:0.1:0.2", "429:retry=soon",
     "slow:pace=3", "redirect:to=moon"],
)  # fmt: skip
def test_a_wrong_fault_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ConfigError, match=f"fault '{text}'"):
        parse_fault(text)


def test_the_share_is_the_share_of_requests() -> None:
    paths = [f"/o/{n}" for n in range(20_000)]
    hit = cast([Fault("500", 0.1)], paths).count("500")
    assert hit == pytest.approx(2000, abs=200)
    again = cast([Fault("500", 0.1)], ["/o/1"] * 20_000).count("500")
    assert again == pytest.approx(2000, abs=200)


def test_a_request_meets_its_fault_whatever_else_is_asked_for() -> None:
    faults = [Fault("500", 0.3), Fault("hang", 0.3)]
    paths = [f"/o/{n}" for n in range(200)]
    alone = dict(zip(paths, cast(faults, paths), strict=True))
    backwards = dict(zip(paths[::-1], cast(faults, paths[::-1]), strict=True))
    assert alone == backwards
    assert cast(faults, paths) == cast(faults, paths)
    assert cast(faults, paths) != cast(faults, paths, seed=1)
    assert cast(faults, paths) != cast(faults, paths, shop=1)


def test_faults_keep_to_their_hosts_and_paths() -> None:
    assert cast([Fault("500", 1.0, paths="/c/*")], ["/o/1", "/c/x"]) == [None, "500"]
    assert cast([Fault("500", 1.0, hosts="2")], ["/o/1"], shop=1) == [None]
    assert cast([Fault("500", 1.0, hosts="2")], ["/o/1"], shop=2) == ["500"]
    assert cast([Fault("500", 1.0, hosts="127.0.0.1:8*")], ["/o/1"]) == ["500"]
    assert cast([Fault("500", 0.0)], ["/o/1"] * 100) == [None] * 100


@pytest.mark.parametrize("size", [0, 1, 50_000, 1_000_003])
def test_junk_has_its_size(size: int) -> None:
    assert sum(map(len, junk(size))) == size


@pytest.mark.parametrize("size", [0, 1, 1 << 20, 2_500_000])
def test_a_bomb_is_valid_gzip(size: int) -> None:
    assert len(gzip.decompress(b"".join(bomb(size)))) == size


def test_a_bomb_of_a_gigabyte_starts_small_and_fast() -> None:
    pieces = bomb(10**9)
    opening = [next(pieces) for _ in range(4)]
    assert sum(map(len, opening)) < 10_000
    assert len(zlib.decompressobj(31).decompress(b"".join(opening))) > 3_000_000
