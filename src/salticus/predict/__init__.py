"""How likely a page is still what we hold: the predictors, by name."""

BUILTIN = {
    "frequency": "salticus.predict.frequency:Frequency",
    "naive": "salticus.predict.point:Naive",
    "bias_reduced": "salticus.predict.point:BiasReduced",
    "mle": "salticus.predict.mle:Mle",
    "gamma": "salticus.predict.gamma:Gamma",
    "pooled": "salticus.predict.pooled:Pooled",
    "rhythm": "salticus.predict.rhythm:Rhythm",
}

IN_A_CRAWL = {**BUILTIN, "serving": "salticus.predict.serving:Serving"}
"""Those that a crawl can have; what they need of its store they are given when they are made."""
