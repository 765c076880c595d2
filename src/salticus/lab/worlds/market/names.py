"""Names: of product lines, and of merchants and brands, made of syllables and not real."""

from __future__ import annotations

SERIES = (
    "Air", "Alpha", "Apex", "Arc", "Aura", "Basic", "Bold", "Breeze", "Classic", "Core",
    "Delta", "Duo", "Eco", "Edge", "Elite", "Essential", "Flex", "Fusion", "Grand", "Heritage",
    "Impact", "Junior", "Kinetic", "Lite", "Loft", "Max", "Mini", "Modern", "Nano", "Nova",
    "Omega", "One", "Original", "Plus", "Prime", "Pro", "Pulse", "Quantum", "Rapid", "Retro",
    "Select", "Signature", "Smart", "Studio", "Swift", "Terra", "Trail", "Ultra", "Urban",
    "Vintage", "Vista", "Wave",
)  # fmt: skip
"""Words in titles that tell the product line of an offer."""

_SYLLABLES = (
    "ba", "be", "bo", "da", "de", "di", "do", "fa", "fe", "fi", "ga", "go", "ha", "he", "ka",
    "ke", "ki", "la", "le", "li", "lo", "lu", "ma", "me", "mi", "mo", "na", "ne", "ni", "no",
    "pa", "pe", "ra", "re", "ri", "ro", "sa", "se", "ta", "va",
)  # fmt: skip
_STEP = 7919  # a prime, so that neighbours do not sound alike


def names(count: int, ending: str) -> list[str]:
    """So many different names with the same ending.

    >>> names(3, "rix")
    ['Bababarix', 'Desevarix', 'Firotarix']
    """
    base, length = len(_SYLLABLES), 3
    while base**length < count:
        length += 1
    return [_name(number * _STEP % base**length, length) + ending for number in range(count)]


def _name(number: int, length: int) -> str:
    digits = (number // len(_SYLLABLES) ** place % len(_SYLLABLES) for place in range(length))
    return "".join(_SYLLABLES[digit] for digit in reversed([*digits])).capitalize()
