"""What all tests share: how hypothesis draws.

``make test`` draws the same examples every time, so that it passes or fails by the code alone;
``make test-all`` draws others each time.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", derandomize=False, print_blob=True)
settings.load_profile("repeatable")
