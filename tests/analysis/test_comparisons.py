"""Variants: excluded from the answers, and compared with the trial in default settings."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.analysis.comparisons import cheapest_plan, comparisons, job_cost, scalings
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import observe, observe_variants
from epochcost.cost.estimate import Estimate, Unpriced
from epochcost.report.pages.page import Report
from epochcost.report.site import Site, build
from epochcost.results.records import Result
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from report_project import REPOSITORY, inputs_of, make_result, write_project

PLAIN = make_result(samples=(0.010, 0.011, 0.012, 0.011))
ONE_VCPU = make_result(samples=(0.015, 0.016, 0.017, 0.016), vcpus=1)
SECOND_GPU = make_result(samples=(0.020, 0.022, 0.024, 0.022), device=1)
LIMITED = make_result(samples=(0.030, 0.033, 0.036, 0.033), device_memory_limit_bytes=2**30)


def inputs_with(folder: Path, *results: Result) -> Inputs:
    """The inputs of a build with these results."""
    return inputs_of(write_project(folder, results))


def test_only_plain_trials_are_observed(tmp_path: Path) -> None:
    """Trials of variants change no row of the trial in default settings."""
    inputs = inputs_with(tmp_path, PLAIN, ONE_VCPU, SECOND_GPU, LIMITED)
    measured = [row for row in observe(inputs) if row.kind == "measured"]
    assert [row.variant for row in measured] == [""]
    report = Report(inputs)
    plain = tuple(stored for stored in inputs.stored if not stored.result.trial.variant)
    alone = Report(replace(inputs, stored=plain))
    assert report.rows == alone.rows


def test_a_variant_is_compared_with_the_plain_trial(tmp_path: Path) -> None:
    """A variant that is half as fast costs twice as much, and its interval contains the ratio."""
    inputs = inputs_with(tmp_path, PLAIN, SECOND_GPU)
    (comparison,) = comparisons(inputs.catalogue, observe(inputs), observe_variants(inputs))
    plain, second = comparison
    assert (plain.observed.variant, plain.speedup) == ("", None)
    assert second.speedup is not None
    assert second.speedup.mean == pytest.approx(0.5)
    assert second.speedup.low < 0.5 < second.speedup.high
    assert isinstance(plain.job.cost, Estimate)
    assert isinstance(second.job.cost, Estimate)
    assert float(second.job.cost.mean / plain.job.cost.mean) == pytest.approx(2)


def test_two_vcpus_cost_more_where_they_are_not_twice_as_fast(tmp_path: Path) -> None:
    """16 ms on one vCPU and 11 ms on two: 1.45 times as fast, 1.375 times the cost."""
    inputs = inputs_with(tmp_path, PLAIN, ONE_VCPU)
    (scaling,) = scalings(inputs.catalogue, observe(inputs), observe_variants(inputs))
    first, two = scaling.points
    assert [(point.vcpus, point.observed.vcpus) for point in scaling.points] == [(1, 1), (2, None)]
    assert two.speedup.mean == pytest.approx(16 / 11)
    assert two.efficiency == pytest.approx(8 / 11)
    assert two.relative_cost.mean == pytest.approx(11 / 8)
    assert scaling.cheapest is first
    assert scaling.larger_costs.mean == pytest.approx(11 / 8)
    assert first.job.basis == "price per vCPU"


def test_a_job_without_a_price_is_compared_by_vcpu_seconds(tmp_path: Path) -> None:
    """Without a price, costs are compared by vCPUs × seconds."""
    inputs = inputs_with(
        tmp_path,
        make_result(hardware="bare", vcpus=1, samples=(0.015, 0.016, 0.017, 0.016)),
        make_result(hardware="bare", vcpus=2, samples=(0.010, 0.011, 0.012, 0.011)),
    )
    (scaling,) = scalings(inputs.catalogue, observe(inputs), observe_variants(inputs))
    assert all(isinstance(point.job.cost, Unpriced) for point in scaling.points)
    assert scaling.points[1].relative_cost.mean == pytest.approx(11 / 8)


@pytest.fixture(name="real", scope="module")
def real_fixture() -> Catalogue:
    """The specs of this repository."""
    return load_catalogue(REPOSITORY)


def test_a_part_of_a_machine_costs_its_share(tmp_path: Path, real: Catalogue) -> None:
    """A job on 24 of 64 vCPUs costs 24/64 of the job on the whole machine."""
    (variant,) = observe_variants(inputs_with(tmp_path, make_result(vcpus=16)))
    large = replace(variant.machine, hardware="n1-highcpu-64", vcpus=64)
    observed = replace(variant, machine=large, vcpus=24)
    price = cheapest_plan(real, observed)
    part, whole = job_cost(observed, price), job_cost(replace(observed, vcpus=None), price)
    assert part.basis == "price in proportion to vCPUs"
    assert isinstance(part.cost, Estimate)
    assert isinstance(whole.cost, Estimate)
    assert part.cost.mean == pytest.approx(whole.cost.mean * Decimal(24) / 64)


def test_prices_in_another_currency_are_not_cheaper(tmp_path: Path) -> None:
    """A price in euros is not compared with two in dollars, whatever its amount."""
    (observed,) = (row for row in observe(inputs_with(tmp_path, PLAIN)) if row.kind == "measured")
    price = load_catalogue(tmp_path).price("box-2026").model_copy(update={"hardware": "local"})
    amounts = {"dear": (9, "USD"), "fair": (8, "USD"), "euros": (7, "EUR")}
    prices = {
        name: price.model_copy(
            update={"id": name, "provider": name, "amount": Decimal(amount), "currency": currency}
        )
        for name, (amount, currency) in amounts.items()
    }
    chosen = cheapest_plan(replace(load_catalogue(tmp_path), prices=prices), observed)
    assert chosen is prices["fair"]


def test_the_page_compares_and_the_answer_does_not(tmp_path: Path) -> None:
    """A model's page compares variants, but the list of machines for training excludes them."""
    with_variant = _site(tmp_path / "both", PLAIN, ONE_VCPU, SECOND_GPU)
    alone = _site(tmp_path / "alone", PLAIN)
    page = with_variant.pages["models/net.md"]
    assert "<summary>vCPUs</summary>" in page
    assert "on 2 vCPUs it is 1.45 times as fast and costs 1.37 times as much" in page
    assert "GPU 1" in page
    assert "<summary>Variants" in page
    assert "Variants" not in alone.pages["models/net.md"]
    lists = [
        _section(site.pages["models/net.md"], "Machines for training")
        for site in (with_variant, alone)
    ]
    assert lists[0] == lists[1] != ""


def _site(folder: Path, *results: Result) -> Site:
    return build(inputs_with(folder, *results), REPOSITORY / "site_templates")


def _section(page: str, name: str) -> str:
    _, _, after = page.partition(f"\n## {name}")
    return after.partition("\n## ")[0]
