"""Rows: timings with prices, current and superseded, of separate hosts."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Observation, observe
from epochcost.analysis.rows import (
    Row,
    better_known,
    by_stack,
    contenders,
    odds_of,
    offers,
    price_rows,
    ranking,
)
from epochcost.cost.estimate import Estimate, Time, Unpriced
from epochcost.report.pages.page import Report
from epochcost.report.ranking import contest
from epochcost.results.records import Result, Round
from report_project import inputs_of, make_result, write_project


def rows_by_workload(report: Report, workload: str) -> list[Row]:
    """The rows of a workload."""
    return [row for row in report.rows if row.observed.workload.id == workload]


def rows_of(report: Report, workload: str, kind: str) -> list[Row]:
    """The rows of a workload with one kind of evidence."""
    return [row for row in rows_by_workload(report, workload) if row.observed.kind == kind]


def is_assumed(row: Row) -> bool:
    """Whether a row has an assumed price."""
    return row.price is not None and row.price.assumed


def rows_of_all(project: Path) -> tuple[Row, ...]:
    """Every row of a project."""
    inputs = inputs_of(project)
    return price_rows(inputs.catalogue, observe(inputs))


def measured(folder: Path, *results: Result) -> list[Observation]:
    """The measured observations of a project with these results."""
    project = write_project(folder, results)
    return [row for row in observe(inputs_of(project)) if row.kind == "measured"]


def test_a_measured_epoch_is_steps_times_mean(report: Report) -> None:
    """6400 examples in batches of 32 are 200 steps; ten epochs are the full training."""
    row = next(
        row
        for row in rows_of(report, "net", "measured")
        if row.observed.mode == "training" and row.observed.batch_size == 32
    )
    step, epoch = row.observed.step, row.observed.epoch
    assert step is not None
    assert epoch is not None
    assert epoch.mean == step.mean * 200
    assert row.observed.full == epoch.scaled(10)
    assert float(step.mean) == 0.011
    assert step.low < step.mean < step.high


def test_an_interval_of_time_is_carried_into_money(report: Report) -> None:
    """The cost of a measured epoch has an interval around its mean."""
    for row in rows_of(report, "net", "measured"):
        cost = row.estimate("epoch") or row.estimate("million")
        assert cost is not None
        assert cost.low < cost.mean < cost.high


def test_a_published_time_is_priced_then_and_now(report: Report) -> None:
    """A published time has a row with the superseded price of its source and one with today's."""
    rows = rows_of(report, "paper", "published")
    assert {(row.price.id, row.current) for row in rows if row.price} == {
        ("box-2016", False),
        ("box-2026", True),
    }
    then = next(row for row in rows if not row.current)
    full = then.cost("full")
    assert isinstance(full, Estimate)
    assert full.mean == Decimal("2.70")  # 25 x 428 s are 2.97 h, billed as three


def test_a_job_of_several_machines_is_no_figure_of_one(inputs: Inputs) -> None:
    """A published time on several machines is no observation of a single machine."""
    many = {
        name: source.model_copy(
            update={
                "timings": [timing.model_copy(update={"count": 8}) for timing in source.timings]
            }
        )
        for name, source in inputs.catalogue.published.items()
    }
    catalogue = replace(inputs.catalogue, published=many)
    assert [row for row in observe(inputs) if row.kind == "published"]
    assert not [
        row for row in observe(replace(inputs, catalogue=catalogue)) if row.kind == "published"
    ]


def test_a_machine_without_a_price_has_unpriced_rows(tmp_path: Path) -> None:
    """Without a price, the cost is unknown with a reason, never zero."""
    result = make_result(hardware="bare")
    project = write_project(tmp_path, [result])
    row = next(row for row in rows_of_all(project) if row.observed.kind == "measured")
    cost = row.cost("epoch")
    assert row.price is None
    assert isinstance(cost, Unpriced)
    assert row.estimate("epoch") is None


def test_only_the_newest_result_of_a_configuration_counts(tmp_path: Path) -> None:
    """A new result replaces the result that an older version measured on the same host."""
    old = make_result(producer="0.0.1", day=10, samples=(0.5, 0.6))
    matches = measured(tmp_path, old, make_result(day=20))
    assert [row.date.day for row in matches] == [20]


