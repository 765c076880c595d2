"""`salticus study han2019`: every table and figure of Han et al. (2019), theirs beside ours."""
