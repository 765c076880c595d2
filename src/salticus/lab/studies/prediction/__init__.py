"""Predictions beside what was published: who changes next, who is clicked next."""
