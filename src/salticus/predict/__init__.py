"""How likely a page is still what we hold: the predictors, by name."""

BUILTIN = {"gamma": "salticus.predict.gamma:Gamma"}
