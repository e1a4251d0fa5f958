"""`epochcost replay`: what a job on spot machines would have cost, staying or moving.

What a policy does is `cost.replay`; here is what is asked and how it is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from epochcost.analysis.observations import observe
from epochcost.analysis.predicted import predict_times
from epochcost.analysis.replays import (
    POLICY_WORDS,
    SavingTerms,
    Work,
    on_demand_per_hour,
    policies_of,
    work_of_model,
)
from epochcost.cli.bundled import catalogue_to_read, inputs_to_read
from epochcost.cli.terminal import (
    RESULTS,
    ExactFigures,
    Format,
    ResultsFolder,
    ids,
    print_json,
    print_table,
    say,
    with_option_groups,
)
from epochcost.cost import Time
from epochcost.cost.market import InterruptionRate, Market
from epochcost.cost.policies import Comparison, PolicyResult, compare_policies
from epochcost.cost.replay import POLICIES, MovingJob, Policy
from epochcost.errors import InputError, UsageError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.prices.traces import LONGEST_GAP_SECONDS, Trace, read_traces
from epochcost.specs.wording import suggestion
from epochcost.units import (
    SECONDS_PER_HOUR,
    money,
    parse_decimal,
    parse_duration_seconds,
    seconds,
    share,
)

_HEADER = ("policy", "cost", "10 to 90 %", "worst", "time", "worst time", "interrupted", "moved")
_DROP = ("worst time", "moved", "interrupted", "worst")


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """The options that say which machines there were."""

    trace: Annotated[
        list[Path],
        typer.Option(help="CSV, AWS's spot price history or spot-traces' JSON; repeatable."),
    ]
    zones: Annotated[str | None, typer.Option(help="Only these zones: a,b.")] = None
    spot_price: Annotated[
        str | None, typer.Option(help="Price per hour where the trace has none.")
    ] = None
    bid: Annotated[
        str | None, typer.Option(help="A price per hour above it takes machines back.")
    ] = None
    longest_gap: Annotated[
        str | None, typer.Option(help="Time between a zone's rows at most.  [default: 7 days]")
    ] = None

    def read(self) -> tuple[Trace, Market]:
        """The trace and its market; raises InputError as `read_traces` does."""
        gap = self.longest_gap
        trace = read_traces(
            self.trace,
            _listed(self.zones),
            price=_amount(self.spot_price, "spot-price"),
            longest_gap_seconds=float(parse_duration_seconds(gap)) if gap else LONGEST_GAP_SECONDS,
        )
        return trace, Market(trace, bid=_amount(self.bid, "bid"))


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options that say what is done, and how it is saved, moved and priced elsewhere."""

    model: Annotated[
        str | None, typer.Option(help="A model that is trained.", autocompletion=ids("models"))
    ] = None
    hardware: Annotated[
        str | None, typer.Option(help="The machine.", autocompletion=ids("hardware"))
    ] = None
    hours: Annotated[str | None, typer.Option(help="Hours of work, without --model.")] = None
    on_demand: Annotated[
        str | None, typer.Option(help="Price per hour.  [default: of --hardware]")
    ] = None
    deadline: Annotated[str | None, typer.Option(help="Time on the wall at most: 36h.")] = None
    state_gb: Annotated[
        str | None, typer.Option(help="What is saved.  [default: of --model; else 1]")
    ] = None
    disk: Annotated[str, typer.Option(help="GB saved in a second.")] = "0.5"
    network: Annotated[str, typer.Option(help="GB moved to another zone in a second.")] = "0.1"
    transfer_price: Annotated[str, typer.Option(help="Price of a GB moved.")] = "0"
    restart: Annotated[str, typer.Option(help="Time from a start to work.")] = "5m"
    notice: Annotated[
        str | None, typer.Option(help="Time between the word that a machine goes and its end: 2m.")
    ] = None
    interval: Annotated[
        str | None, typer.Option(help="Work between saves.  [default: Daly's optimum]")
    ] = None

    def terms(self) -> SavingTerms:
        """What saving and moving take; raises InputError where an option is no number."""
        return SavingTerms(
            disk_gb_per_second=_amount(self.disk, "disk") or 1,
            network_gb_per_second=_amount(self.network, "network") or 1,
            transfer_price_per_gb=float(parse_decimal(self.transfer_price, "transfer-price")),
            restart_seconds=_duration(self.restart) or 0.0,
            interval_seconds=_duration(self.interval),
            notice_seconds=_duration(self.notice) or 0.0,
            deadline_seconds=_duration(self.deadline),
        )


