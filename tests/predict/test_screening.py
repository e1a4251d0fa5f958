"""Bad rows and devices are found among sound ones, and sound ones are left alone."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.predict.design import Devices, Placed
from epochcost.predict.rates import read_profiles, read_rates
from epochcost.predict.screening import doubted_devices, doubted_rows
from epochcost.predict.tables import placed
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from predict.tables import devices

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "specs" / "observations"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The project's catalogue."""
    return load_catalogue(ROOT)


@pytest.fixture(scope="module")
def known(catalogue: Catalogue) -> Devices:
    """Its devices."""
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
    """Published rows that nobody tampered with pass."""
    assert len(doubted_rows(sound, known)) <= 0.02 * len(sound)


def test_planted_faults_are_found(sound: list[Placed], known: Devices) -> None:
    """Of 15 rows with units mixed up, tokens for samples, and repeats, at least 14 are listed."""
    drawn = random.Random(3)
    rows, planted = list(sound), set()
    places = drawn.sample(range(len(rows)), 10)
    for number, at in enumerate(places):
        factor = drawn.choice([1e3, 1e-3]) if number < 5 else drawn.choice([128, 384, 512])
        rate = rows[at].rate
        rows[at] = replace(rows[at], rate=replace(rate, per_second=rate.per_second * factor))
        planted.add(at)
    for at in drawn.sample(sorted(set(range(len(sound))) - planted), 5):
        planted.add(len(rows))
        rows.append(rows[at])
    found = doubted_rows(rows, known)
    assert len(planted & found.keys()) >= 14
    assert len(found.keys() - planted) <= 0.02 * len(sound)


def test_a_device_under_two_names_is_found(sound: list[Placed], known: Devices) -> None:
    """A table that lists one device's figures again under another's name is doubted there."""
    other = known.named("A10")
    assert other is not None
    copied = [
        replace(one, device=other, rate=replace(one.rate, accelerator="A10"))
        for one in sound
        if one.rate.accelerator == "4090"
    ][:20]
    found = doubted_rows([*sound, *copied], known)
    doubted = {at for at in found if at >= len(sound)}
    assert len(doubted) == len(copied)
    assert "under a10" in found[min(doubted)].reason


def test_a_peak_typed_ten_times_too_large_is_found(catalogue: Catalogue) -> None:
    """For each device of the project, whichever peak it is; the devices as they are pass."""
    known = list(catalogue.devices.values())
    assert doubted_devices(known) == ()
    assert doubted_devices(devices()) == ()
    faults = missed = 0
    for one in known:
        for name in ("peak_fp32_tflops", "peak_fp16_tflops", "peak_tf32_tflops"):
            value: Decimal | None = getattr(one, name)
            if value is not None:
                faults += 1
                missed += not doubted_devices([one.model_copy(update={name: 10 * value})])
    assert missed <= 0.1 * faults
