"""`epochcost check`: print the faults of specs, results or budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tomli
import typer
from pydantic import ValidationError

from epochcost.cli.bundled import inputs_to_read, own_catalogue, project_to_write
from epochcost.cli.terminal import DOCS, RESULTS
from epochcost.cost.estimate import Time
from epochcost.errors import Fault, InputError, ModelError, UsageError
from epochcost.plan.binding import file_misfits
from epochcost.report.publishing import link_faults
from epochcost.specs.document import display_path, key_position
from epochcost.specs.findings import Finding
from epochcost.specs.loader import FOLDER, CheckReport, check_paths
from epochcost.specs.model import Model
from epochcost.specs.prices.traces import read_trace
from epochcost.units import render_count, render_some, seconds
from onnxstep.graphs.loading import external_files

# Other imports wait for their command: an editor checks specs often.
if TYPE_CHECKING:
    from epochcost.results.submissions import ResultsCheck

# A remark on several files names at most this number of them.
_MOST_NAMED = 3


def check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Spec files or folders; with --results, result files. Default: the whole project.",
        ),
    ] = None,
    results: Annotated[
        bool,
        typer.Option("--results", help="Check all stored results, or named files as submissions."),
    ] = False,
    budgets: Annotated[
        bool,
        typer.Option("--budgets", help="Check the studies' budgets; exit 1 unless all are kept."),
    ] = False,
) -> None:
    """Validate specs, results or budgets, and list their faults.

    Example: epochcost check specs/prices
    """
    if budgets and (paths or results):
        raise UsageError("--budgets: cannot be combined with paths or --results")
    if budgets:
        _check_budgets()
    elif results:
        _check_results(paths or [])
    else:
        _check_specs(paths or [])


def _check_specs(paths: list[Path]) -> None:
    checked = check_specs(paths or [project_to_write() / FOLDER])
    faults = checked.faults
    if not paths:
        from epochcost.analysis.prediction_trust import stale_fault  # noqa: PLC0415

        # `epochcost trust` needs specs without faults.
        stale = None if faults else stale_fault(Path(), DOCS)
        # MkDocs would follow such a link, and copy files from outside the site.
        faults = (*faults, *link_faults(DOCS), *filter(None, [stale]))
    typer.echo("".join(f"{fault}\n" for fault in faults), nl=False)
    typer.echo("".join(f"doubted: {doubt}\n" for doubt in checked.doubts), nl=False)
    files, counted = render_count(len(checked.files), "file"), render_count(len(faults), "fault")
    doubts = f", {render_count(len(checked.doubts), 'doubt')}" if checked.doubts else ""
    typer.echo(f"{files} checked, {counted}{doubts}", err=True)
    if faults:
        raise typer.Exit(1)


def check_specs(paths: Sequence[Path]) -> CheckReport:
    """Check the spec files at these paths; list their faults and implausible prices."""
    checked = check_paths(paths, _onnx_file_fault)
    tables = _published_table_faults(checked.sound_files("observations"))
    traces, doubts = _trace_faults_and_doubts(checked.sound_files("replays"))
    faults = (*checked.faults, *tables, *traces)
    return CheckReport(checked.files, faults, (*checked.doubts, *doubts))


def _trace_faults_and_doubts(files: Iterable[Path]) -> tuple[list[Fault], list[Fault]]:
    faults, doubts = [], []
    for file in files:
        text = file.read_text("utf-8")
        trace = file.with_name(tomli.loads(text)["trace"])
        try:
            doubt = read_trace(trace).doubt
        except InputError as error:
            faults.append(Fault(file, *key_position(text, ("trace",)), f"trace: {error}"))
            continue
        if doubt:
            doubts.append(Fault(display_path(trace), 1, 1, doubt))
    return faults, doubts


def _published_table_faults(tables: Sequence[Path]) -> Iterator[Fault]:
    if tables:
        from epochcost.predict.learnt import table_faults  # noqa: PLC0415

        for file in tables:
            yield from table_faults(file)


def _onnx_file_fault(path: Path, spec: Mapping[str, Any]) -> Finding | None:
    try:
        external_files(path)
        misfits = file_misfits(path, Model.model_validate(spec))
        return next((Finding(*misfit) for misfit in misfits), None)
    except ValidationError:
        return None
    except ModelError as error:
        reason = str(error).removeprefix(f"{path}: ")
        return Finding(("graph",), f"{display_path(path)}: {reason}")


def _check_results(paths: list[Path]) -> None:
    from epochcost.results.submissions import check_results  # noqa: PLC0415

    checked = check_results(own_catalogue(), RESULTS, paths)
    _show_results(checked, with_summaries=bool(paths))
    files = render_count(checked.files, "result")
    faults = render_count(len(checked.faults), "fault")
    others = f" and {render_count(checked.records, 'other record')}" if checked.records else ""
    typer.echo(f"{files}{others} checked, {faults}", err=True)
    if checked.faults:
        raise typer.Exit(1)


def _show_results(checked: ResultsCheck, *, with_summaries: bool) -> None:
    for fault in checked.faults:
        typer.echo(str(fault))
    for submission in checked.submissions if with_summaries else ():
        title = f"{submission.title} on {submission.hardware}"
        summary = submission.summary
        if summary is None:
            figures = f"{title}, under LoadGen"
        else:
            step = Time.from_floats(summary.interval.low, summary.mean, summary.interval.high)
            low, mean, high = (seconds(float(end)) for end in (step.low, step.mean, step.high))
            between = f"{low} to {high}" if step.bounded else f"at most {high}"
            figures = f"{title}: a step takes {mean} ({between}), {summary.count} samples"
        typer.echo(f"{display_path(submission.path)}: {figures}")
    remarks = checked.files_by_remark()
    if remarks:
        typer.echo("For review:")
    for remark, paths in remarks.items():
        names = render_some((str(display_path(path)) for path in paths), _MOST_NAMED)
        typer.echo(f"  {remark}: {names}")


def _check_budgets() -> None:
    from epochcost.analysis.budgets import verdicts  # noqa: PLC0415

    judged = verdicts(inputs_to_read(RESULTS, own_catalogue()))
    typer.echo("".join(f"{verdict.place}\n" for verdict in judged), nl=False)
    counts = Counter(verdict.state for verdict in judged)
    states = ", ".join(f"{number} {state}" for state, number in sorted(counts.items()))
    checked = f"{render_count(len(judged), 'budget')} checked"
    typer.echo(f"{checked}: {states}" if states else checked, err=True)
    if counts.keys() - {"kept"}:
        raise typer.Exit(1)
