"""An ordinary Scrapy project. Only ADDONS is there for Salticus."""

BOT_NAME = "shop"
SPIDER_MODULES = ["shop.spiders"]
USER_AGENT = "scrapy-shop (+https://shop.example/about)"
ROBOTSTXT_OBEY = True
DOWNLOAD_DELAY = 0.02
CONCURRENT_REQUESTS_PER_DOMAIN = 4

ADDONS = {"salticus.scrapy.Salticus": 500}
