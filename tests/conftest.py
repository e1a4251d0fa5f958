"""Settings of all tests: how hypothesis draws, and time limits.

``make test`` draws the same examples every time, so that its result depends on the code alone.
``make test-all`` draws other examples each time. No test fails because the machine is busy: an
example has no time limit, and a test's limit grows with the load.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from crowding import crowded

_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", _UNTIMED, derandomize=True)
settings.register_profile("explore", _UNTIMED, derandomize=False, print_blob=True)
settings.load_profile("repeatable")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Set the test's time limit by the machine's load."""
    given = item.get_closest_marker("timeout")
    seconds = given.args[0] if given else float(item.config.getini("timeout"))
    item.add_marker(pytest.mark.timeout(crowded(seconds)), append=False)
    return (yield)
