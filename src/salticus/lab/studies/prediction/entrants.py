"""Who is compared: the published models, and ours."""

from __future__ import annotations

from dataclasses import dataclass

from salticus.errors import ConfigError
from salticus.features.names import FeatureSet, chosen
from salticus.lab.studies.prediction.published import NAMES
from salticus.models.linear import HAN2019, columns_of


@dataclass(frozen=True, slots=True)
class Entrant:
    """A model and what it may know. `which` names a baseline; `published`: with the settings of
    the paper, otherwise with ours."""

    key: str
    name: str
    kind: str
    preset: str = "han2019"
    features: str = "both"
    which: str = ""
    published: bool = False

    @property
    def sighted(self) -> bool:
        """Whether it sees any history, so that it matters what was observed."""
        return self.features != "metadata"

    def choice(self, edges: tuple[int, ...]) -> FeatureSet:
        """The features that it uses."""
        if self.kind == "frequency":
            return FeatureSet(columns_of(self.which), ())
        return chosen(self.preset, self.features, edges)


def baseline(which: str, name: str = "") -> Entrant:
    """A baseline of `predict.linear`, or one feature by itself."""
    return Entrant(which, name or NAMES.get(which, which), "frequency", which=which)


CHANGES = (
    *(baseline(which) for which in (*HAN2019[4:], *HAN2019[:4], "combined")),
    baseline("gamma", "Gamma posterior (offer)"),
    Entrant("dnn_metadata", NAMES["dnn_metadata"], "dnn", features="metadata", published=True),
    Entrant("dnn_both", NAMES["dnn_both"], "dnn", published=True),
    Entrant("metadata", "ours: DNN, metadata", "dnn", "full", "metadata"),
    Entrant("dnn", "ours: DNN, all features", "dnn", "full"),
    Entrant("trees_metadata", "ours: trees, metadata", "trees", "full", "metadata"),
    Entrant("trees", "ours: trees, all features", "trees", "full"),
    Entrant("sequence", "ours: sequence, all features", "sequence", "full"),
)
"""Of Han 2019, Tables 2 and 3, in their order; then ours."""

TASKS = (
    *(
        Entrant(kind, f"DNN ({kind})", "dnn", "han2020", kind, published=True)
        for kind in ("metadata", "history", "both")
    ),
    Entrant("dnn", "ours: DNN, all features", "dnn", "full"),
    Entrant("trees", "ours: trees, all features", "trees", "full"),
)
"""Of Han 2020, Table 4; then ours."""

RULES = (
    baseline("page_month", "freq30: the page's rate in 30 days"),
    baseline("page_recent", "recency"),
    baseline("merchant_weekday", "merchant × weekday rate"),
    baseline("rule", "merchant × weekday rate × freq30"),
)
"""What needs no learning."""

DAILY = (
    *RULES,
    Entrant("trees", "trees", "trees", "full"),
    Entrant("dnn", "DNN", "dnn", "full"),
    Entrant("sequence", "sequence", "sequence", "full"),
)
"""Of daily logs: rules, then models."""

COLD = (
    baseline("page_month"),
    baseline("gamma", "Gamma posterior (offer)"),
    *(each for each in CHANGES if each.key in ("metadata", "dnn", "trees_metadata", "trees")),
)
"""Of pages of which little is known."""


def some(entrants: tuple[Entrant, ...], wanted: tuple[str, ...]) -> tuple[Entrant, ...]:
    """Those whose keys are wanted, all if none is; ConfigError names one that is not there."""
    known = [each.key for each in entrants]
    for key in wanted:
        if key not in known:
            raise ConfigError(f"no model is called {key!r}; known: {', '.join(known)}")
    return tuple(each for each in entrants if not wanted or each.key in wanted)
