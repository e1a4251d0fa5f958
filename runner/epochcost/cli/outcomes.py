"""Print the outcome of a run: trials, reasons for doubt, and costs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from epochcost.analysis.answers import rows_of
from epochcost.analysis.observations import Goal
from epochcost.analysis.rows import GOAL_NAMES, Row, contenders
from epochcost.cli.bundled import inputs_to_read
from epochcost.cli.choices import render_range
from epochcost.cli.terminal import print_table, say
from epochcost.execute.assignment import Failed, Outcome, Skipped
from epochcost.execute.patience import is_imprecise
from epochcost.plan.make import Plan
from epochcost.plan.trial import Trial
from epochcost.plan.work import Load, Requests, Work
from epochcost.results.checks import Claim, first_fault
from epochcost.results.plausibility import FlopsByModel
from epochcost.results.records import Result
from epochcost.results.rounds import summary_of, without_disturbed_rounds
from epochcost.results.served import ServingRecord
from epochcost.results.sidecars import BatchLimit
from epochcost.results.stability import disturbances_of, instabilities
from epochcost.specs.catalogue import Catalogue
from epochcost.units import money, render_count, rounded, seconds, share

_MOST_NAMED = 2


def show_outcomes(
    outcomes: Sequence[Outcome], plan: Plan, results: Path, hardware: str, *, patient: bool
) -> None:
    """Print trials and doubts; advise to add time unless ``patient``."""
    measured = _measured(outcomes)
    rows = []
    for outcome in outcomes:
        if not isinstance(outcome, Failed) and (served := outcome.result.measurement.served):
            say(f"{outcome.trial.title}: {render_served(outcome.trial, served)}")
        else:
            rows.append(_outcome_row(outcome))
    header = ("trial", "mean step", "±", "examples/s", "samples", "stopped")
    print_table(header, rows, drop=("samples", "examples/s"))
    count = len(measured)
    say(f"{count} of {len(outcomes)} results are in {results / hardware}")
    if plan.left_out:
        say(f"{len(plan.left_out)} left out; `epochcost plan` says why")
    wide = sum(map(is_imprecise, measured))
    if wide and not patient:
        more = "the same command with `--resume --patience 20` adds rounds for up to 20 minutes"
        say(f"{wide} of {count} have fewer samples than the requested precision needs: {more}")
    show_doubts(measured)


def _measured(outcomes: Iterable[Outcome]) -> list[Result]:
    finished = (outcome.result for outcome in outcomes if not isinstance(outcome, Failed))
    return [without_disturbed_rounds(result) for result in finished]


def _outcome_row(outcome: Outcome) -> tuple[str, ...]:
    if isinstance(outcome, Failed):
        return (outcome.trial.title, "-", "-", "-", "-", "failed")
    measurement = outcome.result.measurement
    stored = " (stored before)" if isinstance(outcome, Skipped) else ""
    summary = summary_of(without_disturbed_rounds(outcome.result))
    return (
        outcome.trial.title,
        seconds(summary.mean),
        share(summary.relative_margin, decimals=1),
        f"{outcome.trial.batch_size / summary.mean:,.0f}",
        str(summary.count),
        measurement.stop_reason + stored,
    )


def show_doubts(results: Sequence[Result]) -> None:
    """Print how machines differ from their specs, and unstable results with remedies."""
    for contradiction in dict.fromkeys(text for each in results for text in each.contradictions):
        say(f"differs from the spec: {contradiction}", err=True)
    remedies: dict[str, dict[str, list[str]]] = {}
    for result in results:
        for instability in instabilities(result):
            titles = remedies.setdefault(instability.remedy, {}).setdefault(instability.phrase, [])
            titles.append(result.trial.title)
    if remedies:
        say("unstable:", err=True)
    for remedy, doubts in remedies.items():
        lines = []
        for doubt, titles in doubts.items():
            many = len(titles) > _MOST_NAMED
            lines += [f"  {f'{len(titles)} trials' if many else '; '.join(titles)}: {doubt}"]
        say("\n".join([*lines, f"    remedy: {remedy}"]), err=True)


def show_refusals(catalogue: Catalogue, outcomes: Iterable[Outcome]) -> None:
    """Print the results that `epochcost check --results` would refuse, with the reasons."""
    now, flops = dt.datetime.now(dt.UTC), FlopsByModel()
    results = [outcome.result for outcome in outcomes if not isinstance(outcome, Failed)]
    faults = [(each, first_fault(Claim(each, catalogue, now, flops))) for each in results]
    lines = [f"  {each.trial.title}: {fault}" for each, fault in faults if fault]
    if lines:
        remedy = "    remedy: the same command with `--resume` measures these trials again"
        say("\n".join(["`epochcost check --results` refuses:", *lines, remedy]), err=True)


def render_served(trial: Trial, served: ServingRecord) -> str:
    """Format a serving trial in a line: its rate of requests or samples, and its latencies."""
    run = served.run
    if run is None:
        runs = render_count(len(served.runs), "run")
        return f"no rate {render_bound(trial.work)}, {runs} of LoadGen"
    if run.tokens is not None:
        latencies = (run.tokens.first, run.tokens.further)
        first, further = (seconds(each.p90_nanoseconds / 1e9) for each in latencies)
        return (
            f"{rounded(run.samples_per_second)} requests/s, 90 % of first tokens within "
            f"{first} and of further ones within {further}"
        )
    latency = run.latency
    p50, p99 = (seconds(at / 1e9) for at in (latency.p50_nanoseconds, latency.p99_nanoseconds))
    bound = "" if run.kept_bound is None else f" {render_bound(trial.work)}"
    return f"{run.samples_per_second:,.0f} samples/s{bound}, latency p50 {p50}, p99 {p99}"


def render_bound(work: Work) -> str:
    """Describe the bound on a server's latency; empty for trials without a bound."""
    if isinstance(work, Requests):
        return f"keeps {render_token_bound(work)}"
    if not isinstance(work, Load) or work.bound_seconds is None:
        return ""
    share = float(work.latency_percentile or 0)
    return f"keeps {share:.4g} of answers within {seconds(work.bound_seconds)}"


