"""How fast one machine is beside another, by the results of work that both did."""

from __future__ import annotations

from decimal import Decimal

from epochcost.cost.break_even import measured_speed
from report_project import make_result

SLOW, FAST = (0.2, 0.2), (0.1, 0.1)


def test_half_the_time_is_twice_the_speed() -> None:
    """Of trials that both measured; a third that one alone measured says nothing."""
    results = [
        make_result(hardware="own", samples=SLOW),
        make_result(hardware="own", samples=SLOW, batch_size=64),
        make_result(hardware="own", samples=(9.0, 9.0), batch_size=128),
        make_result(hardware="rented", samples=FAST),
        make_result(hardware="rented", samples=FAST, batch_size=64),
    ]
    found = measured_speed(results, "own", "rented")
    assert found is not None
    assert found.trials == 2
    assert abs(found.ratio - 2) < Decimal("1e-9")


def test_hosts_of_one_kind_are_not_pooled() -> None:
    """The host that measured last speaks for its kind."""
    results = [
        make_result(hardware="own", samples=SLOW),
        make_result(hardware="rented", samples=(9.0, 9.0), fingerprint="a" * 16, day=1),
        make_result(hardware="rented", samples=FAST, fingerprint="b" * 16, day=2),
    ]
    found = measured_speed(results, "own", "rented")
    assert found is not None
    assert abs(found.ratio - 2) < Decimal("1e-9")


def test_no_work_in_common() -> None:
    """Then nothing is known, and neither of a machine beside itself."""
    results = [make_result(hardware="own"), make_result(hardware="rented", batch_size=64)]
    assert measured_speed(results, "own", "rented") is None
    assert measured_speed(results, "own", "own") is None


def test_a_machine_is_as_fast_as_its_plain_trials() -> None:
    """A trial on one CPU of both machines says nothing of the machines."""
    results = [
        make_result(hardware="own", samples=SLOW),
        make_result(hardware="rented", samples=FAST),
        make_result(hardware="own", samples=(9.0, 9.0), vcpus=1),
        make_result(hardware="rented", samples=FAST, vcpus=1),
    ]
    found = measured_speed(results, "own", "rented")
    assert found is not None
    assert found.trials == 1
    assert abs(found.ratio - 2) < Decimal("1e-9")
