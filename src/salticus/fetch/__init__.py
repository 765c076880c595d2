"""Fetching: an engine makes one exchange, the polite fetcher makes one visit of it."""

AGENT = "Salticus"  # the product token: in the User-Agent header and in robots.txt
