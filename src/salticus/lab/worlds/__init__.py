"""Worlds to crawl: a replayed log, a synthetic market, the local mall."""
