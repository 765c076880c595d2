"""What people want to know of a crawl: progress, status, one page, histories."""
