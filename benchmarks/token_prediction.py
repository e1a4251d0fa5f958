"""Errors of predicted token times for machines without any row, against published times.

    python benchmarks/token_prediction.py                              each accelerator left out
    python benchmarks/token_prediction.py --leave-out generation --json
    python benchmarks/token_prediction.py --observations mine.csv      another table
    python benchmarks/token_prediction.py --held-out full-load         rates at the most load

A table has the columns of the token tables in specs/observations; others are ignored. Each row is
predicted from the project's rows with another accelerator, generation, model or software. Trainings
are predicted by their seconds a token. Implausible rows are skipped. The baseline is a roofline of
two parameters that is fitted to the project's rows: bytes over bandwidth, operations over peak. For
trainings, the baseline has only operations over peak. ``--held-out full-load`` predicts published
rates at full load as `epochcost tokens` does, without any row of the predicted pairs of model and
chip, a fifth of the pairs at a time.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from full_load import compared, full_loads

from epochcost.errors import InputError
from epochcost.predict.decoders.chips import CpuForm, chip_of
from epochcost.predict.decoders.doubts import doubted_token_rows, sound_rows
from epochcost.predict.decoders.forms import DecoderForm
from epochcost.predict.decoders.rows import (
    Line,
    TokenRow,
    catalogue_lines,
    columns_of,
    names_of,
    read_lines,
    token_rows,
    token_rows_of,
)
from epochcost.predict.decoders.serving import ServingForecaster
from epochcost.predict.decoders.training import TrainingForecaster
from epochcost.predict.decoders.training_rows import (
    TrainingRow,
    training_rows,
    training_rows_of,
)
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[1]
_SERVERS = ("llama.cpp", "vLLM", "TensorRT-LLM")
_LOAD = 8
_FOLDS = 5
_ROW = "{:<34} {:>6} {:>14} {:>9} {:>16}"


@dataclass(frozen=True, slots=True)
class Case:
    """A published time with its prediction and the roofline's time, in seconds."""

    kind: str
    generation: str
    software: str
    seconds: float
    predicted: float
    low: float
    high: float
    roofline: float

    @property
    def is_in_range(self) -> bool:
        """Whether the 90 % range contains the published time."""
        return self.low <= self.seconds <= self.high


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of some cases in percent, and the percentage of cases within the 90 % range."""

    rows: int
    median_percent: float
    p90_percent: float
    covered_percent: float
    roofline_median_percent: float
    roofline_p90_percent: float


@dataclass(frozen=True, slots=True)
class Report:
    """Errors by kind and by generation, and skipped rows.

    Rows are skipped if their chip or model is unknown, or if they are implausible (``doubted``).
    """

    left_out: str
    kinds: dict[str, Errors]
    generations: dict[str, Errors]
    pooled: Errors | None
    skipped_chips: dict[str, int]
    skipped_models: dict[str, int]
    doubted: list[str]


def main() -> None:
    """Print errors by kind and by generation, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observations", nargs="+", type=Path, metavar="CSV")
    parser.add_argument(
        "--leave-out",
        choices=("device", "generation", "model", "software", "source"),
        default="device",
    )
    parser.add_argument("--held-out", choices=("full-load",))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        catalogue = load_catalogue(ROOT)
        published, trained = token_rows(catalogue), training_rows(catalogue)
        observed, trainings, lines = published, trained, [*catalogue_lines(catalogue)]
        if options.observations:
            lines = [*_lines_of_files(catalogue, options.observations)]
            observed, trainings = tuple(token_rows_of(lines)), tuple(training_rows_of(lines))
        unknown = Counter(line.cells["model"] for line in lines if line.form is None)
    except InputError as error:
        parser.exit(1, f"{error}\n")
    skipped = Counter(line.cells["chip"] for line in lines if line.form and line.device is None)
    left_out = options.held_out or options.leave_out
    learnt, doubts = sound_rows(published), doubted_token_rows(observed)
    doubted = [f"{observed[at].line.where}: {reason}" for at, reason in doubts.items()]
    observed = tuple(row for at, row in enumerate(observed) if at not in doubts)
    if options.held_out:
        cases = list(_full_load_cases(learnt, observed))
    else:
        cases = list(_cases(learnt, observed, left_out))
        cases += _training_cases(trained, trainings, left_out)
    kinds, generations = defaultdict(list), defaultdict(list)
    for case in cases:
        kinds[case.kind].append(case)
        generations[case.generation].append(case)
    report = Report(
        left_out,
        {kind: errors_of(kinds[kind]) for kind in sorted(kinds)},
        {name: errors_of(generations[name]) for name in sorted(generations)},
        errors_of(cases) if cases else None,
        dict(skipped),
        dict(unknown),
        doubted,
    )
    print(json.dumps(asdict(report), indent=2) if options.json else "\n".join(_table(report)))


