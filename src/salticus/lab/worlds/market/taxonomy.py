"""Product categories, how common each is and how often its prices change; product lines."""

from __future__ import annotations

from typing import NamedTuple


class Leaf(NamedTuple):
    """A category that offers are in. `factor` is how often its prices change beside the average."""

    top: str
    path: str
    weight: float
    factor: float


# top-level category: weight, factor, leaves below it with the factor of each beside its siblings.
# Han 2019 (Fig. 5): Software changes most, for its Virtual Currency; then Electronics and Media;
# Business & Industrial and Religious & Ceremonial least. The order of the others is free.
_TREE: dict[str, tuple[float, float, dict[str, float]]] = {
    "Animals & Pet Supplies": (4, 0.90, {
        "Pet Supplies > Dog Supplies": 1.1, "Pet Supplies > Cat Supplies": 1.0,
        "Pet Supplies > Fish Supplies": 0.9,
    }),
    "Apparel & Accessories": (16, 0.95, {
        "Clothing > Dresses": 1.1, "Clothing > Outerwear": 1.05, "Clothing > Shirts & Tops": 0.95,
        "Jewelry > Rings": 0.85, "Jewelry > Watches": 1.15, "Shoes": 1.0,
    }),
    "Arts & Entertainment": (3, 0.85, {
        "Hobbies & Creative Arts > Musical Instruments": 1.1,
        "Hobbies & Creative Arts > Collectibles": 0.9, "Party & Celebration": 1.0,
    }),
    "Baby & Toddler": (3, 0.95, {
        "Baby Transport > Baby Strollers": 1.1, "Diapering": 0.95, "Nursing & Feeding": 0.95,
    }),
    "Business & Industrial": (4, 0.50, {
        "Material Handling": 0.9, "Medical": 1.0, "Signage": 1.1,
    }),
    "Cameras & Optics": (3, 1.10, {
        "Cameras > Digital Cameras": 1.15, "Camera & Optic Accessories": 0.9, "Optics": 0.95,
    }),
    "Electronics": (9, 1.60, {
        "Audio > Audio Players & Recorders": 0.95,
        "Communications > Telephony > Mobile Phones": 1.2,
        "Computers > Laptops": 1.15, "Computers > Tablet Computers": 1.1,
        "Electronics Accessories > Computer Components": 0.9, "Video > Televisions": 0.95,
    }),
    "Food, Beverages & Tobacco": (4, 0.95, {
        "Beverages > Coffee": 1.1, "Beverages > Wine": 0.9, "Food Items > Snack Foods": 1.0,
    }),
    "Furniture": (5, 0.85, {
        "Beds & Accessories": 1.0, "Chairs": 1.05, "Sofas": 1.05, "Tables": 0.9,
    }),
    "Hardware": (6, 0.80, {
        "Building Materials": 0.9, "Plumbing": 0.95, "Power & Electrical Supplies": 1.0,
        "Tools": 1.15,
    }),
    "Health & Beauty": (6, 1.05, {
        "Health Care > Vitamins & Supplements": 1.05, "Personal Care > Cosmetics > Perfume": 1.15,
        "Personal Care > Cosmetics > Skin Care": 0.95, "Personal Care > Hair Care": 0.85,
    }),
    "Home & Garden": (11, 0.95, {
        "Decor": 0.85, "Household Appliances > Vacuums": 1.25, "Kitchen & Dining": 1.1,
        "Lawn & Garden": 0.95, "Lighting": 0.9, "Linens & Bedding": 0.95,
    }),
    "Luggage & Bags": (2, 0.95, {"Backpacks": 1.0, "Suitcases": 1.0}),
    "Media": (6, 1.50, {
        "Books > Print Books": 1.05, "DVDs & Videos": 1.0, "Music & Sound Recordings": 0.9,
    }),
    "Office Supplies": (3, 0.80, {
        "Book Accessories": 0.9, "Office Equipment": 1.1, "Paper Handling": 1.0,
    }),
    "Religious & Ceremonial": (2, 0.42, {"Religious Items": 1.0, "Wedding Ceremony Supplies": 1.0}),
    "Software": (2, 2.30, {
        "Computer Software": 0.75, "Digital Goods & Currency > Virtual Currency": 1.6,
        "Video Game Software": 1.0,
    }),
    "Sporting Goods": (5, 0.95, {
        "Exercise & Fitness": 1.05, "Outdoor Recreation > Camping & Hiking": 1.0,
        "Outdoor Recreation > Cycling": 1.0, "Team Sports": 0.9,
    }),
    "Toys & Games": (4, 1.05, {"Games": 1.0, "Puzzles": 0.9, "Toys > Building Toys": 1.1}),
    "Vehicles & Parts": (6, 0.75, {
        "Vehicle Parts & Accessories > Motor Vehicle Parts": 0.9,
        "Vehicle Parts & Accessories > Motor Vehicle Tires": 1.2,
    }),
}  # fmt: skip

TOPS = tuple(_TREE)
"""The categories at the top, in order of the alphabet; a top is known by its place here."""

LEAVES = tuple(
    Leaf(top, f"{top} > {rest}", weight / len(below), factor * own)
    for top, (weight, factor, below) in _TREE.items()
    for rest, own in below.items()
)
"""The categories that offers are in; a leaf is known by its place here."""

SERIES = (
    "Air", "Alpha", "Apex", "Arc", "Aura", "Basic", "Bold", "Breeze", "Classic", "Core",
    "Delta", "Duo", "Eco", "Edge", "Elite", "Essential", "Flex", "Fusion", "Grand", "Heritage",
    "Impact", "Junior", "Kinetic", "Lite", "Loft", "Max", "Mini", "Modern", "Nano", "Nova",
    "Omega", "One", "Original", "Plus", "Prime", "Pro", "Pulse", "Quantum", "Rapid", "Retro",
    "Select", "Signature", "Smart", "Studio", "Swift", "Terra", "Trail", "Ultra", "Urban",
    "Vintage", "Vista", "Wave",
)  # fmt: skip
"""Words in titles that tell the product line of an offer."""
