"""What Han et al. (2019) print beside their Tables 2 and 3, as data."""

from __future__ import annotations

INFLATION = {
    "AU": 1.9, "BR": 4.6, "CA": 2.4, "CH": 1.1, "CZ": 2.2, "DE": 2.5, "DK": 0.8, "ES": 2.3,
    "FR": 2.2, "GB": 2.4, "ID": 3.2, "IN": 3.3, "IT": 1.6, "JP": 1.4, "MX": 4.9, "NL": 2.1,
    "NZ": 1.9, "PL": 1.8, "SE": 2.3, "US": 2.5,
}  # fmt: skip
"""Consumer prices against a year before, October 2018 (third quarter of AU and NZ), per cent, as
the countries' statistical offices gave them. The paper names six of its twenty countries only."""

CORRELATION = 0.4629
"""Pearson's, of the countries' change rates and inflation (§3.3)."""

SHARES = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
"""Figure 10: p_u of its lines."""

LIFTS = {(0.0, 0.1): 0.381, (0.1, 1.0): 0.029}
"""Freshness gained between two p_u (§6.2.1)."""

LEVELS = (0.2, 0.4, 0.6, 0.8)
"""Figure 11: shares that the uniform strategy sends."""

SAVINGS = {("dnn_both", "seen"): 0.27, ("dnn_both", "unseen"): 0.17}
"""The largest savings (§6.2.2); what the others save is drawn, not printed."""

METADATA = 0.05
"""What `DNN (metadata)` saves of unseen offers, about (§6.2.2)."""
