"""Extraction: what a page means, apart from its bytes."""

BUILTIN = {
    "offer": "salticus.extract.offer:Offer",
    "text": "salticus.extract.text:Text",
}
