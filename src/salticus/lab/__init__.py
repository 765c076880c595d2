"""The lab: simulation, worlds to crawl, studies, benchmarks, the demo."""
