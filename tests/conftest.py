"""Properties draw sixty examples each, and others in every run: the whole must fit its time.

They have no deadline: how long an example takes says more of the machine than of the code.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("brief", max_examples=60, deadline=None)
settings.load_profile("brief")
