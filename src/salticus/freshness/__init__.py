"""How well the crawl does by its own measure: freshness with an interval, drift, the panel.

Only visits drawn at random, with a known chance for every page, and those of the panel tell of all
pages. What a policy chose to visit tells of the policy (Han et al. 2019, §3.1, on feedback loops).
"""
