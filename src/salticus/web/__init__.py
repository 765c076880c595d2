"""Where clicks, notices and searches come in while a crawl runs."""
