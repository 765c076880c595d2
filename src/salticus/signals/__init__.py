"""Signals: news about pages that did not cost a visit."""
