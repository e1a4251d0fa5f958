"""Changes other than costs: each kind that a page shows is compared, and the rest follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from epochcost.analysis.difference.changes import Difference
from epochcost.analysis.difference.words import cells, figure_words, shown_costs
from epochcost.analysis.table.columns import ENTRIES
from epochcost.analysis.table.lines import values_of
from epochcost.cli.app import app
from epochcost.report.pages.page import Report
from epochcost.results.ceilings import write_ceilings
from epochcost.results.conditions import Energy, MeteredEnergy
from epochcost.results.records import Result
from kept_ceilings import make_ceilings
from report_project import inputs_of, make_result, store_results
from revisions import STEPS, commit, compared, edit, write_repository, write_spec
from served_results import run, under_load

Change = Callable[[Path], None]
GRID = 'id = "{0}"\nname = "{0}"\nkg_co2e_per_kwh = {1}\nyear = 2023\nsource = "a test"\n'
OTHER = "prices/other"
OWNED = """
    id = "other"
    hardware = "other"
    plan = "owned"
    provider = "local"
    source = "a test"
    as_of = 2025-11-01
    [owned]
    purchase = 100
    years = 4
    utilisation = 0.25
    power_watts = 90
    electricity_per_kwh = 0.2
"""
TABLE = """
    id = "paper"
    title = "A paper"
    authors = "A. Author"
    year = 2016
    workload = "the net"
    source = "a journal"
    as_of = 2016-11-01
    [[timings]]
    id = "one"
    hardware = "bare"
    batch_size = 128
    seconds_per_epoch = 20
    steps_per_epoch = 50
    epochs = 10
"""
RATIOS = '{{"models": {{"net": {{"32": {{"2": {{"eager": {}}}}}}}}}}}'


def metered(watts: float = 50, memory: int = 2**28, slower: float = 1) -> Result:
    """Training on the machine without a price, with what a meter read and the most memory."""
    reading = MeteredEnergy(meter="RAPL", of="cpu", joules=watts, seconds=1)
    steps = [one * slower for one in STEPS][: None if slower == 1 else -5]
    made = make_result(samples=steps, hardware="bare", rounds=3, day=20 if slower == 1 else 21)
    fields = {"energy": Energy(readings=(reading,)), "peak_memory_bytes": memory}
    return made.model_copy(update={"measurement": made.measurement.model_copy(update=fields)})


def loaded(rate: float = 500, latency: int = 1) -> Result:
    """A server on the machine without a price."""
    made = under_load(make_result(mode="inference", batch_size=8, hardware="bare"))
    scored = run()
    percentiles = {
        f"p{at}_nanoseconds": latency * getattr(scored.latency, f"p{at}_nanoseconds")
        for at in (50, 90, 99)
    }
    told = scored.model_copy(
        update={
            "samples_per_second": rate,
            "latency": scored.latency.model_copy(update=percentiles),
        }
    )
    served = made.measurement.served
    assert served is not None
    changed = served.model_copy(update={"runs": (*served.runs[:-1], told)})
    measurement = made.measurement.model_copy(update={"served": changed})
    return made.model_copy(update={"measurement": measurement})


def alone(slower: float = 1) -> Result:
    """Inference one by one on the machine without a price."""
    samples = [one * slower for one in STEPS]
    return make_result(mode="inference", batch_size=1, samples=samples, hardware="bare", rounds=3)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Work on three machines: by the hour, owned, and without a price; two grids; a ratio."""
    project = write_repository(tmp_path / "project")
    write_spec(project, "hardware/bare", _bare(project))
    edit(project, "hardware/local", "vcpus = 2", "vcpus = 2\nbusy_watts = 40\npeak_fp32_tflops = 1")
    write_spec(project, OTHER, OWNED)
    for name, intensity in (("clean", "0.05"), ("middle", "0.3"), ("dirty", "0.8")):
        write_spec(project, f"grids/{name}", GRID.format(name, intensity))
    write_spec(project, "published/paper", TABLE)
    ratios(project, "1.25")
    on_other = make_result(samples=STEPS, hardware="other", fingerprint="2" * 16)
    store_results(project, [metered(), loaded(), alone(), on_other])
    commit(project)
    return project


