"""Rates at full load that `epochcost tokens` predicts, compared with published rates.

    python benchmarks/full_load.py [--leave-out device] [--software vLLM] [--json FILE]

For each model, machine and pair of prompt and answer lengths, the highest published rate counts:
that of an online server, or one that its source calls the maximum load. The prediction is for the
same devices and the published number of requests at once; if a source does not state that number,
for the best number of sequences. ``--leave-out device`` predicts each row without all rows of its
chip.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from epochcost.analysis.decoder_places import Place
from epochcost.analysis.machines import Machine
from epochcost.analysis.serving_capacity import ENGINES, Layout, ServedModel, predicted_capacities
from epochcost.analysis.tokens import Requests
from epochcost.predict.decoders.doubts import sound_rows
from epochcost.predict.decoders.rows import TokenRow, token_rows
from epochcost.predict.decoders.serving import ServingForecaster
from epochcost.specs.hardware import Device
from epochcost.specs.loader import load_catalogue
from epochcost.statistics import group_by

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Comparison:
    """Generated tokens per second at full load, published and predicted with the range."""

    software: str
    model: str
    chip: str
    devices: int
    prompt: int
    output: int
    published: float
    predicted: float
    low: float
    high: float
    sequences: int


@dataclass(frozen=True, slots=True)
class _PublishedLayout(Layout):
    """A layout with the published number of sequences at once; with the best one if that is 0."""

    at_once: int

    def sequences(self, requests: Requests) -> list[int]:
        return [self.at_once] if self.at_once else Layout.sequences(self, requests)


def full_loads(rows: Iterable[TokenRow]) -> list[TokenRow]:
    """The highest published rate of each model, machine and pair of lengths."""
    loads = [
        row
        for row in rows
        if isinstance(row.question.device, Device) and row.tokens_per_second and row.question.output
        if row.question.kind == "token"
        if row.seconds is None
        or (row.question.interleaved and row.line.cells["task"].startswith("online"))
    ]
    groups = group_by(
        loads,
        lambda row: (
            *(row.line.cells[name] for name in ("software", "model", "machine", "chip")),
            row.question.software, row.line.devices, row.question.count, row.question.precision,
            row.question.prompt, row.question.output,
        ),
    )  # fmt: skip
    return [max(group, key=lambda row: row.tokens_per_second or 0) for group in groups.values()]


def compared(
    forecaster: ServingForecaster, rows: Sequence[TokenRow]
) -> Iterator[tuple[Comparison, TokenRow]]:
    """Published rows, each with the prediction for the same devices."""
    engines = {engine.name: engine for engine in ENGINES}
    for row in rows:
        question = row.question
        device, form, lengths = question.device, question.form, (question.prompt, question.output)
        if question.software not in engines or not isinstance(device, Device):
            continue
        engine = engines[question.software]
        machine = Machine("published", None, row.line.cells["machine"], "cuda", None)
        memory = float(device.memory_gib) * _GIB
        place = Place(machine, device, row.line.devices, memory, None)
        spare = 0.9 * memory * question.count - question.weight_bytes
        room = spare / (2 * form.cached_numbers_per_token)
        if room < form.kept_tokens(sum(lengths)):
            continue
        of_copy = question.sequences * question.count / row.line.devices
        at_once = 0 if row.seconds is None else round(of_copy)
        layout = _PublishedLayout(place, engine, form, question.count, room, at_once)
        requests = Requests(Decimal(1), *map(int, lengths))
        precision: Any = question.precision
        model = ServedModel(question.model, form, precision, question.count)
        capacities, _ = predicted_capacities(forecaster, model, [layout], requests)
        for _, capacity in capacities:
            ends = capacity.request.high, capacity.request.mean, capacity.request.low
            low, mean, high = (question.output / float(seconds) for seconds in ends)
            comparison = Comparison(
                question.software, question.model, device.chip, place.count, requests.prompt,
                requests.output, row.tokens_per_second or 0, mean, low, high, capacity.sequences,
            )  # fmt: skip
            yield comparison, row


def _chip(row: TokenRow) -> str:
    return row.question.device.chip


def main() -> None:
    """Print errors, and the share of rates within their predicted range, by software and chip."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leave-out", choices=["device"])
    parser.add_argument("--software", action="append")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = sound_rows(token_rows(load_catalogue(Path())))
    loads = [
        row
        for row in full_loads(rows)
        if row.question.software in (options.software or [row.question.software])
    ]
    comparisons: list[Comparison] = []
    chips = sorted({_chip(row) for row in loads})
    for chip in chips if options.leave_out else [""]:
        chip_loads = [row for row in loads if chip in ("", _chip(row))]
        learnt = [row for row in rows if _chip(row) != chip]
        comparisons += [each for each, _ in compared(ServingForecaster(learnt), chip_loads)]
    groups = {
        **group_by(comparisons, lambda each: each.software),
        **group_by(comparisons, lambda each: f"{each.software}, {each.chip}"),
    }
    for name, group in groups.items():
        ratios = np.array([math.log(each.predicted / each.published) for each in group])
        errors = np.percentile(100 * np.abs(np.expm1(ratios)), [50, 90])
        inside = np.mean([each.low <= each.published <= each.high for each in group])
        print(
            f"{name}: {len(group)} rates, predicted / published {math.exp(np.median(ratios)):.2f}, "
            f"error {errors[0]:.0f} % at the median, {errors[1]:.0f} % at the 90th percentile, "
            f"spread {ratios.std():.2f}, {inside:.0%} in their range"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in comparisons], indent=1))


if __name__ == "__main__":
    main()
