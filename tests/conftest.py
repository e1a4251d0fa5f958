"""What all tests share: how hypothesis draws.

``make test`` draws the same examples every time, so that it passes or fails by the code alone;
``make test-all`` draws others each time. No test fails because the machine is busy: neither a time
limit for one example nor one for drawing it.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", _UNTIMED, derandomize=True)
settings.register_profile("explore", _UNTIMED, derandomize=False, print_blob=True)
settings.load_profile("repeatable")