def _bare(project: Path) -> str:
    text = (project / "specs/hardware/other.toml").read_text(encoding="utf-8")
    return text.replace('id = "other"', 'id = "bare"')


def ratios(project: Path, value: str) -> None:
    """The file of ratios, as the benchmark writes it."""
    (project / "docs/data/step-ratio.json").write_text(RATIOS.format(value), encoding="utf-8")


def edits(name: str, old: str, new: str) -> Change:
    """An edit of one spec."""
    return lambda project: edit(project, name, old, new)


def found_in(project: Path) -> Difference:
    """The last commit against the working tree."""
    return compared(project, project.parent / "scratch")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            edits("grids/dirty", "0.8", "1.6"),
            "energy and CO2, net, full training on other (host 2222), cpu: was 0.5 Wh, "
            "0.025 g (clean) to 0.4 g (dirty) of CO2 equivalent; is 0.5 Wh, "
            "0.025 g (clean) to 0.8 g (dirty) of CO2 equivalent",
            id="a grid",
        ),
        pytest.param(
            edits("hardware/local", "busy_watts = 40", "busy_watts = 80"),
            "energy and CO2, net, full training on local (host f00d), cpu: was 0.222 Wh, "
            "0.0111 g (clean) to 0.178 g (dirty) of CO2 equivalent; is 0.444 Wh, "
            "0.0222 g (clean) to 0.356 g (dirty) of CO2 equivalent",
            id="a machine's power",
        ),
        pytest.param(
            edits(OTHER, "power_watts = 90", "power_watts = 180"),
            "energy and CO2, net, full training on other (host 2222), cpu: was 0.5 Wh, "
            "0.025 g (clean) to 0.4 g (dirty) of CO2 equivalent; is 1 Wh, "
            "0.05 g (clean) to 0.8 g (dirty) of CO2 equivalent",
            id="an owned plan's power",
        ),
        pytest.param(
            edits("hardware/local", "tflops = 1", "tflops = 0.05"),
            "share of peaks, net, training on local (host f00d), cpu: was 12.8 GFLOP/s, 1 % of the "
            "FP32 peak, unknown of the bandwidth; is 12.8 GFLOP/s, 26 % of the FP32 peak, unknown "
            "of the bandwidth",
            id="a peak",
        ),
        pytest.param(
            edits("models/net", "sgd", "adam"),
            "size of a model, net: was 669,706 parameters, 1.34e6 operations forward, a step moves "
            "at least 15.3 MiB; is 669,706 parameters, 1.34e6 operations forward, a step moves at "
            "least 25.5 MiB",
            id="an optimizer",
        ),
        pytest.param(
            lambda project: ratios(project, "0.80"),
            "step over PyTorch's, net, batch 32, 2 threads: was 1.25 times; is 0.80 times",
            id="a ratio",
        ),
    ],
)
def test_a_figure_that_changes_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, change: Change, words: str
) -> None:
    """In text, in JSON and in the comment on a pull request."""
    change(project)
    found = found_in(project)
    assert words in [figure_words(one) for one in found.figures]
    monkeypatch.chdir(project)
    text, comment, document = (
        CliRunner().invoke(app, ["diff", "HEAD", "--format", form]).stdout
        for form in ("text", "markdown", "json")
    )
    assert words in text
    assert words.split(":", maxsplit=1)[0].split("(", maxsplit=1)[0] in comment
    shown = [(one["kind"], one["what"]) for one in json.loads(document)["figures"]]
    assert shown == [(one.kind, one.what) for one in found.figures]


def test_what_a_host_does_at_most_is_listed(project: Path) -> None:
    """Ceilings measured again are among the results: shares of measured peaks follow them."""
    folder = project / "docs/data/results"
    environment = make_result().environment
    path = write_ceilings(folder, make_ceilings(environment, hardware="local"))
    commit(project)
    path.unlink()
    found = found_in(project)
    assert [(one.hardware, one.path) for one in found.results.removed] == [
        ("local", f"docs/data/results/local/ceilings/{path.name}")
    ]


