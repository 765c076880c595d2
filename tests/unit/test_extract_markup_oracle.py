"""The walker finds the properties that extruct finds, and raises nothing on anything."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from salticus.checks.extract import check_content
from salticus.extract.base import Content
from salticus.extract.markup import Markup
from salticus.extract.microdata import MICRODATA, RDFA, SHOWN, Walker

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    extruct = pytest.importorskip("extruct")

URL = "https://shop.example/p/kettle"
S = "https://schema.org/"

MICRODATA_PAGES = [
    f"""<div itemscope itemtype="{S}Product"><h1 itemprop="name">Blue
      kettle</h1><meta itemprop="sku" content="K-1"><img itemprop="image" src="/k.jpg">
      <span itemprop="brand" itemscope itemtype="{S}Brand"><b itemprop="name">Fernhill</b></span>
      <div itemprop="offers" itemscope itemtype="{S}Offer"><span
      itemprop="price" content="19.90">19,90 €</span>
      <meta itemprop="priceCurrency" content="EUR"><time itemprop="priceValidUntil"
      datetime="2030-01-01">soon</time>
      <link itemprop="availability" href="{S}InStock"></div></div>""",
    f"""<div itemscope itemtype="{S}Product" itemref="a b"><p itemprop="name">x</p></div>
      <p id="a"><b itemprop="sku">1</b></p><p id="b" itemprop="mpn">2</p>""",
    f"""<div itemscope itemtype="{S}Product"><p itemprop="name alternateName">x</p>
      <p itemprop="color">red</p><p itemprop="color">blue</p>
      <div itemprop="offers" itemscope itemtype="{S}AggregateOffer"><data itemprop="lowPrice"
      value="5">5 €</data><div itemprop="offers" itemscope itemtype="{S}Offer"><meter
      itemprop="price" value="5"></meter></div><div itemprop="offers" itemscope itemtype="{S}Offer">
      <b itemprop="price">6</b></div></div></div>
      <ol itemscope itemtype="{S}BreadcrumbList"><li itemprop="itemListElement" itemscope
      itemtype="{S}ListItem"><a itemprop="item" href="https://shop.example/"><span
      itemprop="name">Home</span></a><meta itemprop="position" content="1"></li></ol>""",
]

RDFA_PAGES = [
    f"""<div vocab="{S}" typeof="Product"><h1 property="name">Kettle</h1><div property="offers"
      typeof="Offer"><b property="price" content="19.90">19,90 €</b><i property="priceCurrency"
      content="EUR"></i><link property="availability" href="{S}InStock"></div>
      <span property="brand" typeof="Brand"><b property="name">Fernhill</b></span></div>""",
    f"""<div prefix="s: {S}" typeof="s:Product"><h1 property="s:name">Kettle</h1>
      <meta property="s:sku" content="K-1"></div>""",
]


def ours(page: str, rdfa: bool = False) -> list[Any]:
    walker = Walker(LexborHTMLParser(page), RDFA if rdfa else MICRODATA)
    return [plain(node) for node in walker.nodes()]


def plain(said: Any) -> Any:
    """Names without prefixes, text without layout, lists of one as what they hold."""
    if isinstance(said, dict):
        node = {short(key): plain(part) for key, part in said.items() if key not in ("@id", SHOWN)}
        return node.pop("@value", node) if set(node) <= {"@value"} else node
    if isinstance(said, list):
        return plain(said[0]) if len(said) == 1 else [plain(part) for part in said]
    return short(" ".join(said.split()))


def short(name: str) -> str:
    return name.removeprefix(S).removeprefix("https://shop.example")


def microdata(item: Any) -> Any:
    """An item of extruct in our form."""
    if isinstance(item, list):
        return [microdata(part) for part in item]
    if not isinstance(item, dict):
        return item
    own = {key: microdata(part) for key, part in item["properties"].items()}
    return {"@type": item["type"]} | own


def rdfa(nodes: list[Any]) -> Any:
    """The product among the nodes of extruct, with what it refers to in place."""
    named = {node["@id"]: node for node in nodes}

    def filled(said: Any) -> Any:
        if isinstance(said, list):
            return [filled(part) for part in said]
        if isinstance(said, dict) and said.get("@id") in named and "@type" not in said:
            return filled(named[said["@id"]])
        if isinstance(said, dict) and set(said) == {"@id"}:
            return said["@id"]
        return {k: filled(v) for k, v in said.items()} if isinstance(said, dict) else said

    products = [node for node in nodes if f"{S}Product" in node.get("@type", ())]
    return [plain(filled({k: v for k, v in node.items() if k != "@id"})) for node in products]


@pytest.mark.parametrize("page", MICRODATA_PAGES)
def test_microdata_is_what_extruct_finds(page: str) -> None:
    found = extruct.extract(page, base_url=URL, syntaxes=["microdata"])["microdata"]
    assert ours(page) == [plain(microdata(item)) for item in found]


@pytest.mark.parametrize("page", RDFA_PAGES)
@pytest.mark.filterwarnings("ignore")
def test_rdfa_is_what_extruct_finds(page: str) -> None:
    found = extruct.extract(f"<body>{page}", base_url=URL, syntaxes=["rdfa"])["rdfa"]
    assert ours(page, rdfa=True) == rdfa(found)


PIECES = st.sampled_from(
    [b"<div itemscope itemtype=https://schema.org/Product>", b"<p itemprop=offers itemscope>",
     b"<b itemprop=price>19,90 \xe2\x82\xac</b>", b"<b itemprop=price content=5>", b"</div>",
     b"<meta itemprop=priceCurrency content=EUR>", b"<div id=a itemref=a itemscope itemprop=x>",
     b"<div typeof=Product vocab=http://schema.org/>", b"<b property=offers typeof=Offer>",
     b"<b property=price>5", b"<meta property=og:price:amount content=7>", b"<h1>x", b"</h1>",
     b"<meta property=og:type content=product>", b"<html lang=de-AT>", b"<title>x</title>",
     b"</p>", b"</head>",
     b'<script type="application/ld+json">{"@type":"Product","offers":{"price":"1.299"}}</script>',
     b"<!--", b"-->", b"<template>", b"<del>", b"<table>",
     b"<link itemprop=availability href=InStock>"]
)  # fmt: skip
BODIES = st.lists(PIECES | st.binary(max_size=6), max_size=25).map(b"".join)
CHARSETS = st.sampled_from([None, "utf-8", "latin1", "utf-16", "gbk", "nonsense"])


@given(
    st.builds(Content, st.just(URL) | st.text(max_size=12), BODIES, st.just("text/html"), CHARSETS)
)
@settings(deadline=None, max_examples=100)
def test_markup_obeys_its_laws_on_any_bytes(content: Content) -> None:
    check_content(Markup(), content)
