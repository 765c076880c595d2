"""schema.org's words for stock and state, in every usual spelling and in plain languages."""

from __future__ import annotations

import re
from typing import Any

_GAPS = re.compile(r"[\s_-]")
_LONGEST = 120


def _words(*words: str) -> dict[str, str]:
    """Every usual spelling of schema.org's words; the rest is left to `_word`."""
    spelt = ("{}", "https://schema.org/{}", "http://schema.org/{}")
    usual = {spelling.format(word): word for word in words for spelling in spelt}
    return usual | {word.lower(): word for word in words}


_AVAILABILITY = _words(
    "BackOrder", "Discontinued", "InStock", "InStoreOnly", "LimitedAvailability", "MadeToOrder",
    "OnlineOnly", "OutOfStock", "PreOrder", "PreSale", "Reserved", "SoldOut",
)  # fmt: skip
_AVAILABILITY |= {"oos": "OutOfStock", "notinstock": "OutOfStock", "nostock": "OutOfStock"}
_STATES = {
    "Damaged": "damaged",
    "New": "new neu neuf nuovo nuevo novo nieuw nowy nové ny új новый новое yeni 新品 새상품",
    "Refurbished": "refurbished generalüberholt reconditionné ricondizionato reacondicionado",
    "Used": "used gebraucht occasion usato usado gebruikt tweedehands używany použité begagnad"
    " brugt brukt használt 中古 중고",
}
_CONDITION = _words(*(f"{state}Condition" for state in _STATES)) | {
    word: f"{state}Condition" for state, words in _STATES.items() for word in words.split()
}

# What shops write for people. A phrase counts wherever it stands, and the first line that has one
# wins: "nicht auf Lager" contains "auf Lager".
_PHRASES = {
    "Discontinued": """
        discontinued|no longer available|nicht mehr lieferbar|nicht mehr verfügbar|auslaufmodell|
        plus commercialisé|fuori produzione|descatalogado|fora de linha|niet meer leverbaar|
        wycofany|ukončen|utgått|udgået|снят с производства|販売終了|生産終了|단종""",
    "PreOrder": """
        pre-order|preorder|pre order|vorbestell|précommande|pré-commande|preordin|prenota|
        reserva anticipada|preventa|pré-venda|reserveer|przedsprzedaż|předobjedn|förbeställ|
        forudbestil|forhåndsbestill|előrendel|предзаказ|ön sipariş|予約|예약|coming soon|
        not yet available|noch nicht|demnächst|bientôt|próximamente|prossimamente|em breve""",
    "BackOrder": """
        back-order|backorder|back order|available for order|nachbestell|auf bestellung|sur commande|
        su ordinazione|bajo pedido|sob encomenda|op bestelling|na zamówienie|na objednávku|
        beställningsvara|bestillingsvare|rendelésre|под заказ|取り寄せ""",
    "SoldOut": """
        sold out|soldout|ausverkauft|uitverkocht|slutsåld|udsolgt|utsolgt|vyprodáno|wyprzedane|
        esaurito|agotado|esgotado|épuisé|распродан|tükendi|売り切れ|完売|품절|hết hàng""",
    "OutOfStock": """
        out of stock|out-of-stock|not in stock|not available|unavailable|no stock|nicht auf lager|
        nicht vorrätig|nicht verfügbar|nicht lieferbar|derzeit nicht|rupture|indisponible|
        pas en stock|non disponib|non in magazzino|sin stock|sin existencias|no disponible|
        fuera de stock|indispon|sem estoque|sem stock|fora de estoque|fora de stock|
        niet op voorraad|niet leverbaar|niet beschikbaar|brak w magazynie|niedostępn|brak towaru|
        není skladem|nedostupn|ej i lager|inte i lager|slut i lager|ikke på lager|ikke tilgængelig|
        nincs készlet|nincs raktár|nem elérhető|elfogyott|нет в наличии|отсутствует|
        немає в наявності|stokta yok|stok yok|stokta bulunm|在庫なし|在庫切れ|缺货|缺貨|재고 없음|
        일시품절|स्टॉक में नहीं|غير متوفر|غير متاح|stok habis|tidak tersedia|สินค้าหมด|epuizat|
        stoc epuizat|indisponibil|loppu|ei varastossa|εξαντλ|μη διαθέσιμο""",
    "LimitedAvailability": """
        limited availability|limited stock|low stock|nur noch|plus que|stock limité|
        derniers articles|ultimi pezzi|últimas unidades|bijna uitverkocht|ostatnie sztuki|
        poslední kus|残りわずか""",
    "InStoreOnly": """
        in store only|in-store only|nur in der filiale|nur im laden|uniquement en magasin|
        solo en tienda|solo in negozio""",
    "InStock": """
        in stock|in-stock|available|auf lager|vorrätig|sofort lieferbar|lieferbar|verfügbar|
        en stock|disponib|in magazzino|pronta consegna|en existencia|hay stock|em estoque|em stock|
        disponív|op voorraad|leverbaar|beschikbaar|w magazynie|na stanie|dostępn|skladem|dostupn|
        i lager|på lager|finns i|tilgængelig|raktáron|készleten|elérhető|в наличии|есть в наличии|
        в наявності|stokta|stokta var|在庫あり|在庫有|有货|現貨|现货|재고 있음|구매 가능|स्टॉक में|
        उपलब्ध|متوفر|متاح|còn hàng|tersedia|stok tersedia|มีสินค้า|in stoc|în stoc|varastossa|
        διαθέσιμο""",
}
_PLAIN = {word: [said.strip() for said in raw.split("|")] for word, raw in _PHRASES.items()}
_DENIED = re.compile(
    r"\b(?:not|no|nicht|kein|keine|pas|non|sin|não|sem|niet|geen|nie|není|inte|ej|ikke|nem|nincs"
    r"|не|нет|yok|değil)\b"
)


