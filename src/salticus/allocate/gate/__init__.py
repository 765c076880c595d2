"""Which requests are sent at once (InstaCrawl): the gates, by name."""

BUILTIN = {
    "uniform": "salticus.allocate.gate.uniform:UniformGate",
    "instacrawl": "salticus.allocate.gate.instacrawl:InstaCrawl",
    "threshold": "salticus.allocate.gate.threshold:ThresholdGate",
}
