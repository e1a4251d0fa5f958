"""Describe the columns of the table of figures: meaning, unit, type, and when a cell is empty.

`docs/reference/data-dictionary.md` is generated from them. `lines` computes the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["text", "integer", "number", "date"]
_NEVER = "never"
_UNPRICED = "if the cost is unknown (see unpriced_because)"
_NOT_SERVED = "for all but scenarios of LoadGen"
_NOT_MEASURED = "if we did not measure the result"


@dataclass(frozen=True, slots=True)
class Entry:
    """A column of the table; ``unit`` is empty for texts, ``empty`` says when a cell is empty."""

    name: str
    meaning: str
    empty: str = _NEVER
    type: ColumnType = "text"
    unit: str = ""


def _served(name: str, meaning: str, unit: str) -> Entry:
    return Entry(name, meaning, f"{_NOT_SERVED}, and if no rate met the bound", "number", unit)


def _seconds(name: str, meaning: str, empty: str) -> tuple[Entry, ...]:
    return _entries_with_interval(name, meaning, empty, "seconds", suffix="_s")


def _money(name: str, meaning: str) -> tuple[Entry, ...]:
    return _entries_with_interval(
        name, meaning, f"for other jobs, and {_UNPRICED}", "currency of the row"
    )


def _entries_with_interval(
    name: str, meaning: str, empty: str, unit: str, *, suffix: str = ""
) -> tuple[Entry, ...]:
    nothing = f"{empty}; also if no interval is known"
    few = f"{nothing}, or its samples are too few for a lower end"
    low, high = (f"{meaning}: {end} end of its interval" for end in ("lower", "upper"))
    return (
        Entry(f"{name}{suffix}", meaning, empty, "number", unit),
        Entry(f"{name}_low{suffix}", low, few, "number", unit),
        Entry(f"{name}_high{suffix}", high, nothing, "number", unit),
    )


ENTRIES: tuple[Entry, ...] = (
    Entry("workload", "id of the model, or of the published table"),
    Entry("task", "task of the model, such as image classification"),
    Entry(
        "figure", "measured, published, predicted or estimated, and whether the price is assumed"
    ),
    Entry("mode", "training or inference"),
    Entry(
        "variant",
        "precision or other setting in which a trial differs from a plain one (fp32, all vCPUs)",
        "for plain trials",
    ),
    Entry("scenario", "scenario of MLPerf's LoadGen, with its latency bound", _NOT_SERVED),
    Entry("batching", "rule by which requests are put together into batches", _NOT_SERVED),
    Entry("hardware", "id of the machine's kind"),
    Entry("host", "fingerprint of the measured host", _NOT_MEASURED),
    Entry("machine", "name of the machine"),
    Entry("device", "cpu or cuda"),
    Entry("vcpus", "vCPUs that the job could use", "if the number is unknown", "integer", "vCPUs"),
    Entry("software", "software that ran the job", "for estimates"),
    Entry(
        "stack",
        "onnxruntime, or published for other software; only times of the same stack are compared",
        "for estimates and scenarios of LoadGen",
    ),
    Entry(
        "precision",
        "precision of most of the arithmetic: fp32, tf32, mixed, or a variant's precision",
        "for estimates and scenarios of LoadGen, and if a source does not state the precision",
    ),
    Entry("batch_size", "examples per step", "for estimates", "integer", "examples"),
    Entry("epochs", "epochs of the full training", "for inference", "number", "epochs"),
    Entry(
        "epochs_known",
        "whether the number of epochs is known: no if the batch is larger than all batch sizes of "
        "the source, else yes",
        "for inference and estimates",
    ),
    Entry(
        "date",
        "day of the measurement or of the source; for an estimate, day of the price",
        type="date",
    ),
    *_seconds("step", "mean time of one batch", "if a source states only times of epochs"),
    *_seconds("epoch_time", "time of one epoch", "for inference and estimates"),
    *_seconds("full_time", "time of the full training", "for inference"),
    *_seconds("million_time", "time of a million inferences", "for training"),
    _served("samples_per_second", "samples that the scenario completed per second", "1/s"),
    *(
        _served(
            f"latency_p{percent}_s",
            f"latency that {percent} % of the scenario's samples do not exceed",
            "seconds",
        )
        for percent in (50, 90, 99)
    ),
    Entry("price", "id of the price plan", "if no price is known"),
    Entry(
        "price_basis",
        "how the price of a smaller machine was derived from the price of the whole machine",
        "if the price is that of the machine itself",
    ),
    Entry("provider", "seller of the machine's time", "if no price is known"),
    Entry("plan", "on-demand, spot, reserved, owned or another plan", "if no price is known"),
    Entry(
        "region",
        "region of the price",
        "if no price is known, or if the price applies in all regions",
    ),
    Entry("price_as_of", "day of the price", "if no price is known", "date"),
    Entry(
        "price_unconfirmed",
        "values of the price that no source confirms: amount, date or billing",
        "if a source confirms all these values, or if no price is known",
    ),
    Entry(
        "price_current",
        "yes if no newer price of the plan is known, else no",
        "if no price is known",
    ),
    Entry("currency", "currency of the costs by its code in ISO 4217", "if no price is known"),
    Entry("unpriced_because", "why there is no cost", "if there is a cost"),
    Entry(
        "reservation",
        "why the choice is named the cheapest only if there is no other: an assumed or doubted "
        "price, a spot plan with an unknown rate of interruptions, a commitment, or a measured "
        "time that is too uncertain",
        "if there is no such reason",
    ),
    *_money("epoch_cost", "cost of one epoch of a longer job, without the machine's start"),
    *_money("full_cost", "bill of the full training"),
    *_money("million_cost", "cost of a million inferences"),
    Entry(
        "step_ratio",
        "time of our training step divided by PyTorch's; above 1, our step is slower",
        "if this batch size was not compared with PyTorch",
        "number",
    ),
    Entry(
        "step_energy_j",
        "mean energy of a step, as the meters in the column energy_meters read it",
        "if no meter was read",
        "number",
        "joules",
    ),
    Entry(
        "energy_meters",
        "meters that were read while steps were timed; other parts of the machine are not counted",
        "if no meter was read",
    ),
    Entry(
        "peak_memory_bytes",
        "peak memory of the measuring process: on the GPU if device is cuda, else on the host",
        "if the memory was not read",
        "integer",
        "bytes",
    ),
    Entry("samples", "steps that were timed", "if we timed no steps", "integer", "steps"),
    Entry("stop_reason", "why the sampling ended", "if we timed no steps"),
    Entry(
        "doubts",
        "how the machine differs from its spec, and why a repetition may take another time",
        "if there is no doubt",
    ),
    Entry("evidence", "file or page of the site with the evidence of the result"),
)


_INTRODUCTION = """\
# Data dictionary

This page lists the columns of `data/figures.csv`, `data/figures.json` and `data/figures.parquet`.
The files contain every result of the site, in one row per model, machine and price. `make schemas`
writes this page. See also: [use the data](../how-to/use-the-data.md).

A value that is unknown or does not apply is empty in CSV and null in the other files, never zero.
Numbers have all their digits in CSV; in JSON and Parquet they are 64-bit binary floats. In CSV,
text that a spreadsheet would run as a formula begins with an apostrophe.

Many times and costs have an interval. For a measured mean it is the 95 % confidence interval, for a
prediction the 90 % interval. For an estimate, the interval comes from the lowest and the highest
assumed utilisation.
"""
_HEAD = "| Column | Type | Unit | Meaning | Empty |\n|---|---|---|---|---|"


def dictionary_page() -> str:
    """The data dictionary as a Markdown page."""
    rows = (
        f"| `{entry.name}` | {entry.type} | {entry.unit} | {entry.meaning} | {entry.empty} |"
        for entry in ENTRIES
    )
    return "\n".join([_INTRODUCTION, _HEAD, *rows]) + "\n"
