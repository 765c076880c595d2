"""`open_store` is the one way in: stores by path, by URL, by file, and those that are missing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.config import load
from salticus.config.file import beside, split_url
from salticus.crawl.opening import holder_of
from salticus.errors import PluginError, StoreMissing
from salticus.store import BUILTIN, open_store
from salticus.store.base import Store
from salticus.types import NewPage

PAGE = NewPage("http://a.example/")


async def grown(url: str) -> int:
    """Add a page; how many there are then."""
    store = await open_store(url)
    try:
        await store.add([PAGE], at=0)
        await store.add([NewPage("http://b.example/")], at=0)
        return (await store.summary()).pages
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("url", "kind", "place"),
    [
        ("salticus.db", "sqlite", "salticus.db"),
        ("/a/b:c.db", "sqlite", "/a/b:c.db"),
        ("a/b:c.db", "sqlite", "a/b:c.db"),
        ("sqlite:b:c.db", "sqlite", "b:c.db"),
        ("sqlite:/a/b.db", "sqlite", "/a/b.db"),
        ("memory:", "memory", ""),
        ("memory:a/b.py:c", "memory", "a/b.py:c"),
        ("post-gres://me@host/name", "post-gres", "//me@host/name"),
        ("a/mine.py:Mine", "a/mine.py:Mine", ""),
        ("a/mine.py:Mine:b:c", "a/mine.py:Mine", "b:c"),
        ("package.stores:Mine:there", "package.stores:Mine", "there"),
    ],
)
def test_a_url_names_a_kind_of_store_and_a_place(url: str, kind: str, place: str) -> None:
    assert split_url(url) == (kind, place)


@given(st.text(st.characters(exclude_characters=":"), min_size=1))
def test_what_has_no_colon_is_a_path(path: str) -> None:
    assert split_url(path) == ("sqlite", path)


@given(st.sampled_from(sorted(BUILTIN)), st.text())
def test_the_place_is_all_behind_the_name(kind: str, place: str) -> None:
    assert split_url(f"{kind}:{place}") == (kind, place)


def test_paths_are_those_beside_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "salticus.toml"
    for said, meant in (
        ("x.db", f"{tmp_path}/x.db"),
        ("sqlite:x.db", f"sqlite:{tmp_path}/x.db"),
        ("/x/y.db", "/x/y.db"),
        ("sqlite:/x/y.db", "sqlite:/x/y.db"),
        ("memory:x", "memory:x"),
    ):
        file.write_text(f'store = "{said}"\n')
        assert load(file).store == meant == beside(tmp_path, said)


def test_a_path_and_its_url_are_one_store(tmp_path: Path) -> None:
    assert asyncio.run(grown(f"{tmp_path}/a.db")) == 2
    assert asyncio.run(grown(f"sqlite:{tmp_path}/a.db")) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


def test_a_name_in_memory_is_one_store_and_none_is_a_new_one() -> None:
    async def main() -> tuple[bool, bool]:
        one, again, other = [await open_store(f"memory:{name}") for name in ("one", "one", "two")]
        new, newer = [await open_store("memory:") for _ in range(2)]
        return one is again, one is other or new is newer

    assert asyncio.run(main()) == (True, False)


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for url in (f"{tmp_path}/a.db", f"sqlite:{tmp_path}/a.db", "memory:", "memory:nowhere"):
        with pytest.raises(StoreMissing):
            asyncio.run(open_store(url, create=False))
    assert list(tmp_path.iterdir()) == []


def test_who_holds_a_store_is_asked_without_making_it(tmp_path: Path) -> None:
    file = tmp_path / "salticus.toml"
    file.write_text('store = "x.db"\n')
    assert asyncio.run(holder_of(load(file))) is None
    assert not (tmp_path / "x.db").exists()


def test_a_store_of_ones_own_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        dedent(
            """
            from salticus.testing import MemoryStore

            class Mine(MemoryStore):
                @classmethod
                async def open(cls, place, *, keep_content=True, create=True):
                    store = await super().open("", keep_content=keep_content)
                    store.place = place
                    return store
            """
        )
    )

    async def main() -> Store:
        return await open_store(f"{tmp_path}/mine.py:Mine:over/there", keep_content=False)

    store = asyncio.run(main())
    assert (store.place, store.keep_content) == ("over/there", False)  # type: ignore[attr-defined]


def test_an_unknown_kind_is_named_with_those_that_are_known() -> None:
    with pytest.raises(PluginError, match="no store is called 'nosuch'; known: memory, sqlite"):
        asyncio.run(open_store("nosuch:x"))


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_bodies_are_kept_only_if_wanted(kind: str, keep: bool, tmp_path: Path) -> None:
    from salticus.checks.store_samples import visit
    from salticus.types import Record

    async def main() -> tuple[bytes, str] | None:
        store = await open_store(f"{kind}:{tmp_path}/a.db", keep_content=keep)
        await store.add([PAGE], at=0)
        page = (await store.page(PAGE.url)).page
        await store.record([Record(visit(1, page), (), b"body", "text/html")])
        found = await store.content(page)
        await store.close()
        return found

    assert asyncio.run(main()) == ((b"body", "text/html") if keep else None)
