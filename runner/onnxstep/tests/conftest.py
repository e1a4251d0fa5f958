"""Hypothesis settings of all tests: runs draw the same examples, except in profile ``explore``."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", _UNTIMED, derandomize=True)
settings.register_profile("explore", _UNTIMED, derandomize=False, print_blob=True)
settings.load_profile("repeatable")
