"""`salticus study han2020`: the tables and figures of Han et al. (2020), theirs beside ours."""
