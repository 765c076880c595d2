"""What is visited: the live web, and the mall that stands in for it."""
