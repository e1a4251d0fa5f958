"""Bad rows are detected among sound ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.predict.design import Devices, Placed
from epochcost.predict.learnt import doubted_rows, placed
from epochcost.predict.rates import read_profiles, read_rates
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "specs" / "observations"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The project's catalogue."""
    return load_catalogue(ROOT)


@pytest.fixture(scope="module")
def known(catalogue: Catalogue) -> Devices:
    """The catalogue's devices."""
    return Devices(catalogue.devices.values())


@pytest.fixture(scope="module")
def sound(known: Devices) -> list[Placed]:
    """The rows of timm and of NeuSight."""
    rows: list[Placed] = []
    for name in ("timm", "neusight"):
        profiles = read_profiles(TABLES / f"{name}-profiles.csv")
        rows += placed(read_rates(TABLES / f"{name}.csv"), known, profiles)[0]
    return rows


def test_no_more_than_two_in_a_hundred_sound_rows_are_doubted(
    sound: list[Placed], known: Devices
) -> None:
    """Published rows pass."""
    assert len(doubted_rows(sound, known)) <= 0.02 * len(sound)


def test_no_row_is_no_doubt(known: Devices) -> None:
    """A table without known accelerators has no rows to doubt."""
    assert doubted_rows([], known) == {}


def test_planted_faults_are_found(sound: list[Placed], known: Devices) -> None:
    """At least 14 of 16 faults, such as wrong units or names, are listed.

    Five units, five tokens for samples, four repeats, two devices with two names.
    """
    drawn = random.Random(3)
    rows, planted = list(sound), set()
    for number, at in enumerate(drawn.sample(range(len(rows)), 10)):
        factor = drawn.choice([1e3, 1e-3]) if number < 5 else drawn.choice([128, 384, 512])
        rate = rows[at].rate
        rows[at] = replace(rows[at], rate=replace(rate, per_second=rate.per_second * factor))
        planted.add(at)
    for at in drawn.sample(sorted(set(range(len(sound))) - planted), 4):
        planted.add(len(rows))
        rows.append(rows[at])
    copies = []
    for name, other in (("4090", "A10"), ("rtx3090", "L4")):
        copied = list(_under_another_name(sound, name, known, other))
        copies.append(range(len(rows), len(rows) + len(copied)))
        rows += copied
    found = doubted_rows(rows, known)
    renamed = sum(all(at in found for at in copied) for copied in copies)
    assert len(planted & found.keys()) + renamed >= 14
    others = found.keys() - planted - {at for copied in copies for at in copied}
    assert len(others) <= 0.02 * len(sound)


def _under_another_name(
    sound: list[Placed], name: str, known: Devices, other: str
) -> Iterator[Placed]:
    """Twenty rows of a device with another's name."""
    device = known.named(other)
    assert device is not None
    mine = [one for one in sound if one.rate.accelerator == name][:20]
    assert mine
    for one in mine:
        yield replace(one, device=device, rate=replace(one.rate, accelerator=other))