def availability(raw: Any) -> str:
    """The last part of a schema.org ItemAvailability; empty when unknown.

    >>> availability("http://schema.org/InStock"), availability("in stock"), availability("yes")
    ('InStock', 'InStock', '')
    >>> availability("Lieferstatus: nicht auf Lager")
    'OutOfStock'
    """
    if type(raw) is str and raw in _AVAILABILITY:
        return _AVAILABILITY[raw]
    return _word(raw, _AVAILABILITY) or _plain(first(raw, "@id", "name"))


def condition(raw: Any) -> str:
    """The last part of a schema.org OfferItemCondition; empty when unknown.

    >>> condition("https://schema.org/UsedCondition"), condition("neu")
    ('UsedCondition', 'NewCondition')
    """
    if type(raw) is str and raw in _CONDITION:
        return _CONDITION[raw]
    return _word(raw, _CONDITION)


def first(raw: Any, *keys: str) -> Any:
    """What a property states: of a list the first, of a node what the first of the keys says."""
    if isinstance(raw, list) and raw:
        raw = raw[0]
    return next(filter(None, map(raw.get, keys)), None) if isinstance(raw, dict) else raw


def several(raw: Any, most: int | None = None) -> list[Any]:
    """All that a property states, at most so many."""
    return raw[:most] if isinstance(raw, list) else [raw]


def _word(raw: Any, known: dict[str, str]) -> str:
    raw = first(raw, "@id", "name")
    if not isinstance(raw, str) or len(raw) > _LONGEST:
        return ""
    return known.get(raw) or known.get(_GAPS.sub("", term(raw)).lower(), "")


def _plain(raw: Any) -> str:
    if not isinstance(raw, str) or len(raw) > _LONGEST or "://" in raw:
        return ""
    text = " ".join(raw.lower().split())
    for word, phrases in _PLAIN.items():
        if any(phrase in text for phrase in phrases):
            denied = word in ("InStock", "LimitedAvailability") and _DENIED.search(text)
            return "OutOfStock" if denied else word
    return ""


def term(name: str) -> str:
    """A schema.org name without its prefix.

    >>> term("https://schema.org/Product"), term("schema:Product"), term("Product")
    ('Product', 'Product', 'Product')
    """
    return name.strip().rstrip("/").rpartition("/")[2].rpartition(":")[2].rpartition("#")[2]
