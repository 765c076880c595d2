"""Public law suites: what a part must do to be one. Run them on your own parts in your tests."""