def in_rounds(result: Result) -> Result:
    """Copy a result with each sample as a round; the first round has a warm-up step."""
    taken = result.measurement
    rounds = tuple(
        Round(
            started_at=taken.started_at,
            wall_seconds=1,
            warmup_steps=int(at == 0),
            samples=1,
            stop_reason="budget",
            steps_taken=1,
        )
        for at in range(len(taken.samples_seconds))
    )
    measurement = taken.model_copy(update={"rounds": rounds})
    return result.model_copy(update={"measurement": measurement})


def of_another_study(result: Result, revision: str | None = None) -> Result:
    """Copy a result as if another study had measured it, perhaps at another revision."""
    trial = result.trial.model_copy(update={"budget_seconds": Decimal(5)})
    environment = result.environment.model_copy(update={"revision": revision})
    changed = {"trial": trial, "trial_id": trial.id, "environment": environment}
    return result.model_copy(update=changed)


def test_of_one_version_more_rounds_speak(tmp_path: Path) -> None:
    """A result with more rounds is preferred to a later result with fewer rounds."""
    thorough, brief = in_rounds(make_result(day=10)), of_another_study(make_result(day=20))
    matches = measured(tmp_path / "fewer", thorough, brief)
    assert [row.date.day for row in matches] == [10]
    matches = measured(tmp_path / "as many", thorough, in_rounds(brief))
    assert [row.date.day for row in matches] == [20]


def test_hosts_are_never_pooled(tmp_path: Path) -> None:
    """Two hosts of one kind are two machines with separate names."""
    matches = measured(tmp_path, make_result(), make_result(fingerprint="beef" * 4))
    assert len({row.machine for row in matches}) == 2
    assert len({row.machine.name for row in matches}) == 2


def test_one_host_is_one_row(tmp_path: Path) -> None:
    """A later result as "local" counts for the machine that was declared for the same host."""
    older = make_result(hardware="box", day=19)
    newer = make_result(day=20)
    (row,) = measured(tmp_path / "same", older, newer)
    assert (row.machine.hardware, row.date.day) == ("box", 20)
    assert row.evidence.uri.startswith("data/results/local/")
    elsewhere = make_result(day=20, fingerprint="beef" * 4)
    matches = measured(tmp_path / "apart", older, elsewhere)
    assert {row.machine.hardware for row in matches} == {"box", "local"}


def test_a_result_without_a_spec_is_a_named_problem(tmp_path: Path) -> None:
    """A result of an unknown model is left out with a message, and other results count."""
    project = write_project(tmp_path, [make_result(), make_result(model="gone")])
    inputs = inputs_of(project)
    assert len(inputs.stored) == 1
    assert len(inputs.problems) == 1
    assert "net" not in inputs.problems[0].split("'")
    assert "gone" in inputs.problems[0]


def test_damaged_files_are_named_problems(tmp_path: Path) -> None:
    """Messages name a truncated result file and an invalid file of ratios."""
    project = write_project(tmp_path)
    cut = project / "docs/data/results/local/cut.json"
    cut.write_text('{"format_version": 1', encoding="utf-8")
    (project / "docs/data/step-ratio.json").write_text('{"models": 3}', encoding="utf-8")
    problems = inputs_of(project).problems
    assert len(problems) == 2
    for name in ("cut.json", "step-ratio.json"):
        assert any(name in problem for problem in problems)


def test_times_of_two_stacks_never_stand_in_one_list(report: Report) -> None:
    """Rows are grouped by software stack, and the stack with the surest answer comes first."""
    rows = [
        replace(row, observed=replace(row.observed, stack="published"))
        if row.observed.kind == "published"
        else row
        for row in rows_by_workload(report, "net")
    ]
    first, second = by_stack(rows, "epoch")
    assert {row.observed.stack for row in first} == {"published"}
    assert {row.observed.stack for row in second} == {"onnxruntime"}
    assert better_known(rows, "epoch") == first
    assert {row.observed.machine.hardware for row in first} == {"box", "crate", "shed"}
    assert {row.observed.stack for row in contenders(rows, "epoch")} == {"published"}
    alone = better_known(second, "epoch")
    assert alone == second


