"""Which requests are sent at once (InstaCrawl): the gates, by name."""

BUILTIN = {
    "uniform": "salticus.allocate.gate.uniform:UniformGate",
    "instacrawl": "salticus.allocate.gate.stream:InstaCrawl",
    "threshold": "salticus.allocate.gate.stream:ThresholdGate",
}
