"""Which product a page is about."""

from __future__ import annotations

from collections.abc import Iterable

from salticus.extract.about import PageMetadata, SchemelessUrl, address, nearness
from salticus.extract.jsonld import Node
from salticus.extract.lazy import lazy
from salticus.extract.naming import akin, different, entitled, is_a, kinds, of_site, plain, same

_PRODUCTS = frozenset(
    {"Product", "ProductGroup", "ProductModel", "IndividualProduct", "SomeProducts", "Vehicle",
     "Car", "Motorcycle", "MotorizedBicycle"}
)  # fmt: skip
OFFERS = frozenset({"Offer", "AggregateOffer", "OfferForPurchase", "Offering"})
_LISTS = frozenset({"CollectionPage", "SearchResultsPage", "CheckoutPage", "OfferCatalog"})
_LISTED = frozenset({"ItemList", "OfferCatalog"})
_GIFTS = frozenset({"DonateAction"})
_READINGS = frozenset({"Article", "NewsArticle", "BlogPosting", "TechArticle", "Recipe"})
# Endings of kinds that have offers of others, or none that one buys.
_NOT_SOLD = (
    "Article", "Posting", "Page", "List", "Review", "Action", "Organization", "Catalog", "Person",
    "Business", "Store", "WebSite", "Recipe", "HowTo", "Brand", "Order", "Invoice", "Place",
    "ProfessionalService", "FinancialService", "LegalService", "Restaurant", "Agent", "NGO",
)  # fmt: skip


def is_list(nodes: Iterable[Node]) -> bool:
    """Whether the page says that it lists things, takes orders, or asks for gifts."""
    for node in nodes:
        main, action = node.get("mainEntity"), node.get("potentialAction")
        if isinstance(action, dict) and is_a(action, _GIFTS):
            return True
        if is_a(node, _LISTS | _GIFTS) or (isinstance(main, dict) and is_a(main, _LISTED)):
            return True
    return False


class Subject:
    """The nodes that a page states in one syntax, and the products among them that are the page's.

    `above` holds what other syntaxes said before, where an article or a list may have been
    declared; a product then has more to show to be the page's.
    """

    strict = False
    vague = False  # several products, of which nothing tells whether they are the same

    def __init__(
        self, nodes: list[Node], about: PageMetadata, above: list[Node] | None = None
    ) -> None:
        self.nodes = nodes
        self.about = about
        self.context = [*above, *nodes] if above else nodes
        if above is not None:
            self.strict = True

    @lazy
    def products(self) -> list[Node]:
        """The product of this page, as often as it is described; empty if nothing tells which."""
        if len(self.context) == 1 and self.nodes[0].get("@type") == "Product":
            return self.nodes if self.fits(self.nodes[0]) else []
        typed = [node for node in self.nodes if is_a(node, _PRODUCTS)]
        return self._main(typed or [node for node in self.nodes if _sells(node)])

    @lazy
    def crowded(self) -> bool:
        """Whether products are stated, and none of them is the page's."""
        return not self.products and any(is_a(n, _PRODUCTS) or _sells(n) for n in self.nodes)

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
        for node in self.nodes:
            main = node.get("mainEntity")
            if main is product or (isinstance(main, dict) and name and main.get("@id") == name):
                return True
        return False

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