def test_predictions_of_published_programs_precede_those_of_our_runtime(report: Report) -> None:
    """Predictions for published programs come first, even if their ranges are wider."""
    rows = [row for row in rows_by_workload(report, "net") if row.observed.kind == "published"]
    predictions = [
        replace(
            row,
            observed=replace(row.observed, kind="predicted", stack=stack),
            costs={
                goal: replace(cost, high=cost.high * wider)
                for goal, cost in row.costs.items()
                if isinstance(cost, Estimate)
            },
        )
        for stack, wider in (("onnxruntime", 1), ("published", 2))
        for row in rows
    ]
    assert {row.observed.stack for row in better_known(predictions, "epoch")} == {"published"}


def test_an_assumed_price_never_leads(report: Report) -> None:
    """The answer is the best list price, even if an assumed price gives a lower cost."""
    rows = rows_by_workload(report, "net")
    best = contenders(rows, "epoch")[0]
    assert best.price is not None
    assert best.price.id == "box-2026"
    least = min(
        (row for row in rows if row.answers and row.estimate("epoch")),
        key=lambda row: row.costs["epoch"].mean,
    )
    assert is_assumed(least)


def test_an_imprecise_time_at_a_price_ranks_before_assumed_prices(report: Report) -> None:
    """A wide measurement at a list price is the choice only where all others are assumed."""
    rows = rows_by_workload(report, "net")
    best = contenders(rows, "epoch")[0]
    wide = Time(Decimal("0.0001"), Decimal("0.05"), Decimal("0.1"))
    machine = replace(best.observed.machine, hardware="own", name="Own")
    observed = replace(best.observed, kind="measured", step=wide, machine=machine)
    imprecise = replace(best, observed=observed)
    ranked = ranking([*(row for row in rows if is_assumed(row)), imprecise, best], "epoch")
    assert ranked[:2] == (best, imprecise)
    assert is_assumed(ranked[2])
    ranking_of_page = contest([*rows, imprecise], "epoch")
    assert ranking_of_page is not None
    assert ranking_of_page.cheapest.name == best.observed.machine.name
    assert ranking_of_page.imprecise is not None
    assert ranking_of_page.imprecise.name == "Own"
    all_reserved = [*(row for row in rows if is_assumed(row)), imprecise]
    assert contenders(all_reserved, "epoch") == (imprecise,)
    assert [offer.key.row for offer in offers(all_reserved, "epoch", Decimal(1)).candidates] == [
        imprecise
    ]
    page = contest(all_reserved, "epoch")
    assert page is not None
    assert page.cheapest.name == "Own"
    fair = Time(Decimal("0.03"), Decimal("0.05"), Decimal("0.07"))
    measured_well = replace(imprecise, observed=replace(observed, step=fair))
    assert not measured_well.reservation
    plain = contest(rows, "epoch")
    assert plain is not None
    assert plain.imprecise is None


def test_a_batch_beyond_the_source_answers_nothing(tmp_path: Path) -> None:
    """A batch size larger than any in the model's source is never the answer."""
    large = make_result(batch_size=256, samples=(0.011, 0.012, 0.011, 0.012))
    report = Report(inputs_of(write_project(tmp_path, [make_result(), large])))
    rows = [row for row in rows_by_workload(report, "net") if is_assumed(row)]
    for goal in ("epoch", "full"):
        assert contenders(rows, goal)
        assert all(row.observed.batch_size == 32 for row in ranking(rows, goal))
    (doubts,) = {row.observed.doubts for row in rows if row.observed.batch_size == 256}
    assert doubts[-1] == "more epochs may be needed: the source trains at batches of up to 128"


def test_a_host_that_is_nearly_as_fast_is_a_rival(tmp_path: Path) -> None:
    """Of two hosts with similar step times, each may be the cheaper one."""
    near = make_result(fingerprint="beef" * 4, samples=(0.0101, 0.0111, 0.0121, 0.0111))
    report = Report(inputs_of(write_project(tmp_path, [make_result(), near])))
    assumed = [row for row in rows_by_workload(report, "net") if is_assumed(row)]
    competing = contenders(assumed, "epoch")
    odds = odds_of(competing[0], competing, "epoch")
    assert [machine.host for machine in odds.rivals] == ["beef" * 4]
    assert 0.05 < odds.wins < 1
