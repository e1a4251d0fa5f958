"""The bill of a price plan as a program for the browser, made from the formulas of `cost.bill`.

The site's bill.js interprets it. Readers may change ``inputs``, which have defaults. A line is a
label and an amount. ``values`` are named expressions: numbers, names, or lists that begin with an
operator. The operators are ``+ - * /``, ``exp expm1 log sqrt ceil max min``, and ``if`` with a
comparison (``< <=``) and two expressions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from epochcost.cost.lines import Line
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.owned import owned_lines
from epochcost.cost.rented import RentedUsage, job_lines
from epochcost.cost.schedule import Schedule, expected_schedule, shared_schedule
from epochcost.cost.tracing import Condition, Expression, symbol
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing, Owned

Json = Any
RATE, _EGRESS = "interruptions.rate_per_hour", "egress_gb"
_OWNED = (
    "purchase", "residual", "years", "utilisation", "power_watts", "pue", "electricity_per_kwh",
)  # fmt: skip
_SECONDS, _COUNT, _RUNS = symbol("seconds"), symbol("count"), symbol("runs")
# A run takes `seconds` on each of `count` machines; there are `runs` runs.
_USAGE = {"seconds": Decimal(1), "count": Decimal(1), "runs": Decimal(1)}


def bill_program(price: Price) -> Json:
    """Formulas of the bill that ``cost.quote`` makes for a whole job, without free credit.

    Inputs are the usage and some numbers of the plan, such as the rate of interruptions. Raises
    InputError if no job can be billed, for example because an amount overflows.
    """
    pauses = price.interruptions
    if pauses is None or pauses.rate_per_hour == 0:
        return _program_by_schedule(price, expected_schedule, {})
    traced = pauses.model_copy(update={"rate_per_hour": symbol(RATE)})
    interrupted = price.model_copy(update={"interruptions": traced})
    return _program_by_schedule(interrupted, expected_schedule, {RATE: pauses.rate_per_hour})


def share_program(price: Price) -> Json:
    """Formulas of ``cost.share``; raises InputError if a rented plan has no hourly charge."""
    return _program_by_schedule(price, shared_schedule, {})


def _program_by_schedule(
    price: Price,
    schedule_by: Callable[[Price, Decimal, Billing], Schedule],
    inputs: Mapping[str, Decimal],
) -> Json:
    with exact_arithmetic():
        if price.owned is not None:
            return _owned_program(price.owned)
        egress = Decimal(0)
        if any(part.per == "gb" for part in price.components):
            inputs = {_EGRESS: egress, **inputs}
            egress = symbol(_EGRESS)
        lay_out = partial(schedule_by, price, _SECONDS)
        schedule = lay_out(price.billing_rule)
        lines = job_lines(price, schedule, RentedUsage(_COUNT, _RUNS, egress), lay_out)
        return _program(inputs, lines, schedule.elapsed_seconds * _RUNS)


def _owned_program(plan: Owned) -> Json:
    inputs = {f"owned.{field}": getattr(plan, field) for field in _OWNED}
    traced = plan.model_copy(update={field: symbol(f"owned.{field}") for field in _OWNED})
    units = _COUNT
    if plan.per_vcpu:
        inputs["vcpus"] = Decimal(1)
        units *= symbol("vcpus")
    elapsed = _SECONDS * _RUNS
    return _program(inputs, owned_lines(traced, elapsed, units), elapsed)


def _program(
    inputs: Mapping[str, Decimal], lines: Iterable[Line], elapsed_seconds: Decimal
) -> Json:
    listed = tuple(lines)
    writer = _FormulaWriter([*(line.amount for line in listed), elapsed_seconds])
    return {
        "inputs": {key: _number(value) for key, value in {**_USAGE, **inputs}.items()},
        "values": writer.values,
        "lines": [[line.label, writer.json_or_name(line.amount)] for line in listed],
        "elapsed_seconds": writer.json_or_name(elapsed_seconds),
    }


def answers_program(answers: Mapping[str, Decimal]) -> Json:
    """Make a JSON program that computes a number for each formula in ``answers``, by its name.

    A formula is an `Expression`, although annotated as Decimal. Its symbols become the inputs.
    """
    writer = _FormulaWriter(answers.values())
    written = {name: writer.json_or_name(figure) for name, figure in answers.items()}
    return {"answers": written, "values": writer.values}


class _FormulaWriter:
    """Converter of formulas to JSON; ``values`` has each repeated expression once, by a name."""

    def __init__(self, figures: Iterable[Any]) -> None:
        self.values: dict[str, Json] = {}
        # For equal expressions, the first of them: by structure, and by the id of each expression.
        self._alike: dict[tuple[Any, ...], Expression] = {}
        self._chosen: dict[int, Any] = {}
        self._uses: Counter[int] = Counter()
        self._names: dict[int, str] = {}
        # Keeps the expressions alive, so that no new one gets the id of an old one.
        self._figures = tuple(figures)
        for figure in self._figures:
            self._uses[id(self._canonical_expression(figure))] += 1

    def json_or_name(self, figure: Any) -> Json:
        if not isinstance(figure, Expression):
            return _number(figure)
        shared = self._canonical_expression(figure)
        if shared.operator == "name":
            return shared.operands[0]
        if id(shared) not in self._names:
            json = [shared.operator, *(self.json_or_name(operand) for operand in shared.operands)]
            if isinstance(shared, Condition) or self._uses[id(shared)] < 2:
                return json
            self._names[id(shared)] = name = f"v{len(self.values) + 1}"
            self.values[name] = json
        return self._names[id(shared)]

    def _canonical_expression(self, figure: Any) -> Any:
        if not isinstance(figure, Expression):
            return figure
        if id(figure) not in self._chosen:
            operands = [self._canonical_expression(operand) for operand in figure.operands]
            key = (figure.operator, *(_key(operand) for operand in operands))
            if key not in self._alike:
                self._alike[key] = type(figure)(figure.operator, *operands)
                self._uses.update(id(operand) for operand in operands)
            self._chosen[id(figure)] = self._alike[key]
        return self._chosen[id(figure)]


def _key(operand: Any) -> Any:
    return id(operand) if isinstance(operand, Expression) else (str(operand),)


def _number(value: Decimal | int) -> int | float:
    number = Decimal(value)
    return int(number) if number == number.to_integral_value() else float(number)
