"""Which of the offers of a page counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from salticus.extract.about import PageMetadata, SchemelessUrl, address, lazy, nearness
from salticus.extract.jsonld import Node
from salticus.extract.naming import akin, different, entitled, is_a, kinds, of_site, plain, same
from salticus.extract.price import price
from salticus.extract.stated import Sale, for_sale, readiness, sale, stock
from salticus.extract.words import several

MAX_OFFERS = 200
MAX_DEPTH = 6

_PRODUCTS = frozenset(
    {"Product", "ProductGroup", "ProductModel", "IndividualProduct", "SomeProducts", "Vehicle",
     "Car", "Motorcycle", "MotorizedBicycle"}
)  # fmt: skip
OFFERS = frozenset({"Offer", "AggregateOffer", "OfferForPurchase", "Offering"})
_LISTED = frozenset({"ItemList", "OfferCatalog"})
_GIFTS = frozenset({"DonateAction"})
_LISTS = frozenset({"CollectionPage", "SearchResultsPage", "CheckoutPage", "OfferCatalog"}) | _GIFTS
_READINGS = frozenset({"Article", "NewsArticle", "BlogPosting", "TechArticle", "Recipe"})
# Endings of kinds that have offers of others, or none that one buys.
_NOT_SOLD = (
    "Article", "Posting", "Page", "List", "Review", "Action", "Organization", "Catalog", "Person",
    "Business", "Store", "WebSite", "Recipe", "HowTo", "Brand", "Order", "Invoice", "Place",
    "ProfessionalService", "FinancialService", "LegalService", "Restaurant", "Agent", "NGO",
)  # fmt: skip
_PLANS = frozenset({"SoftwareApplication", "WebApplication", "MobileApplication", "Service"})
_VARIANTS = frozenset({"hasVariant", "model"})
_INHERITED = frozenset({"priceCurrency", "availability", "itemCondition", "offerCount"})
_SELECTING = (
    "sku", "productID", "mpn", "gtin", "gtin8", "gtin12", "gtin13", "gtin14", "identifier", "@id",
    "color", "size", "material", "pattern",
)  # fmt: skip


def is_list(nodes: Iterable[Node]) -> bool:
    """Whether the page says that it lists things, takes orders, or asks for gifts."""
    return any(
        is_a(node, _LISTS)
        or is_a(node.get("mainEntity"), _LISTED)
        or is_a(node.get("potentialAction"), _GIFTS)
        for node in nodes
    )


class Subject:
    """The nodes that a page states in one syntax, and the products among them that are the page's.

    `above` holds what other syntaxes said before, where an article or a list may have been
    declared; a product then has more to show to be the page's.
    """

    vague = False  # several products, of which nothing tells whether they are the same

    def __init__(
        self, nodes: list[Node], about: PageMetadata, above: list[Node] | None = None
    ) -> None:
        self.nodes = nodes
        self.about = about
        self.context = [*above, *nodes] if above else nodes
        self.strict = above is not None

    @lazy
    def products(self) -> list[Node]:
        """The product of this page, as often as it is described; empty if nothing tells which."""
        if len(self.context) == 1 and self.nodes[0].get("@type") == "Product":
            return self.nodes if self.fits(self.nodes[0]) else []
        typed = [node for node in self.nodes if is_a(node, _PRODUCTS)]
        return self._main(typed or [node for node in self.nodes if _sells(node)])

    def _main(self, products: list[Node]) -> list[Node]:
        if len(self.context) > 1 and any(self._reading(node) for node in self.context):
            products = [node for node in products if self._nearness(node) or self._marked(node)]
        if len(products) <= 1:
            return products if products and self.fits(products[0]) else []
        marked = [node for node in products if self._marked(node)]
        near = [self._nearness(node) for node in products]
        best = max(near)
        if not marked and not best:
            return self._entitled(products)
        lead = marked[0] if marked else products[near.index(best)]
        found = [
            node
            for node, rank in zip(products, near, strict=True)
            if (not marked and rank == best) or same(node, lead)
        ]
        alike = marked or not any(different(lead, node) for node in found)
        return found if alike or self._variants(found) else self._entitled(found)

    def _variants(self, products: list[Node]) -> bool:
        """Whether the names of all products begin with, or contain, one title of the page."""
        names = [plain(node.get("name")) for node in products]
        titles = filter(None, map(plain, self.about.titles))
        return any(all(title in name for name in names) for title in titles)

    def fits(self, product: Node) -> bool:
        """Whether the only product is the page's: not if it has an address or a name of its own.

        Titles are asked for more likeness where more speaks against it.
        """
        name = product.get("name")
        if name is None or (type(name) is str and "url" not in product and self.about.names(name)):
            return True
        if self._elsewhere(product):
            return not self.about.errand and akin(product, self.about.titles, 0.7)
        titles = [title for title in self.about.titles if not of_site(title, self.about)]
        if self._nearness(product) or not (self.about.headings or titles[1:]):
            return True
        return akin(product, titles, 0.6 if self.strict else 0.0)

    def _reading(self, node: Node) -> bool:
        """Whether a node says that the page is an article."""
        named = any(node.get(key) for key in ("url", "@id", "mainEntityOfPage"))
        return is_a(node, _READINGS) and (not named or self._nearness(node) > 0)

    def _elsewhere(self, product: Node) -> bool:
        """Whether a product states an address that is not the page's."""
        stated = product.get("url")
        if stated is None or self.about.own is None:
            return False
        where = address(stated, self.about.url)
        return where is not None and where.path != "" and not self._nearness(product)

    def _entitled(self, products: list[Node]) -> list[Node]:
        """The product that has the page's title; all, if they may be one and the same."""
        if not any(different(products[0], node) for node in products[1:]):
            return self._perhaps_one(products)
        titles = () if self.about.errand else self.about.titles
        fit = [entitled(node, titles) for node in products]
        best = max(fit)
        leads = [node for node, rank in zip(products, fit, strict=True) if rank == best]
        lead = max(leads, key=lambda node: len(plain(node.get("name"))))
        if not best or any(different(lead, node) for node in leads):
            return []
        return [node for node in products if node is lead or same(node, lead)]

    def _perhaps_one(self, products: list[Node]) -> list[Node]:
        """Products that nothing tells apart, and nothing calls the same: the title may."""
        if all(same(products[0], node) for node in products):
            return products if self.fits(products[0]) else []
        lead = next((node for node in products if entitled(node, self.about.titles) == 2), None)
        self.vague = lead is None
        found = products if lead is None else [node for node in products if same(node, lead)]
        return found if self.fits(found[0]) else []

    def _marked(self, product: Node) -> bool:
        """Whether another node calls it the main thing of the page."""
        name = product.get("@id")
        mains = (main for node in self.nodes if isinstance(main := node.get("mainEntity"), dict))
        return any(main is product or (name and main.get("@id") == name) for main in mains)

    def _nearness(self, node: Node) -> int:
        """How near the nearest address of a node is to the page's."""
        main = node.get("mainEntityOfPage")
        main = main.get("@id") or main.get("url") if isinstance(main, dict) else main
        stated = (address(raw, self.about.url) for raw in (node.get("url"), node.get("@id"), main))
        return max((self._rank(where) for where in stated if where), default=0)

    def _rank(self, where: SchemelessUrl) -> int:
        if own := nearness(where, self.about.own):
            return own
        return max((min(1, nearness(where, other)) for other in self.about.addresses), default=0)


