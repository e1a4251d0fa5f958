"""How fast a decoder reads and writes, what bounds that, and how long a token takes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from epochcost.analysis.phases import PhaseTime, TimedDecoder
from epochcost.analysis.roofline import DecodedStep
from epochcost.analysis.rows import group_by
from epochcost.analysis.tokens import Requests, capacities
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Ends, MachineName, Shown
from epochcost.report.charts.figure import Chart, Figure, ends
from epochcost.report.escape import one_line

_INK = "var(--ec-ink)"
# For the names of rows where a reader's font is a sixth wider than the one of a static chart.
_NAMES = {"minExtent": 108}
# By field of a step: its words in the legend.
_PARTS = {
    "weights": "weights (computed)",
    "cache": "cache (computed)",
    "rest": "rest of the measured",
}
_READ = {"prefill": "prompt", "decode": "cache"}

Work = Annotated[str, Shown("Precision and sequences")]


@dataclass(frozen=True, slots=True)
class PhaseRate:
    """One phase of a decoder on a machine."""

    machine: MachineName
    phase: Annotated[str, Shown("Phase")]
    work: Work
    tokens: Annotated[int, Shown("Tokens before or read", "number")]
    length: Annotated[str, Shown("Length", place="chart")]
    step: Annotated[Ends, Shown("One run", "seconds", bounds=False)]
    tokens_per_second: Annotated[float, Shown("Tokens/s", "number")]
    strength: Annotated[float, Shown("Strength", place="chart")]


@dataclass(frozen=True)
class RateMap(Chart[PhaseRate]):
    """A cell for each length, and number of sequences in a precision; ``strength`` is 0 to 1."""

    summary = "Tokens per second by length and number of sequences."
    height: ClassVar = {"step": 34}

    def layers(self, alt: Any) -> list[Any]:
        """Cells, with their rates written in them."""
        columns, rows = (
            list(dict.fromkeys(self.data.values_of(name))) for name in ("length", "work")
        )
        words = alt.Axis(labelExpr="split(datum.label, ' ')", labelAngle=0, domain=False)
        base = self.marks(alt).encode(
            x=alt.X("length:N", sort=columns, title="tokens in the prompt or cache", axis=words),
            y=alt.Y("work:N", sort=rows, title=None, axis=_NAMES),
        )
        # So faint that ink stands out from the strongest in light and dark.
        strength = {"domain": [0, 1], "range": [0.05, 0.42]}
        return [
            base.mark_rect(color="var(--ec-series-1)").encode(
                opacity=alt.Opacity("strength:Q", scale=strength, legend=None),
                tooltip=self.data.tooltips(alt),
            ),
            base.mark_text(color=_INK, fontSize=12).encode(
                text=alt.Text("tokens_per_second:Q", format=",.3~r")
            ),
        ]


def rate_map(timed: Sequence[TimedDecoder], *, identifier: str) -> Figure:
    """Every phase on one machine, in all precisions."""
    every = [(one, each) for one in timed for each in one.phases]
    by_work = sorted(every, key=lambda pair: (pair[0].precision, pair[1].sequences))
    by_phase = group_by((each for _, each in every), lambda each: each.phase.name)
    most = {name: max(each.tokens_per_second for each in own) for name, own in by_phase.items()}
    rows = tuple(
        PhaseRate(
            machine=one_line(one.machine.name),
            phase=each.phase.name,
            work=_work(one, each),
            tokens=each.phase.tokens,
            length=f"{_READ[each.phase.name]} {each.phase.tokens:,}",
            step=ends(each.step),
            tokens_per_second=float(each.tokens_per_second),
            strength=float(each.tokens_per_second / most[each.phase.name]),
        )
        for one, each in sorted(by_work, key=lambda pair: _by_length(pair[1]))
    )
    return Figure(
        id=identifier,
        title=f"Tokens per second on {rows[0].machine}",
        description=(
            "Prefill reads a prompt of so many tokens, decoding adds one to each sequence after so "
            "many in its cache; tokens of all sequences together. The stronger a cell, the faster."
        ),
        chart=RateMap(ChartData(rows)),
    )


def _by_length(one: PhaseTime) -> tuple[bool, int]:
    return one.phase.name == "decode", one.phase.tokens


def _work(decoder: TimedDecoder, one: PhaseTime) -> str:
    return f"{decoder.precision}, {one.sequences} at once"


@dataclass(frozen=True, slots=True)
class StepParts:
    """What one step of decoding takes, and the least that memory takes of that."""

    machine: MachineName
    work: Work
    tokens: Annotated[int, Shown("Tokens in the cache", "number")]
    name: Annotated[str, Shown("Step", place="chart")]
    step: Annotated[float, Shown("One step, measured", "seconds")]
    weights: Annotated[float, Shown("Weights, computed", "seconds")]
    cache: Annotated[float, Shown("Cache, computed", "seconds")]
    rest: Annotated[float, Shown("All else, the rest", "seconds")]
    share: Annotated[float, Shown("Share of the memory's ceiling", "number", digits=2)]


@dataclass(frozen=True)
class StepBars(Chart[StepParts]):
    """A stacked bar for each step, with the share of the ceiling at its end."""

    summary = "The measured time of one step of decoding, by computed parts."
    height: ClassVar = {"step": 26}

    def layers(self, alt: Any) -> list[Any]:
        """The parts one after the other, then the share."""
        order = list(dict.fromkeys(self.data.values_of("name")))
        longest = max(sum(row[part] for part in _PARTS) for row in self.data.values)
        scale = {"domain": [0, longest * 1.25], "nice": False}
        words = alt.Axis(labelExpr="format(datum.value * 1000, ',~r')", tickCount=6)
        x = alt.X("seconds:Q", title="milliseconds of one step", scale=scale, axis=words)
        y = alt.Y("name:N", sort=order, title=None, axis=_NAMES)
        places = {words: at for at, words in enumerate(_PARTS.values())}
        folded = self.data.fold(_PARTS, "part", "seconds")
        parts = [{**row, "place": places[row["part"]]} for row in folded]
        ends = self.marks(alt).transform_calculate(seconds="datum.weights+datum.cache+datum.rest")
        return [
            alt.Chart(alt.Data(values=parts))
            .mark_bar()
            .encode(
                x=x,
                y=y,
                color=alt.Color(
                    "part:N", scale=theme.series_scale(places, places), title="part of the time"
                ),
                order="place:Q",
                tooltip=self.data.tooltips(alt),
            ),
            ends.mark_text(align="left", dx=5, color=_INK, fontSize=12).encode(
                x=x, y=y, text=alt.Text("share:Q", format=".0%")
            ),
        ]


def step_bars(steps: Sequence[DecodedStep], *, identifier: str) -> Figure | None:
    """Every decoding on one machine; None where its memory was not measured."""
    if not steps:
        return None
    rows = tuple(map(_parts, sorted(steps, key=_by_work)))
    return Figure(
        id=identifier,
        title=f"Where the time of a token goes on {rows[0].machine}",
        description=(
            "Each row is of so many sequences of so many tokens. Only the whole bar is measured. A "
            "step must read all weights once and the cache of each sequence; both parts are "
            "computed from these bytes and the fastest copy of memory that was measured on this "
            "machine. The percentage is the share of that ceiling which the step reaches."
        ),
        chart=StepBars(ChartData(rows)),
    )


def _by_work(step: DecodedStep) -> tuple[str, int, int]:
    return step.decoder.precision, step.timed.sequences, step.timed.phase.tokens


def _parts(step: DecodedStep) -> StepParts:
    precision = step.decoder.precision
    return StepParts(
        machine=one_line(step.decoder.machine.name),
        work=_work(step.decoder, step.timed),
        tokens=step.timed.phase.tokens,
        name=f"{precision}, {step.timed.sequences} of {step.timed.phase.tokens:,}",
        step=float(step.timed.step.mean),
        weights=step.weight_seconds,
        cache=step.cache_seconds,
        rest=step.other_seconds,
        share=step.of_ceiling,
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """What a machine does with so many sequences in work."""

    way: Annotated[str, Shown("Way")]
    sequences: Annotated[int, Shown("Sequences at once", "number")]
    tokens_per_second: Annotated[float, Shown("Tokens written/s", "number")]
    token_time: Annotated[Ends, Shown("Between two tokens", "seconds")]


@dataclass(frozen=True)
class PaceChart(Chart[Pace]):
    """A line for each way from few sequences to many; ``bound`` is what a token may take."""

    bound: float | None = None
    long_names = True
    summary = "Time between two tokens by tokens per second."
    picks = "way"

    def layers(self, alt: Any) -> list[Any]:
        """Lines and points with their numbers of sequences, and the bound."""
        bounds = [] if self.bound is None else [self.bound]
        x = axes.log_axis(alt.X, self.data, "tokens_per_second", "tokens written per second")
        y = axes.log_axis(alt.Y, self.data, "token_time", "between two tokens", also=bounds)
        plain = self.marks(alt).encode(x=x, y=y)
        base = plain.encode(color=theme.colour_by(alt, self.data, "way"))
        numbers = plain.encode(text="sequences:Q")
        rule = alt.Chart(alt.Data(values=[{"token_time": bound} for bound in bounds]))
        drawn = [rule.mark_rule(strokeDash=[4, 4], color=_INK).encode(y=y)] if bounds else []
        look = {"dy": -12, "fontSize": 12}
        return [
            *drawn,
            base.mark_line(strokeWidth=2),
            base.mark_point(filled=True, size=60).encode(
                shape=theme.shape_by(alt, self.data, "way"), tooltip=self.data.tooltips(alt)
            ),
            numbers.mark_text(**look, stroke="var(--ec-paper)", strokeWidth=4),
            numbers.mark_text(**look, color=_INK),
        ]


def pace_chart(timed: Sequence[TimedDecoder], asked: Requests, *, identifier: str) -> Figure | None:
    """Every machine and precision at every number of sequences; None where none was timed."""
    rows = tuple(row for one in timed for row in _paces(one, asked))
    if not rows:
        return None
    bound = asked.token_seconds
    kept = "" if bound is None else " The dashed line is the longest that a token may take."
    return Figure(
        id=identifier,
        title="Latency vs. throughput",
        description=(
            f"For requests of {asked.prompt:,} tokens read and {asked.output:,} written, at the "
            "most that the machine does; numbers are the sequences in work at once." + kept
        ),
        chart=PaceChart(ChartData(rows), bound=None if bound is None else float(bound)),
    )


def _paces(decoder: TimedDecoder, asked: Requests) -> Iterator[Pace]:
    for one in capacities(decoder, asked):
        yield Pace(
            way=one_line(f"{decoder.precision}, {decoder.machine.name}"),
            sequences=one.sequences,
            tokens_per_second=float(one.per_second * asked.output),
            token_time=ends(one.token),
        )