@with_option_groups
def replay(
    traced: TraceOptions,
    asked: JobOptions,
    policy: Annotated[
        str | None, typer.Option(help=f"Of {', '.join(POLICIES)}: a,b.  [default: all]")
    ] = None,
    rate: Annotated[
        bool, typer.Option("--rate", help="Only how often each zone interrupts, for a price.")
    ] = False,
    starts: Annotated[int, typer.Option(help="Starts, evenly over the trace.", min=1)] = 1000,
    results: ResultsFolder = RESULTS,
    form: ExactFigures = "text",
) -> None:
    """Replay a job over spot prices of the past, staying or moving.

    Example: epochcost replay --hours 24 --trace prices.csv --on-demand 3.06 --deadline 36h
    """
    trace, market = traced.read()
    if rate:
        _show_rates(trace, market, form, told=trace.tells_availability or traced.bid is not None)
        return
    if (asked.model is None) == (asked.hours is None):
        got = "neither" if asked.model is None else "both"
        raise UsageError(f"replay: expected either --model or --hours, got {got}")
    if asked.model is not None and asked.hardware is None:
        raise UsageError("replay: expected --hardware with --model, the machine of its time")
    catalogue = catalogue_to_read() if asked.model or asked.hardware else None
    work = _work(asked, catalogue, results)
    job = asked.terms().job(work, market, _on_demand(asked, catalogue, trace.currency))
    found = compare_policies(market, job, work.time, _policies(policy, job), starts)
    if form == "json":
        print_json(_as_json(trace, work, job, found))
    else:
        _show(trace, work, job, found)


def _listed(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]


def _policies(text: str | None, job: MovingJob) -> list[Policy]:
    """Those asked for, else all that the job can have; raises InputError at an unknown one."""
    asked, known = _listed(text), {str(one): one for one in POLICIES}
    for one in asked:
        if one not in known:
            raise InputError(
                f"policy: expected {', '.join(POLICIES)}, got {one!r:.80}{suggestion(one, known)}"
            )
    return [known[one] for one in asked] or policies_of(job)


def _duration(text: str | None) -> float | None:
    return None if text is None else float(parse_duration_seconds(text))


def _amount(text: str | None, name: str) -> float | None:
    if text is None:
        return None
    value = parse_decimal(text, name)
    if value <= 0:
        raise InputError(f"{name}: expected an amount above 0, got {value}")
    return float(value)


def _work(asked: JobOptions, catalogue: Catalogue | None, results: Path) -> Work:
    state = _amount(asked.state_gb, "state-gb")
    if asked.hours is not None:
        hours = _amount(asked.hours, "hours")
        work = Time.exact(Decimal(repr(hours)) * SECONDS_PER_HOUR)
        return Work("a job", work, "as given", 1.0 if state is None else state)
    assert catalogue is not None, "a model is read from the catalogue"
    model, machine = catalogue.model(str(asked.model)), catalogue.machine(str(asked.hardware))
    inputs = inputs_to_read(results, catalogue)
    timed = observe(inputs, workloads=[model.id])
    known = (*timed, *predict_times(inputs, [model]).observations)
    return work_of_model(catalogue, known, model, machine.id, state)


def _on_demand(asked: JobOptions, catalogue: Catalogue | None, currency: str) -> float | None:
    """The price of an hour on demand, as given or the least of the machine's; None: unknown."""
    if asked.on_demand is not None or asked.hardware is None or catalogue is None:
        return _amount(asked.on_demand, "on-demand")
    return on_demand_per_hour(catalogue, asked.hardware, currency)


def _show(trace: Trace, work: Work, job: MovingJob, found: Comparison) -> None:
    say("\n".join(_introduction(trace, work, job, found)) + "\n")
    left_out = print_table(
        _HEADER, [_cells(one, trace.currency) for one in found.results], drop=_DROP
    )
    say("\n".join(_conclusions(trace, found, job)))
    if left_out:
        say(f"Left out of the table: {', '.join(left_out)}; --format json has all")


def _introduction(trace: Trace, work: Work, job: MovingJob, found: Comparison) -> Iterator[str]:
    low, high = (seconds(float(end)) for end in (work.time.low, work.time.high))
    between = f", {low} to {high}" if low != high else ""
    yield f"{work.name}: {seconds(job.work_seconds)} of work ({work.known}{between})"
    zones = "1 zone" if len(trace.zones) == 1 else f"{len(trace.zones)} zones"
    yield f"{trace.source}: {trace.window}, {zones}"
    when = (
        f"within the notice of {seconds(job.notice_seconds)}"
        if job.saves_on_notice
        else f"after every {seconds(job.interval_seconds)} of work"
    )
    yield (
        f"{work.state_gb:.3g} GB saved in {seconds(job.save_seconds)} {when}; "
        f"a restart takes {seconds(job.restart_seconds)}, "
        f"a move {seconds(job.move_seconds)} more and {_money(job.move_charge, trace.currency)}"
    )
    if not trace.tells_availability:
        yield "The trace says no word of availability: only a --bid below a price interrupts"
    left = found.starts - found.compared
    without = f"; {left:,} more would end after the trace" if left else ""
    yield f"{found.compared:,} starts, evenly over the trace{without}"


