"""A small project for a site: specs with hostile text and results of two hosts.

It has one example of everything that a report can show: measured and published figures, an assumed
and a superseded price, a machine without a price, and a model without a figure.
"""

from __future__ import annotations

import datetime as dt
import re
import shutil
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from epochcost.analysis.inputs import Inputs, read_inputs
from epochcost.plan.trial import Trial
from epochcost.results.environment import Environment
from epochcost.results.records import (
    EXECUTION_PROVIDERS,
    FORMAT_VERSION,
    Measurement,
    Placement,
    Result,
    Round,
)
from epochcost.results.store import ResultStore
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Mode
from report_specs import SPECS
from written_pages import copy_pages

REPOSITORY = Path(__file__).parents[1]


def make_result(
    *,
    mode: Mode = "training",
    batch_size: int = 32,
    samples: Sequence[float] = (0.010, 0.011, 0.012, 0.011),
    fingerprint: str = "f00d" * 4,
    day: int = 20,
    model: str = "net",
    producer: str = "0.1.0",
    hardware: str = "local",
    rounds: int = 1,
    **variant: Any,
) -> Result:
    """A consistent result of one host; ``variant`` has further fields of its trial."""
    trial = Trial(
        model=model,
        mode=mode,
        provider="cpu",
        batch_size=batch_size,
        seed=0,
        runtime="onnxruntime==1.31.1",
        producer=producer,
        graph_sha256="a" * 64,
        spec_sha256="b" * 64,
        relative_half_width=Decimal("0.02"),
        minimum_samples=30,
        budget_seconds=Decimal(20),
        **variant,
    )
    measurement = Measurement(
        started_at=dt.datetime(2026, 11, day, 12, tzinfo=dt.UTC),
        wall_seconds=1.5,
        warmup_seconds=(0.5,),
        samples_seconds=tuple(samples),
        stop_reason="precise",
        placement=Placement(provider=EXECUTION_PROVIDERS["cpu"], nodes_by_provider={}),
        steps_taken=len(samples),
        rounds=_rounds(samples, day, rounds) if rounds > 1 else (),
    )
    environment = Environment(
        fingerprint=fingerprint,
        cpu="Some(R) CPU @ 2.00GHz",
        physical_cores=1,
        logical_cpus=2,
        memory_bytes=2**33,
        operating_system="Linux",
        python="3.11.2",
        runtime="onnxruntime==1.31.1",
    )
    return Result(
        format_version=FORMAT_VERSION,
        trial_id=trial.id,
        trial=trial,
        hardware=hardware,
        measurement=measurement,
        environment=environment,
    )


def _rounds(samples: Sequence[float], day: int, count: int) -> tuple[Round, ...]:
    """``count`` rounds, a minute apart, that share the samples; the first has the warm-up."""
    each = len(samples) // count
    return tuple(
        Round(
            started_at=dt.datetime(2026, 11, day, 12, number, tzinfo=dt.UTC),
            wall_seconds=1.5 / count,
            warmup_steps=int(number == 0),
            samples=each if number < count - 1 else len(samples) - each * (count - 1),
            stop_reason="precise",
            steps_taken=each,
        )
        for number in range(count)
    )


def write_project(
    folder: Path, results: Sequence[Result] | None = None, whole_pages: bool = False
) -> Path:
    """Write specs, models, results and pages to ``folder``, ready to be built.

    Of hand-written pages only the headings are copied, unless ``whole_pages``.
    """
    for name, text in SPECS.items():
        path = folder / "specs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copytree(REPOSITORY / "models", folder / "models")
    shutil.copytree(REPOSITORY / "site_templates", folder / "site_templates")
    shutil.copyfile(REPOSITORY / "mkdocs.yml", folder / "mkdocs.yml")
    copy_pages(REPOSITORY, folder, whole_pages)
    store_results(folder, default_results() if results is None else results)
    return folder


def store_results(folder: Path, results: Sequence[Result]) -> None:
    """Store results in the folder that the project's site reads."""
    store = ResultStore(folder / "docs/data/results")
    for result in results:
        (store.folder / result.hardware).mkdir(parents=True, exist_ok=True)
        store.write(result)


def default_results() -> tuple[Result, ...]:
    """Training at two batch sizes and inference on one host."""
    return (
        make_result(),
        make_result(batch_size=128, samples=(0.030, 0.031, 0.032, 0.030)),
        make_result(mode="inference", batch_size=1, samples=(0.001, 0.0011, 0.001, 0.0012)),
        make_result(mode="inference", samples=(0.005, 0.0051, 0.005, 0.0052)),
    )


def results_of_rented_machines() -> tuple[Result, ...]:
    """The default results, and inference on three rented machines: enough for a chart."""
    hosts = {"cafe": ("crate", 0.001), "face": ("crate", 0.003), "beef": ("shed", 0.002)}
    rented = (
        make_result(
            mode="inference",
            hardware=hardware,
            batch_size=1,
            samples=[seconds * part for part in (1.0, 1.05, 1.0, 1.1)],
            fingerprint=host * 4,
        )
        for host, (hardware, seconds) in hosts.items()
    )
    return (*default_results(), *rented)


def cells(line: str) -> list[str]:
    """The contents of the cells in a line of an HTML table."""
    return re.findall(r"<td[^>]*>(.*?)</td>", line)


def inputs_of(folder: Path) -> Inputs:
    """The inputs that a build of the project reads."""
    docs = folder / "docs"
    return read_inputs(load_catalogue(folder), [docs / "data/results"], docs)