def _lines_of_files(catalogue: Catalogue, paths: Iterable[Path]) -> Iterator[Line]:
    """The lines of tables; a table of the project has the values of its spec for all rows."""
    names = names_of(catalogue)
    constants = {
        catalogue.table_path(table, table.table).resolve(): columns_of(table)
        for table in catalogue.tables_of("tokens")
    }
    for path in paths:
        yield from read_lines(path, names, constants.get(path.resolve(), {}), any_column=True)


def _label(row: TokenRow, kind: str) -> object:
    """The accelerator, generation, model or software by which a row is left out."""
    question = row.question
    chip = chip_of(question.device, question.precision)
    labels = {
        "device": chip.kind,
        "generation": chip.generation,
        "model": question.form,
        "source": question.source,
    }
    return labels.get(kind, question.software)


def _cases(
    learnt: Sequence[TokenRow], observed: Sequence[TokenRow], leave_out: str
) -> Iterator[Case]:
    """Each observed time with its prediction from the rows that have another label."""
    groups: dict[tuple[object, bool], list[TokenRow]] = defaultdict(list)
    for row in observed:
        if row.seconds is not None:
            groups[_label(row, leave_out), isinstance(row.question.device, CpuForm)].append(row)
    usable = [row for row in learnt if row.seconds is not None]
    for (label, on_processors), rows in groups.items():
        remaining = [
            row
            for row in usable
            if isinstance(row.question.device, CpuForm) == on_processors
            and _label(row, leave_out) != label
        ]
        forecasts = ServingForecaster(remaining).forecasts([row.question for row in rows])
        rooflines = _Roofline(remaining)
        for row, forecast in zip(rows, forecasts, strict=True):
            assert row.seconds is not None
            yield Case(
                kind_of(row),
                chip_of(row.question.device, row.question.precision).generation,
                row.question.software,
                row.seconds,
                forecast.seconds,
                forecast.low,
                forecast.high,
                rooflines.seconds(row),
            )


def _full_load_cases(learnt: Sequence[TokenRow], observed: Sequence[TokenRow]) -> Iterator[Case]:
    """Seconds a token at full load, predicted from other pairs of model and chip.

    The seconds are divided by the number of sequences.
    """
    loads = full_loads(sound_rows(observed))
    pairs = sorted({_pair(row) for row in loads}, key=str)
    on_devices = [row for row in learnt if not isinstance(row.question.device, CpuForm)]
    for fold in range(_FOLDS):
        held_out = set(pairs[fold::_FOLDS])
        remaining = [row for row in on_devices if _pair(row) not in held_out]
        rooflines = _Roofline([row for row in remaining if row.seconds is not None])
        rows = [row for row in loads if _pair(row) in held_out]
        for rate, row in compared(ServingForecaster(remaining), rows):
            question = replace(row.question, sequences=rate.sequences, interleaved=True)
            at_once = rate.sequences * rate.devices / question.count
            yield Case(
                f"{rate.software}, {rate.model}",
                chip_of(question.device, question.precision).generation,
                rate.software,
                1 / rate.published,
                1 / rate.predicted,
                1 / rate.high,
                1 / rate.low,
                rooflines.seconds(replace(row, question=question)) / at_once,
            )


def _pair(row: TokenRow) -> tuple[str, DecoderForm]:
    return chip_of(row.question.device, row.question.precision).kind, row.question.form


def _training_label(row: TrainingRow, kind: str) -> object:
    labels = {
        "device": row.question.device.chip,
        "generation": row.question.device.generation,
        "model": row.question.form,
        "source": row.line.cells["source"],
    }
    return labels.get(kind, row.question.software)


def _training_cases(
    learnt: Sequence[TrainingRow], observed: Sequence[TrainingRow], leave_out: str
) -> Iterator[Case]:
    """Seconds a token of each training, predicted from the rows that have another label."""
    groups: dict[object, list[TrainingRow]] = defaultdict(list)
    for row in observed:
        if row.learnable:
            groups[_training_label(row, leave_out)].append(row)
    usable = [row for row in learnt if row.learnable]
    for label, rows in groups.items():
        remaining = [row for row in usable if _training_label(row, leave_out) != label]
        forecasts = TrainingForecaster(remaining).forecasts([row.question for row in rows])
        factor = float(np.median([_training_roofline(row)[0] for row in remaining]))
        for row, forecast in zip(rows, forecasts, strict=True):
            ratio, least = _training_roofline(row)
            yield Case(
                "training",
                row.question.device.generation,
                row.question.software,
                ratio * least,
                forecast.seconds,
                forecast.low,
                forecast.high,
                factor * least,
            )


