"""Faulty rows are found among sound ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.predict.design import Devices, Placed, designed
from epochcost.predict.learnt import (
    doubted_rows,
    framework_of,
    placed,
    placed_table,
    table_faults,
)
from epochcost.predict.rates import read_profiles, read_rates
from epochcost.specs.catalogue import Catalogue

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "specs" / "observations"


@pytest.fixture(scope="module")
def all_devices(catalogue: Catalogue) -> Devices:
    """The catalogue's devices."""
    return Devices(catalogue.devices.values())


@pytest.fixture(scope="module")
def sound(all_devices: Devices) -> list[Placed]:
    """The rows of timm and of NeuSight."""
    rows: list[Placed] = []
    for name in ("timm", "neusight"):
        profiles = read_profiles(TABLES / f"{name}-profiles.csv")
        rows += placed(read_rates(TABLES / f"{name}.csv"), all_devices, profiles)
    return rows


def test_no_more_than_two_in_a_hundred_sound_rows_are_doubted(
    sound: list[Placed], all_devices: Devices
) -> None:
    """At most 2 % of the published rows are doubted."""
    assert len(doubted_rows(sound, all_devices)) <= 0.02 * len(sound)


@pytest.mark.parametrize(
    ("software", "framework"),
    [
        ("pt240 nchw cu124 eager", "PyTorch"),
        ("pt240 nchw cu124 dynamo", "compiled PyTorch"),
        ("PyTorch eager fusion", "compiled PyTorch"),
        ("Transformers (PyTorch)", "PyTorch"),
        ("TensorFlow2 NGC container", "TensorFlow"),
        ("vLLM", "vLLM"),
    ],
)
def test_a_compiled_model_is_another_framework_than_an_eager_one(
    software: str, framework: str
) -> None:
    """Rates of torch.compile, twice those of eager mode on some devices, are not merged with it."""
    assert framework_of(software) == framework


def test_an_unknown_precision_is_a_fault(tmp_path: Path) -> None:
    """A row of examples in a precision without a meaning would be taken for one in fp32."""
    spec = tmp_path / "timm.toml"
    spec.write_bytes((TABLES / "timm.toml").read_bytes())
    text = (TABLES / "timm.csv").read_text(encoding="utf-8").replace(",infer,amp,", ",infer,fp61,")
    (tmp_path / "timm.csv").write_text("".join(text.splitlines(keepends=True)[:2]), "utf-8")
    (fault,) = table_faults(spec)
    assert str(fault).endswith(
        "timm.csv:2:1: precision: expected a text with a name such as fp32, "
        'tf32 or mixed, got "fp61"'
    )
    assert all(table_faults(path) == () for path in TABLES.glob("*.toml"))


def test_no_row_is_no_doubt(all_devices: Devices) -> None:
    """An empty table has no doubted rows."""
    assert doubted_rows([], all_devices) == {}


def test_eight_devices_are_not_eighteen_times_as_fast_as_one(
    sound: list[Placed], all_devices: Devices
) -> None:
    """Both rates are doubted, since the table does not say which of them is wrong."""
    row = sound[0]
    eight = replace(row, rate=replace(row.rate, count=8, per_second=18 * row.rate.per_second))
    doubts = doubted_rows([*sound, eight], all_devices)
    assert "8 are 18.0 times as fast as 1" in doubts[0]
    assert doubts[len(sound)] == doubts[0]


def test_a_rate_that_contradicts_three_others_is_the_wrong_one(
    sound: list[Placed], all_devices: Devices
) -> None:
    """The rates of one, two and four devices agree, so only the rate of eight is doubted."""
    row = sound[0]
    rates = {2: 2.0, 4: 4.0, 8: 18.0}
    more = [
        replace(row, rate=replace(row.rate, count=count, per_second=times * row.rate.per_second))
        for count, times in rates.items()
    ]
    doubts = doubted_rows([*sound, *more], all_devices)
    assert {at for at in doubts if at in (0, *range(len(sound), len(sound) + 3))} == {
        len(sound) + 2
    }


def test_hosts_limit_small_batches_without_a_doubt(
    catalogue: Catalogue, all_devices: Devices
) -> None:
    """V100 is as fast as T4 at a batch of 1 and twice as fast at 256: both are believed."""
    table = catalogue.observations["nvidia-deeplearningexamples"]
    rows = placed_table(catalogue, table, all_devices)
    doubted = [rows[at].rate for at in doubted_rows(rows, all_devices)]
    assert not [rate for rate in doubted if rate.mode == "inference"]


def test_no_host_limits_a_rate_of_an_unknown_graph(
    catalogue: Catalogue, all_devices: Devices
) -> None:
    """Only of a known graph is it known whether a host takes longer than the device."""
    limited = set()
    for name in ("neusight", "nvidia-deeplearningexamples"):
        rows = placed_table(catalogue, catalogue.observations[name], all_devices)
        design = designed(rows, all_devices)
        limited |= {*design.has_graph[design.is_host_bound].tolist()}
    assert limited == {True}


def test_planted_faults_are_found(sound: list[Placed], all_devices: Devices) -> None:
    """At least 10 of 12 planted faults are found.

    There are five wrong units, five token counts and two renamed devices.
    """
    drawn = random.Random(3)
    rows, planted = list(sound), set()
    for number, at in enumerate(drawn.sample(range(len(rows)), 10)):
        factor = drawn.choice([1e3, 1e-3]) if number < 5 else drawn.choice([128, 384, 512])
        rate = rows[at].rate
        rows[at] = replace(rows[at], rate=replace(rate, per_second=rate.per_second * factor))
        planted.add(at)
    copies = []
    for name, new_name in (("4090", "A10"), ("rtx3090", "L4")):
        copied = list(_under_another_name(sound, name, all_devices, new_name))
        copies.append(range(len(rows), len(rows) + len(copied)))
        rows += copied
    doubts = doubted_rows(rows, all_devices)
    renamed = sum(all(at in doubts for at in copied) for copied in copies)
    assert len(planted & doubts.keys()) + renamed >= 10
    unplanted = doubts.keys() - planted - {at for copied in copies for at in copied}
    assert len(unplanted) <= 0.02 * len(sound)


def _under_another_name(
    sound: list[Placed], name: str, all_devices: Devices, new_name: str
) -> Iterator[Placed]:
    """Twenty rows of the device ``name`` under the name ``new_name``."""
    device = all_devices.named(new_name)
    assert device is not None
    mine = [row for row in sound if row.rate.accelerator == name][:20]
    assert mine
    for row in mine:
        yield replace(row, device=device, rate=replace(row.rate, accelerator=new_name))
