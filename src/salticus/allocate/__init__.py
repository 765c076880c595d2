"""Where the next visits buy the most: the policies, by name."""

BUILTIN = {"uniform": "salticus.allocate.uniform:Uniform"}
