"""Which rented plans can do an owned machine's work, and at what speed."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.cost.break_even import Substitutes
from epochcost.errors import InputError
from epochcost.results.records import Result
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.specs.price import Price
from price_plans import owned, plan
from report_project import make_result


def machine(identifier: str, accelerator: str | None, count: int = 1) -> Hardware:
    """A machine with so many accelerators of one kind, or none."""
    gpus = (Accelerator(name=accelerator, count=count),) if accelerator else ()
    return Hardware(
        id=identifier, name=identifier, provider="A", accelerators=gpus, source="a test"
    )


def rental(identifier: str, hardware: str, **fields: str) -> Price:
    """A rented plan of a machine."""
    return plan(id=identifier, hardware=hardware, amount=Decimal(1), **fields)


MACHINES = (
    machine("local", "H9", 8),
    machine("same", "H9", 8),
    machine("fewer", "H9", 4),
    machine("plain", None),
)
PRICES = (
    rental("of-same", "same"),
    rental("in-euros", "same", currency="EUR"),
    rental("of-fewer", "fewer"),
    rental("of-plain", "plain"),
)


def substitutes(results: Sequence[Result] = ()) -> Substitutes:
    """What may replace the machine `local` of the owned plan."""
    own = owned()
    catalogue = Catalogue(
        root=Path(),
        hardware={one.id: one for one in MACHINES},
        prices={one.id: one for one in (*PRICES, own)},
        models={},
        studies={},
        published={},
    )
    return Substitutes(catalogue, own, results)


def test_the_same_accelerators_make_a_substitute() -> None:
    """By name and number, in the same currency; neither fewer of them nor the plan itself."""
    (found,) = substitutes().rents()
    assert (found.price.id, found.speed, found.why) == ("of-same", 1, "the same kind of machine")


def test_a_machine_that_did_the_same_work_is_a_substitute() -> None:
    """At its measured speed, whatever it is made of, which goes before its kind."""
    results = [
        make_result(hardware="local", samples=(0.1, 0.1)),
        make_result(hardware="plain", samples=(0.2, 0.2)),
        make_result(hardware="same", samples=(0.05, 0.05)),
    ]
    found = {rent.price.id: rent for rent in substitutes(results).rents()}
    assert set(found) == {"of-same", "of-plain"}
    assert abs(found["of-plain"].speed - Decimal("0.5")) < Decimal("1e-9")
    assert found["of-same"].why == "measured 2 times as fast on 1 equal trial"


def test_a_named_plan_needs_a_speed() -> None:
    """Known by kind, or declared; otherwise it is refused."""
    assert substitutes().rent("of-same").speed == 1
    assert substitutes().rent("of-plain", Decimal("0.50")).why == "declared as 0.5 times as fast"
    with pytest.raises(InputError, match=r"^of-plain: demanded the speed of its machine beside"):
        substitutes().rent("of-plain")
