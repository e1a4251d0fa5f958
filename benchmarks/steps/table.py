"""Tables of training steps for the page on performance, and the site's file of ratios."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.units import rounded, share
from steps.cases import CONTENDERS, INFERENCE_CONTENDERS, OURS, SUBJECTS, Case, Mode, cases
from steps.demands import Demands, demands
from steps.environments import PACKAGES
from steps.figures import Spread, first, ratios, step_seconds

DOCUMENT = Path("docs/explanation/performance.md")
SITE = Path("docs/data/step-ratio.json")
INFERENCE = Path("docs/data/inference-steps.json")
CUDA = Path("docs/data/training-steps-cuda.json")
BEGIN, END = "<!-- training steps: begin -->", "<!-- training steps: end -->"
PYTORCH = ("eager", "compile")
_THREADS = (1, 2)
_LEAVES_OUT = 110

Records = Mapping[str, Any]
Compared = Sequence[tuple[Case, Mapping[str, Any]]]


def line(key: str, session: Mapping[str, Any]) -> str:
    """Render the medians of a finished session as a line of progress."""
    times = (f"{n} {statistics.median(v) * 1e3:.2f} ms" for n, v in session["seconds"].items())
    return f"{key}: {', '.join(times)}"


def write(records: Records, root: Path) -> list[str]:
    """Write tables and ratios; returns a line for each case in which PyTorch is faster."""
    compared = measured(records, "training")
    write_site(records, root)
    parts = [
        _origin(records, compared),
        _ratio_table(compared),
        *_remarks(compared),
        _ceilings(records, compared),
        *_demand_table(compared, load_catalogue(root)),
    ]
    _replace(root / DOCUMENT, "\n\n".join(parts))
    return [_slower_line(case, record) for case, record in compared if worst(record) > 1]


def measured(records: Records, mode: Mode) -> Compared:
    """The cases of a mode that have times."""
    return [
        (case, records["cases"][case.key])
        for case in cases([], [], _THREADS, mode=mode)
        if records["cases"].get(case.key, {}).get("sessions")
    ]


def write_site(records: Records, root: Path) -> None:
    """Write the ratios of training and of inference, which ``epochcost.analysis.inputs`` reads."""
    compared = measured(records, "training")
    inference = measured(json.loads((root / INFERENCE).read_text("utf-8")), "inference")
    as_of = _days(compared)
    content = {
        "command": "benchmarks/training_step.py",
        "as_of": as_of[-1] if as_of else None,
        **records["machine"],
        "torch": PACKAGES["torch"][0],
        "models": _by_model(compared, {name: name for name in PYTORCH}),
        "dimensions": {s.model: dict(s.dimensions) for s in SUBJECTS if s.dimensions},
        "inference": _by_model(inference, INFERENCE_CONTENDERS),
        "gpu": _on_gpu(json.loads((root / CUDA).read_text("utf-8"))),
    }
    (root / SITE).write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def _replace(path: Path, text: str) -> None:
    before, _, rest = path.read_text("utf-8").partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, f"{path}: expected the lines {BEGIN} and {END}"
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", "utf-8")


def _days(compared: Compared) -> list[str]:
    """All days of the results in chronological order."""
    return sorted({session["as_of"] for _, record in compared for session in record["sessions"]})


def period(compared: Compared) -> str:
    """Render the first and the last day of the results."""
    days = _days(compared)
    return " to ".join(dict.fromkeys(days[:1] + days[-1:]))


def _origin(records: Records, compared: Compared) -> str:
    """Render days, machine and command of the results."""
    machine = records["machine"]
    return (
        "**Time of our training step, and its ratio to those of other frameworks.** "
        f"{period(compared)}, "
        f"{machine['logical_cpus']} vCPUs of an {machine['cpu']}, {machine['runtime']}, "
        f"{PACKAGES['torch'][0]}: `python benchmarks/training_step.py`"
    )


def _ratio_table(compared: Compared) -> str:
    head = ["model", "batch", "threads", "our step", *CONTENDERS.values()]
    return _markdown(head, (ratio_row(case, record, CONTENDERS) for case, record in compared))


def ratio_row(case: Case, record: Mapping[str, Any], contenders: Iterable[str]) -> list[str]:
    """Render a case: epochcost's time, and the ratio to each contender's time."""
    spreads, notes = ratios(record), record.get("notes", {})
    cells = [
        _ratio_cell(spreads.get(name), failed=name in record["failed"], noted=name in notes)
        for name in contenders
    ]
    return [*_case_cells(case), _milliseconds(step_seconds(record, OURS)), *cells]


def _ratio_cell(spread: Spread | None, *, failed: bool, noted: bool) -> str:
    """Render a ratio's median and quartiles, the median bold above 1.

    Without a ratio the cell is empty or has "cannot".
    """
    if spread is None:
        return "cannot" if failed else ""
    middle = f"**{spread.middle:.2f}**" if spread.middle > 1 else f"{spread.middle:.2f}"
    between = f"{spread.low:.2f}\N{EN DASH}{spread.high:.2f}"
    return f'{middle} <span class="ec-pm">({between})</span>{" *" if noted else ""}'


def _ceilings(records: Records, compared: Compared) -> str:
    """Render the peak rates of each day's machine, by threads."""
    by_day: dict[tuple[str, str], dict[int, Mapping[str, float]]] = {}
    for case, record in compared:
        for session in record["sessions"]:
            cpu = session.get("cpu", records["machine"]["cpu"])
            by_day.setdefault((session["as_of"], cpu), {})[case.threads] = session["ceilings"]
    days_rates = (
        f"{cpu} on {day}: "
        + ", ".join(
            f"{rates['flops'] / 1e9:.0f} GFLOP/s and {rates['copy_bytes'] / 1e9:.1f} GB/s "
            f"on {count} thread{'s' * (count != 1)}"
            for count, rates in sorted(counts.items())
        )
        for (day, cpu), counts in sorted(by_day.items())
    )
    return f"Rates of the fastest matrix product and the fastest copy. {'. '.join(days_rates)}."


