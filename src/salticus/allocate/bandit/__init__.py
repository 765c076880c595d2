"""Policies that choose among policies: adversarial bandits, after Han et al. (2020)."""
