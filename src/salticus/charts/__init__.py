"""One chart kit: what people would rather see than read."""