def _training_roofline(row: TrainingRow) -> tuple[float, float]:
    """A training's time divided by its least time, and the least time of a token.

    The least time is that of the training's matrix products at the accelerators' peak.
    """
    question = row.question
    peak = chip_of(question.device, "bf16").products * question.count
    least = 2 * question.form.active_parameters * question.passes / peak
    return 1 / row.tokens_per_second / least, least


def kind_of(row: TokenRow) -> str:
    """The kind of work under which a row's errors are reported."""
    question = row.question
    if isinstance(question.device, CpuForm):
        return "processors"
    if row.line.count_of("count", 1) > 1:
        return "several accelerators"
    if question.kind == "first":
        return "first token"
    if question.interleaved and question.sequences >= _LOAD:
        return "load of 8 and more"
    return "decode" if question.software in _SERVERS else "decode of other software"


class _Roofline:
    """Seconds for bytes at the bandwidth or operations at the peak, whichever is longer."""

    def __init__(self, rows: Sequence[TokenRow]) -> None:
        ratios: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            read, products = _roofline_parts(row)
            ratios[row.question.kind].append(
                (row.seconds or 1.0) / (read if row.question.kind == "token" else products)
            )
        self._factors = {kind: float(np.median(values)) for kind, values in ratios.items()}

    def seconds(self, row: TokenRow) -> float:
        read, products = _roofline_parts(row)
        factors = self._factors
        return max(read * factors.get("token", 1.0), products * factors.get("first", 1.0))


def _roofline_parts(row: TokenRow) -> tuple[float, float]:
    """Seconds to read all bytes at the bandwidth, and seconds of all products at the peak."""
    question, form, sequences = row.question, row.question.form, row.question.sequences
    chip = chip_of(question.device, question.precision)
    tokens = sequences * (question.prompt if question.kind == "first" else 1)
    if question.interleaved:
        tokens += sequences * question.prompt / max(question.output, 1)
    context = question.prompt + question.output / 2
    cache = sequences * context * 2 * form.cached_numbers_per_token
    read = question.weight_bytes * form.active_parameters / form.parameters
    read += cache if question.kind == "token" else 0
    split = 1 if question.software.startswith("llama.cpp") else question.count
    return (
        read / (split * chip.bandwidth),
        2 * form.active_parameters * tokens / (split * chip.products),
    )


def errors_of(cases: Sequence[Case]) -> Errors:
    """Errors of some cases, and the share of cases within the range."""
    published = np.array([case.seconds for case in cases])
    errors = 100 * np.abs(np.array([case.predicted for case in cases]) / published - 1)
    rooflines = 100 * np.abs(np.array([case.roofline for case in cases]) / published - 1)
    return Errors(
        len(cases),
        *(round(float(np.percentile(errors, share)), 1) for share in (50, 90)),
        round(100 * float(np.mean([case.is_in_range for case in cases])), 1),
        *(round(float(np.percentile(rooflines, share)), 1) for share in (50, 90)),
    )


def _table(report: Report) -> Iterator[str]:
    yield f"Each {report.left_out} left out; errors of seconds in %, median / 90th percentile."
    for title, table in (("kind", report.kinds), ("generation", report.generations)):
        yield f"\n{_ROW.format(title, 'rows', 'error', 'in range', 'roofline')}"
        for label, errors in (*table.items(), ("all", report.pooled)):
            if errors is not None:
                yield _ROW.format(
                    label,
                    errors.rows,
                    f"{errors.median_percent:.0f} / {errors.p90_percent:.0f}",
                    f"{errors.covered_percent:.0f} %",
                    f"{errors.roofline_median_percent:.0f} / {errors.roofline_p90_percent:.0f}",
                )
    for chip, rows in report.skipped_chips.items():
        yield f"skipped: {rows} rows of {chip}, of which specs/devices says nothing"
    for model, rows in report.skipped_models.items():
        yield f"skipped: {rows} rows of {model}, a model without a known form"
    if report.doubted:
        yield f"skipped: {len(report.doubted)} implausible rows; --json lists them"


if __name__ == "__main__":
    main()
