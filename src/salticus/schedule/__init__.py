"""When the visits are made: the spacings, by name."""

BUILTIN = {
    "even": "salticus.schedule.even:Even",
    "coin": "salticus.schedule.coin:Coin",
}
