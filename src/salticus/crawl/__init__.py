"""A crawl: the loop and all that it holds, made from settings."""
