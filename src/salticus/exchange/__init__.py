"""The log: the exchange format between live, training, simulation and everyone else's data."""
