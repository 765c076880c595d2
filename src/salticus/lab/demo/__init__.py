"""The main job, small: crawl a mall on a budget and check the result against its truth."""