def test_a_time_without_a_price_is_told(project: Path) -> None:
    """Work that has no cost takes another time: measured again, by its spec, or in a table."""
    store_results(project, [metered(slower=1.3), alone()])
    edit(project, "models/net", "epochs = 10", "epochs = 12")
    edit(project, "published/paper", "steps_per_epoch = 50", "steps_per_epoch = 40")
    told = {
        cells(one)[0]: cells(one)[3:] for one in shown_costs(found_in(project)) if one.only_timed
    }
    unknown = ("unknown", "unknown", "—")
    assert told["net, full training, batch 32"][:3] == unknown
    assert "step +30.0% (95 % interval" in told["net, full training, batch 32"][3]
    assert "epochs 10 → 12" in told["net, full training, batch 32"][3]
    paper = "paper, full training, batch 128, A. Author, 2016: framework not stated"
    assert told[paper] == (*unknown, "spec: the published table was edited")


def test_a_superseded_price_is_compared(project: Path) -> None:
    """It stands in the list of prices and in their history."""
    text = (project / "specs/prices/local-2025.toml").read_text(encoding="utf-8")
    write_spec(project, "prices/local-2026", text.replace("2025", "2026"))
    commit(project)
    edit(project, "prices/local-2025", "0.90", "0.70")
    (change,) = found_in(project).costs
    assert cells(change)[:3] == ("an hour", "local, cpu", "local-2025")


def test_a_new_time_is_told_once(project: Path) -> None:
    """Energy and shares that follow from a new time alone stay with the time."""
    store_results(project, [make_result(samples=[one * 1.3 for one in STEPS], day=21, rounds=3)])
    edit(project, "prices/local-2025", "0.90", "0.70")
    assert found_in(project).figures == ()


def _measured_again(project: Path) -> None:
    store_results(project, [metered(60, 2**29, 1.3), loaded(400, 2), alone(1.3)])


def _ends(name: str, unit: str = "") -> set[str]:
    return {f"{name}{unit}", f"{name}_low{unit}", f"{name}_high{unit}"}


_LATENCIES = {f"latency_p{at}_s" for at in (50, 90, 99)}
# What may change the numbers of each column; all of them in all three forms of the data.
_COLUMNS: dict[str, tuple[Change, set[str]]] = {
    "times and what meters read": (
        _measured_again,
        {
            *_ends("step", "_s"),
            *_ends("million_time", "_s"),
            *_LATENCIES,
            "samples_per_second",
            "step_energy_j",
            "peak_memory_bytes",
            "samples",
        },
    ),
    "the length of an epoch": (
        edits("models/net", "6400", "12800"),
        {*_ends("epoch_time", "_s"), *_ends("epoch_cost")},
    ),
    "the length of the training": (
        edits("models/net", "epochs = 10", "epochs = 12"),
        {*_ends("full_time", "_s"), *_ends("full_cost"), "epochs"},
    ),
    "a price": (
        lambda project: write_spec(
            project,
            "prices/bare",
            OWNED.replace('hardware = "other"', 'hardware = "bare"').replace(
                'id = "other"', 'id = "bare"'
            ),
        ),
        _ends("million_cost"),
    ),
    "a ratio": (lambda project: ratios(project, "0.80"), {"step_ratio"}),
}
# What a spec or a trial says of itself, and no page computes.
_SAID = {"vcpus", "batch_size"}


@pytest.mark.parametrize("name", _COLUMNS)
def test_what_changes_a_column_is_told(project: Path, name: str) -> None:
    """Where a number of the published data becomes another, the comparison is not empty."""
    change, columns = _COLUMNS[name]
    before = _numbers(project)
    change(project)
    after = _numbers(project)
    assert columns <= {column for column in before if before[column] != after[column]}
    found = found_in(project)
    assert found.costs or found.figures or found.results.measured_again


def test_every_number_of_the_dataset_is_compared() -> None:
    """A new column has to say by which change of it the comparison is tried."""
    numbers = {entry.name for entry in ENTRIES if entry.type in ("integer", "number")}
    tried = {column for _, columns in _COLUMNS.values() for column in columns}
    assert tried | _SAID == numbers


def _numbers(project: Path) -> dict[str, set[object]]:
    lines = [values_of(line) for line in Report(inputs_of(project)).lines]
    return {entry.name: {line.get(entry.name) for line in lines} for entry in ENTRIES}