def _demand_table(compared: Compared, catalogue: Catalogue) -> Iterator[str]:
    head = [
        "model",
        "batch",
        "threads",
        "arithmetic",
        "memory traffic",
        "shortest time",
        "share",
        "our peak",
        "PyTorch's peak",
        "compiled in",
        "day",
    ]
    demanded = [demands(catalogue, case.subject, case.batch_size) for case, _ in compared]
    shares = [
        _shortest_seconds(needed, record)
        / statistics.median(record["sessions"][0]["seconds"][OURS])
        for needed, (_, record) in zip(demanded, compared, strict=True)
    ]
    yield f"The median of the shares is {share(statistics.median(shares))}."
    rows = zip(compared, demanded, shares, strict=True)
    yield _markdown(head, (_demand_row(*case, needed, reached) for case, needed, reached in rows))


def _shortest_seconds(needed: Demands, record: Mapping[str, Any]) -> float:
    """Seconds of a step's arithmetic and memory traffic at the machine's peak rates."""
    ceilings = record["sessions"][0]["ceilings"]
    return needed.flops / ceilings["flops"] + needed.moved_bytes / ceilings["copy_bytes"]


def _demand_row(
    case: Case, record: Mapping[str, Any], needed: Demands, reached: float
) -> list[str]:
    theirs = first(record, "peak_bytes", "eager")
    ours = record.get("our_peak", {}).get("peak_bytes", first(record, "peak_bytes", OURS))
    return [
        *_case_cells(case),
        f"{needed.flops / 1e9:.3g} GFLOP",
        f"{rounded(needed.moved_bytes / 1e6)} MB",
        _milliseconds(_shortest_seconds(needed, record)),
        share(reached),
        _memory(ours),
        _memory(theirs),
        _milliseconds(first(record, "start_seconds", "compile")),
        record["sessions"][0]["as_of"],
    ]


def _case_cells(case: Case) -> list[str]:
    return [case.subject.model, str(case.batch_size), str(case.threads)]


def _memory(size_bytes: float | None) -> str:
    return "" if size_bytes is None else f"{size_bytes / 1e6:,.0f} MB"


def _milliseconds(seconds: float | None) -> str:
    """Render seconds as milliseconds, from one second on as seconds; "" for None."""
    if seconds is None:
        return ""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _remarks(compared: Compared) -> Iterator[str]:
    """Render failures of contenders and changed optimizers, each with its models."""
    models: dict[tuple[str, str], dict[str, None]] = {}
    for case, record in compared:
        for name, note in record.get("notes", {}).items():
            used = note.replace("instead of momentum", "instead of SGD with momentum")
            remark = (f'- \\* "{CONTENDERS[name]}" used {used} for', "")
            models.setdefault(remark, {})[case.subject.model] = None
        for name, reason in record["failed"].items():
            error = reason.removeprefix("did not run: ").removesuffix(" (exit 1)")
            end = error[-_LEAVES_OUT:]
            shown = error if end == error else end.partition(". ")[2] or end
            remark = (f'- "{CONTENDERS[name]}" could not run', f" The message ends with `{shown}`.")
            models.setdefault(remark, {})[case.subject.model] = None
    if models:
        yield "\n".join(f"{head} {_listed(who)}.{tail}" for (head, tail), who in models.items())


def _listed(names: Iterable[str]) -> str:
    """Join names with commas, and the last two names with "and"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _markdown(head: list[str], rows: Iterable[list[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def _by_model(compared: Compared, contenders: Mapping[str, str]) -> dict[str, Any]:
    """Median ratios by model, batch size, threads and the contender's title."""
    models: dict[str, Any] = {}
    for case, record in compared:
        medians = {
            contenders[n]: round(s.middle, 3) for n, s in ratios(record).items() if n in contenders
        }
        batches = models.setdefault(case.subject.model, {})
        batches.setdefault(str(case.batch_size), {})[str(case.threads)] = medians
    return models


def _on_gpu(records: Records) -> dict[str, Any]:
    """Median ratios on a GPU by model, precision, batch size and the contender's title."""
    models: dict[str, Any] = {}
    for key, record in sorted(records["cases"].items()):
        model, batch, _, device, precision = key.split("/")
        assert device == "cuda", f"{key}: expected records of a GPU"
        medians = {name: round(s.middle, 3) for name, s in ratios(record).items()}
        models.setdefault(model, {}).setdefault(precision, {})[batch] = medians
    return models


def worst(record: Mapping[str, Any]) -> float:
    """The largest median ratio of a case to PyTorch's time; 0 without such a ratio."""
    spreads = ratios(record)
    return max((spreads[name].middle for name in PYTORCH if name in spreads), default=0.0)


def _slower_line(case: Case, record: Mapping[str, Any]) -> str:
    times = ", ".join(f"{n} {_milliseconds(step_seconds(record, n))}" for n in (OURS, *PYTORCH))
    return f"{case.key}: {worst(record):.2f} ({times})"
