"""Extraction: what a page means, apart from its bytes."""

BUILTIN = {
    "markup": "salticus.extract.markup:Markup",
    "offer": "salticus.extract.offer:Offer",
    "source": "salticus.extract.source:Source",
    "text": "salticus.extract.text:Text",
}