def render_token_bound(requests: Requests) -> str:
    """Describe the bounds on the latencies of tokens."""
    first, further = (
        seconds(bound / 1e3) for bound in (requests.first_token_ms, requests.token_ms)
    )
    return (
        f"{requests.percentile} % of first tokens within {first} and further ones within {further}"
    )


def render_limit(limit: BatchLimit) -> str:
    """Format the largest batch of a sweep and what ended the sweep, in one line."""
    trial = limit.trial
    work = f"{trial.model} {trial.mode} {trial.provider}"
    variant = f", {trial.variant}" if trial.variant else ""
    largest = limit.largest_that_ran
    ran = "no batch ran" if largest is None else f"largest batch that ran {largest:,}"
    return f"{work}{variant}: {ran}; ended by {limit.cause}: {limit.reason}"


def show_costs(catalogue: Catalogue, results: Path, outcomes: Iterable[Outcome]) -> None:
    """Print each measured job's cost, the number of noisy results, and how to build the site."""
    measured = _measured(outcomes)
    if not measured:
        return
    names = dict.fromkeys(result.trial.model for result in measured)
    decoders = [model for model in names if catalogue.model(model).decoder is not None]
    models = [model for model in names if model not in decoders]
    inputs = inputs_to_read(results, catalogue)
    rows = rows_of(inputs, models)
    ran = {(result.hardware, result.environment.fingerprint) for result in measured}
    # Results of the machine at hand count as those of the machine that its host is declared as.
    machines = {
        inputs.machine(file.result)
        for file in inputs.stored
        if (file.path.parent.name, file.result.environment.fingerprint) in ran
    }
    say("\nWhat it costs:")
    for model in models:
        of_model = [row for row in rows if row.observed.workload.id == model]
        here = [row for row in of_model if row.observed.machine in machines and row.current]
        for goal in _goals(here):
            say("\n".join(_job_cost_lines(here, of_model, goal)))
    for model in decoders:
        say(f"  by the token: `epochcost tokens --model {model} --requests 0.1/s`")
    if disturbed := sum(bool(disturbances_of(result)) for result in measured):
        say(
            f"{disturbed} of {len(measured)} results are disturbed, as listed above: measure them "
            "again without the disturbance and without `--resume`"
        )
    say("The site: `epochcost build` writes it into site/, `epochcost serve` shows it")


def _goals(here: Sequence[Row]) -> Iterator[Goal]:
    goals = {goal for row in here for goal in row.observed.goals if row.time(goal)}
    if goals & {"full", "epoch"}:
        yield "full" if "full" in goals else "epoch"
    if "million" in goals:
        yield "million"


def _job_cost_lines(rows_here: Sequence[Row], all_rows: Sequence[Row], goal: Goal) -> Iterator[str]:
    timed = [(row, time.mean) for row in rows_here if (time := row.time(goal))]
    fastest, _ = min(timed, key=lambda pair: pair[1])
    best = next(iter(contenders([row for row, _ in timed], goal)), fastest)
    yield f"  {best.observed.workload.name}, {GOAL_NAMES[goal]}, here: {_cost(best, goal)}"
    same = [row for row in all_rows if row.observed.stack == best.observed.stack]
    listed = contenders([row for row in same if _has_list_price(row)], goal)
    if not listed:
        yield "    no time on a machine with a list price is known"
        return
    row = listed[0]
    assert row.price is not None, "unpriced rows are left out above"
    place = f"{row.observed.machine.name}, {row.price.plan}"
    yield f"    cheapest at a list price: {_cost(row, goal)} on {place} ({row.mark})"


def _has_list_price(row: Row) -> bool:
    return row.price is not None and not row.price.reservation and row.price.owned is None


def _cost(row: Row, goal: Goal) -> str:
    cost, time = row.estimate(goal), row.time(goal)
    assert time is not None, "callers pass rows with a time"
    took = seconds(float(time.mean))
    if cost is None:
        return f"{took}, without a price"
    remark = f" ({render_range(cost, time)}{', assumed price' if cost.assumed else ''})"
    batch = f", batch {row.observed.batch_size}" if row.observed.batch_size else ""
    return f"{money(cost.mean, cost.currency)}{remark} in {took}{batch}"
