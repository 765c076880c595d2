"""Where the next visits buy the most: the policies, by name."""

BUILTIN = {
    "uniform": "salticus.allocate.uniform:Uniform",
    "round_robin": "salticus.allocate.round_robin:RoundRobin",
    "fixed_interval": "salticus.allocate.fixed_interval:FixedInterval",
    "nutch": "salticus.allocate.nutch:Nutch",
    "stormcrawler": "salticus.allocate.stormcrawler:StormCrawler",
    "change_proportional": "salticus.allocate.proportional:ChangeProportional",
    "demand_proportional": "salticus.allocate.proportional:DemandProportional",
    "impression_proportional": "salticus.allocate.proportional:ImpressionProportional",
}