def _cells(one: PolicyResult, currency: str) -> tuple[str, ...]:
    cost, time = one.cost, one.seconds
    return (
        POLICY_WORDS[one.policy] + (f" in {one.zone}" if one.zone else ""),
        _money(cost.mean, currency),
        f"{_money(cost.p10, currency)} to {_money(cost.p90, currency)}",
        _money(cost.worst, currency),
        seconds(time.mean),
        seconds(time.worst),
        f"{one.interruptions:.2f}",
        f"{one.moves:.2f}",
    )


def _conclusions(trace: Trace, found: Comparison, job: MovingJob) -> Iterator[str]:
    stay, currency = found.results[0], trace.currency
    yield f"Staying as the closed form expects it: {_money(found.closed_form, currency)}"
    yield from _about_notice(found, job, currency)
    for one in found.results:
        if one.low < one.high:
            ends = f"{_money(one.low, currency)} to {_money(one.high, currency)}"
            yield f"By the interval of the work's time, {POLICY_WORDS[one.policy]}: {ends}"
    for one in found.results[1:]:
        saved, less = one.saved, 1 - one.cost.mean / stay.cost.mean
        than = "less" if less >= 0 else "more"
        yield (
            f"{POLICY_WORDS[one.policy].capitalize()} costs {share(abs(less))} {than} than the "
            f"best single zone; start by start it saves {share(saved.p10)} to {share(saved.p90)}"
        )
    if found.on_demand is None:
        yield "On demand: price unknown; give --on-demand"
        return
    best = min(found.results, key=lambda one: one.cost.mean)
    less = 1 - best.cost.mean / found.on_demand
    verb = f"saves {share(less)}" if less >= 0 else f"costs {share(-less)} more"
    yield f"On demand it costs {_money(found.on_demand, currency)}: spot {verb} at best"
    if job.deadline_seconds is None:
        yield "With --deadline, what falling back to on demand costs is shown too"


def _about_notice(found: Comparison, job: MovingJob, currency: str) -> Iterator[str]:
    if found.unnoticed is not None:
        yield f"Staying, with no notice to save in: {_money(found.unnoticed, currency)}"
    elif job.notice_seconds:
        yield (
            f"A notice of {seconds(job.notice_seconds)} saves nothing: a save takes "
            f"{seconds(job.save_seconds)}"
        )


def _show_rates(trace: Trace, market: Market, form: Format, *, told: bool) -> None:
    """What is proposed for price specs; raises InputError where nothing was ever interrupted."""
    if not told:
        raise InputError(
            f"{trace.source}: expected a trace that says when there was no machine, got prices "
            "only: add the column available, or give --bid"
        )
    rates = [market.interruption_rate(zone) for zone in range(len(market.zones))]
    if form == "json":
        print_json([asdict(one) | _interval(one) for one in rates])
    else:
        typer.echo("\n\n".join(_proposal(one, trace) for one in rates))


def _interval(one: InterruptionRate) -> dict[str, float | None]:
    return {"mean": one.mean, "low": one.low, "high": one.high} if one.hours else {"mean": None}


def _proposal(one: InterruptionRate, trace: Trace) -> str:
    """Lines of a price spec, with what they rest on."""
    seen = f"{one.interruptions} interruptions in {one.hours:,.0f} h of running"
    head = f"# {one.zone}: {seen},\n# {trace.window}, {trace.source}"
    if not one.hours:
        return f"# {one.zone}: never a machine, {trace.window}, {trace.source}"
    return (
        f'{head}\nranges = {{ "interruptions.rate_per_hour" = {{ low = {one.low:.2g}, '
        f"high = {one.high:.2g} }} }} # 95 %\n\n[interruptions]\nrate_per_hour = {one.mean:.3g}"
    )


def _money(amount: float, currency: str) -> str:
    return money(Decimal(f"{amount:.12g}"), currency)


def _as_json(trace: Trace, work: Work, job: MovingJob, found: Comparison) -> dict[str, Any]:
    return {
        "work": work,
        "trace": {
            "source": trace.source,
            "window": trace.window,
            "zones": list(trace.zones),
            "currency": trace.currency,
            "tells_availability": trace.tells_availability,
        },
        "job": job,
        "comparison": found,
    }