def _sells(node: Node) -> bool:
    """Whether a node that is no Product has offers all the same, as events and apps do."""
    if "offers" not in node or is_a(node, OFFERS):
        return False
    return not any(kind.endswith(_NOT_SOLD) for kind in kinds(node))


class ChosenOffer(Subject):
    """The offer that counts among those of the page's product, with what is known of both."""

    left = MAX_OFFERS  # that may still be looked at: references may run in rings

    @lazy
    def product(self) -> Node:
        """What is known of the product; the offer itself if there is no other."""
        if self.products:
            of = self.sale.product if self.sale else self.products[0]
            return next((p for p in self.products if same(of, p)), self.products[0])
        return self.sale.product if self.sale else {}

    @lazy
    def sale(self) -> Sale | None:
        if len(self.context) > 1 and is_list(self.context):
            return None
        options = [found for product in self.products if (found := self._within(product, 0))]
        if self.vague and len({found.amount for found in options}) > 1:
            return None
        return self._best(options) or self._loose()

    @property
    def stock(self) -> str:
        """The first availability that an offer of the product states, with a price or without."""
        every = (o for p in self.products for o in (*self._listed(p.get("offers")), p))
        return next(filter(None, (stock(offer, {}) for offer in every)), "")

    def _within(self, node: Node, depth: int) -> Sale | None:
        """The sale that counts among a node's offers and its variants' offers."""
        if depth > MAX_DEPTH:
            return None
        alone = _VARIANTS.isdisjoint(node)
        only = node.get("offers")
        if alone and type(only) is dict and "@id" not in only:  # nearly all pages
            return self._sale(only, node, depth)
        offers = self._offered(node, depth)
        if alone:
            return offers[0] if len(offers) == 1 else self._best(offers, plans=is_a(node, _PLANS))
        variants = [
            found
            for key in sorted(_VARIANTS.intersection(node))
            for variant in self._listed(node[key])
            if (found := self._within(variant, depth + 1))
        ]
        selected = _narrowed(variants, [self._selected(s) for s in variants])
        return selected or self._best(offers or variants, plans=is_a(node, _PLANS))

    def _offered(self, node: Node, depth: int) -> list[Sale]:
        found = [self._sale(offer, node, depth) for offer in self._listed(node.get("offers"))]
        if not found and ("price" in node or "lowPrice" in node):
            found = [sale(node, node, self.about)]
        return [one for one in found if one]

    def _sale(self, offer: Node, product: Node, depth: int) -> Sale | None:
        item = offer.get("itemOffered")
        if not for_sale(offer) or (isinstance(item, dict) and different(item, product)):
            return None
        plans = "highPrice" in offer and is_a(product, _PLANS)  # from which one chooses
        if plans and price(offer["highPrice"]) != price(offer.get("lowPrice")):
            return None
        if "offers" not in offer or depth >= MAX_DEPTH:
            return sale(offer, product, self.about)
        inner = self._offered(offer, depth + 1)
        found = _narrowed(inner, [self._selected(s) for s in inner])
        if found is None and (own := sale(offer, product, self.about)):
            return own
        found = found or self._best(inner)
        return self._known(found, offer, product) if found else None

    def _known(self, inner: Sale, offer: Node, product: Node) -> Sale:
        """An offer inside another, with what only the outer one tells."""
        outer = {key: part for key, part in offer.items() if key in _INHERITED}
        whole = inner._replace(offer={**outer, **inner.offer}, product=product)
        return whole if inner.currency else (sale(whole.offer, product, self.about) or whole)

    def _best(self, sales: list[Sale], *, plans: bool = False) -> Sale | None:
        """The one that the page's address selects, else the first in stock, else the first."""
        if len(sales) <= 1:
            return sales[0] if sales else None
        near = [self._selected(s) for s in sales]
        if found := _narrowed(sales, near):
            return found
        if plans and len({s.amount for s in sales}) > 1:
            return None
        ranks = [
            (rank, self._for_here(s), readiness(stock(s.offer, s.product)))
            for s, rank in zip(sales, near, strict=True)
        ]
        return sales[ranks.index(max(ranks))]

    def _for_here(self, found: Sale) -> bool:
        """Whether an offer is meant for the country of the page."""
        region = found.offer.get("eligibleRegion")
        region = region.get("name") if isinstance(region, dict) else region
        return region is not None and self.about.country in several(region)

    def _selected(self, found: Sale) -> tuple[int, int]:
        """How much of the page's address points at a sale, where 2 and more select it, and how
        many words of the query do."""
        nodes = (found.offer, found.product)
        where = (address(n.get(key), self.about.url) for n in nodes for key in ("url", "@id"))
        near = max((nearness(one, self.about.own) for one in where if one), default=0)
        words = (n.get(key) for n in nodes for key in _SELECTING)
        said = {str(w).casefold().lstrip("#") for w in words if isinstance(w, str | int)}
        hits = len(said & self.about.asked)
        return (max(near, 2) if hits or said & self.about.steps else near), hits

    def _loose(self) -> Sale | None:
        """An offer that stands beside its product, or alone."""
        if not self.products and any(is_a(n, _PRODUCTS) or _sells(n) for n in self.nodes):
            return None  # none of these is the page's
        sales: list[Sale] = []
        for offer in (node for node in self.nodes if is_a(node, OFFERS) and for_sale(node)):
            item = self._resolved(offer.get("itemOffered")) or offer
            known = any(same(item, p) for p in self.products) if self.products else self.fits(item)
            if known and (found := self._sale(offer, item, 0)):
                sales.append(found)
        if not self.products and any(different(sales[0].product, s.product) for s in sales[1:]):
            return None
        return self._best(sales)

    def _listed(self, raw: Any) -> list[Node]:
        """The nodes that a property holds."""
        if raw is None:
            return []
        items = [part for item in several(raw) for part in several(item)]
        taken, self.left = items[: self.left], max(0, self.left - len(items))
        if isinstance(raw, dict) and "@id" not in raw:
            return taken
        return list(filter(None, map(self._resolved, taken)))

    def _resolved(self, raw: Any) -> Node | None:
        """The node itself, or the one at the top of the page that it refers to."""
        if isinstance(raw, dict) and _full(raw):
            return raw
        name = raw.get("@id") if isinstance(raw, dict) else raw
        return self._named.get(name) if isinstance(name, str) else None

    def resolved(self, raw: Any) -> Any:
        """What a property says, or the node that it refers to."""
        return self._resolved(raw) if isinstance(raw, dict) else raw

    @lazy
    def _named(self) -> dict[str, Node]:
        ids = ((node.get("@id"), node) for node in reversed(self.nodes) if _full(node))
        return {name: node for name, node in ids if isinstance(name, str)}


def _full(node: Node) -> bool:
    """Whether a node says anything, rather than refer to one that does."""
    return not node.keys() <= {"@id", "@type"}


def _narrowed(sales: list[Sale], ranks: list[tuple[int, int]]) -> Sale | None:
    """The sale that the page's address selects; None if it selects none, or all alike."""
    top = max(ranks, default=(0, 0))
    if top[0] < 2 or (len(ranks) > 1 and min(ranks) == top):
        return None
    best = [s for s, rank in zip(sales, ranks, strict=True) if rank == top]
    return max(best, key=lambda s: readiness(stock(s.offer, s.product)))
