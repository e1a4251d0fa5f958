"""Price plans with parts that contradict each other: the line of each fault."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, get_args

import pytest

from epochcost.specs.price import PLAN_GROUPS, PLAN_KINDS, Plan

if TYPE_CHECKING:
    from conftest import Project

PRICE = "specs/prices/box.toml"
GPU = '[[components]]\nlabel = "GPU"\namount = 0.70\n'
DISK = '[[components]]\nlabel = "disk"\namount = 0.04\ncount = 10\nper = "gb-month"\n'
COMMITMENT = '[commitment]\nterm_months = 12\npayment = "{}"\n{}\n'

# (text added to the price, the amount's line in its place, the fault after the file's name)
FAULTS = [
    (
        f'{GPU}[[components]]\nlabel = "premium"\npercent = 5\nof = ["GUP"]\n', "amount = 0.90",
        '8:3: components: should have premiums of hourly parts of this price, got "GUP"; did you '
        'mean "GPU"?',
    ),
    (
        f'{DISK}[[components]]\nlabel = "premium"\npercent = 5\nof = ["disk"]\n', "amount = 0.90",
        '8:3: components: should have premiums of hourly parts of this price, got "disk"; known: '
        '"compute"',
    ),
    (
        '[[components]]\nlabel = "job"\namount = 1\nper = "run"\n'
        '[[components]]\nlabel = "premium"\npercent = 5\n', 'sku = "x"',
        "8:3: components: should have an hourly part with a premium, got no hourly part",
    ),
    (
        '[[components]]\nlabel = "premium"\npercent = 5\ncount = 2\n', "amount = 0.90",
        "8:3: components[0]: should have no count with percent or per gb, which have no units",
    ),
    (
        '[[components]]\nlabel = "premium"\npercent = 5\nper = "run"\n', "amount = 0.90",
        "8:3: components[0]: should have no per with percent: premiums are on hourly parts",
    ),
    (
        '[[components]]\nlabel = "compute"\namount = 1\n', "amount = 0.90",
        '8:3: components: should have labels other than "compute", the part without one, got an '
        "array of 1",
    ),
    (
        DISK, 'sku = "x"',
        "1:1: should have amount (rented), the table [owned], or a component per hour or per run",
    ),
    (
        COMMITMENT.format("no-upfront", "hourly = 1\nupfront = 5"), 'plan = "reserved"',
        '7:2: commitment: should have hourly, but no upfront with payment = "no-upfront"',
    ),
    (
        "maximum_lifetime_seconds = 600\n[start]\nseconds = 600\n", "amount = 0.90",
        "8:1: maximum_lifetime_seconds: should be longer than a start, a restart and a checkpoint, "
        "600 s, got 600",
    ),
    (
        "maximum_lifetime_seconds = 340\n[interruptions]\nrate_per_hour = 1\n"
        "restart_seconds = 300\ncheckpoint_seconds = 40\n", "amount = 0.90",
        "8:1: maximum_lifetime_seconds: should be longer than a start, a restart and a checkpoint, "
        "340 s, got 340",
    ),
    (
        '[ranges]\namuont = { low = 0.5, high = 1 }\n', "amount = 0.90",
        '9:1: ranges.amuont: should be a key of this spec, got "amuont"; did you mean "amount"?',
    ),
    (
        "[ranges]\namount = [0.5, 1]\n", "amount = 0.90",
        "9:1: ranges.amount: should be a table, got an array of 2",
    ),
    (
        '[ranges]\n"start.seconds" = { low = 0.5, high = 1 }\n', "amount = 0.90",
        '9:1: ranges."start.seconds": should be the key of a number in this spec, got '
        '"start.seconds"',
    ),
    (
        '[ranges]\n"components[0]" = { low = 1, high = 2 }\n[[components]]\nlabel = "GPU"\n'
        "amount = 1\n", "amount = 0.90",
        '9:1: ranges."components[0]": should be the key of a number in this spec, got '
        '"components"',
    ),
    (
        '[ranges]\n"a b" = { low = 1, high = 2 }\n', "amount = 0.90",
        '9:1: ranges."a b": should be a key path, such as owned.utilisation or '
        "components[0].amount",
    ),
    (
        "[ranges]\namount = { low = 1, high = 2 }\n", "amount = 0.90",
        "9:1: ranges.amount: should include the declared value, 0.90, got 1 to 2",
    ),
    (
        'currency = "USB"\n', "amount = 0.90",
        '8:1: currency: should be a currency of ISO 4217, such as USD, got "USB"',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("more", "amount", "line"), FAULTS, ids=[row[2] for row in FAULTS])
def test_fault_line(project: Project, more: str, amount: str, line: str) -> None:
    """Each single mistake gives one line, with its place and a message by epochcost."""
    if amount.startswith("plan"):
        project.edit(PRICE, "amount = 0.90\n", "")
        project.edit(PRICE, 'plan = "on-demand"', amount)
    else:
        project.edit(PRICE, "amount = 0.90", amount)
    text = (project.root / PRICE).read_text(encoding="utf-8")
    project.write(PRICE, text + more)
    assert project.faults() == [f"{PRICE}:{line}"]


def test_price_begins_tomorrow_at_the_latest(project: Project) -> None:
    """A day that has begun in some time zone is accepted. A later day is a fault."""
    today = dt.datetime.now(dt.UTC).date()
    tomorrow, later = (today + dt.timedelta(days=days) for days in (1, 3))
    project.edit(PRICE, "as_of = 2026-01-31", f"as_of = {tomorrow}")
    assert project.faults() == []
    project.edit(PRICE, f"as_of = {tomorrow}", f"as_of = {later}")
    (fault,) = project.faults()
    assert fault.startswith(f"{PRICE}:7:1: as_of: should not be later than today, 20")
    assert fault.endswith(f", got {later}")


def test_a_plan_of_every_term_is_right(project: Project) -> None:
    """A plan with parts, premiums, storage, starts, lifetime, credit and ranges has no fault."""
    text = (project.root / PRICE).read_text(encoding="utf-8")
    premium = '[[components]]\nlabel = "premium"\npercent = 5\nof = ["compute", "GPU"]\n'
    terms = "maximum_lifetime_seconds = 86400\n[start]\nseconds = 60\n[credit]\namount = 300\n"
    ranges = '[ranges]\n"components[0].amount" = { low = 0.5, high = 0.9 }\n'
    project.write(PRICE, text + terms + ranges + GPU + DISK + premium)
    assert project.faults() == []


def test_every_plan_has_its_kind() -> None:
    """The schema's plans equal the plans of the table in their order, and all groups are known."""
    assert get_args(Plan) == tuple(PLAN_KINDS)
    assert PLAN_GROUPS.keys() <= {kind.group for kind in PLAN_KINDS.values()}


def test_key_path_of_a_range_without_quotes(project: Project) -> None:
    """A key path of a range without quotes is a table, and the message says to add quotes."""
    text = (project.root / PRICE).read_text(encoding="utf-8")
    project.write(PRICE, f"{text}[ranges]\nstart.seconds = {{ low = 0.5, high = 1 }}\n")
    demand = 'ranges: should have key paths in quotes, such as "owned.utilisation"'
    assert project.faults() == [f"{PRICE}:8:2: {demand}"]
