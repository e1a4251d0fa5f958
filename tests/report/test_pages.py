"""Content of the generated pages."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.predicted import NoTime
from epochcost.errors import InputError
from epochcost.report.pages.model import about_model
from epochcost.report.pages.page import Report
from epochcost.report.site import Site, build, navigation
from epochcost.results.environment import Energy, Gpu, Instance, MeteredEnergy
from epochcost.results.rounds import add_round
from report_project import (
    REPOSITORY,
    cells,
    inputs_of,
    make_result,
    results_of_rented_machines,
    write_project,
)

_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)


def site_of(project: Path) -> Site:
    """The site of a changed project."""
    return build(inputs_of(project), REPOSITORY / "site_templates")


def test_every_model_machine_and_source_has_a_page(site: Site, inputs: Inputs) -> None:
    """Every spec of a model, a machine or a source has a page, even without figures."""
    catalogue = inputs.catalogue
    sources = {source.page for source in catalogue.published.values()}
    for folder, specs in (
        ("models", catalogue.models),
        ("machines", catalogue.hardware),
        ("sources", sources),
    ):
        for identifier in specs:
            assert f"{folder}/{identifier}.md" in site.pages
    assert "models/published/paper.md" in site.pages


def test_every_training_cost_of_an_uncompared_step_says_so(site: Site) -> None:
    """Measured trainings without a ratio to PyTorch say so; published trainings do not."""
    section = site.pages["models/net.md"].split("training time with")[1].split("</table>")[0]
    measured = [line for line in section.splitlines() if ">result file</a>" in line]
    published = [line for line in section.splitlines() if '"site:sources/' in line]
    assert len(measured) == 2
    assert published
    assert all("not compared with PyTorch" in line for line in measured)
    assert not any("PyTorch" in line for line in published)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [("1.25", "1.25 times PyTorch&#39;s time"), ("0.80", None)],
    ids=["slower", "faster"],
)
def test_a_slower_step_is_told_with_its_ratio(tmp_path: Path, ratio: str, text: str | None) -> None:
    """Training costs have a caution only if our step is slower than PyTorch's."""
    project = write_project(tmp_path)
    batches = ", ".join(f'"{size}": {{"2": {{"eager": {ratio}}}}}' for size in (32, 128))
    (project / "docs/data/step-ratio.json").write_text(
        f'{{"models": {{"net": {{{batches}}}}}}}', encoding="utf-8"
    )
    page = site_of(project).pages["models/net.md"]
    assert "not compared" not in page
    assert ("ec-caution" in page) is (text is not None)
    if text:
        assert text in page
        assert "1.25 times as long as with PyTorch" in page


def test_a_faster_runtime_is_named_with_its_ratio(tmp_path: Path) -> None:
    """The page of a model says which runtime answers faster than ours, and where."""
    project = write_project(tmp_path)
    (project / "docs/data/step-ratio.json").write_text(
        '{"models": {}, "cpu": "AMD EPYC", "inference": {"net": {"32": {"2": {"OpenVINO": 1.4}}}}}',
        encoding="utf-8",
    )
    page = site_of(project).pages["models/net.md"]
    text = " ".join(page.split())
    assert "At batch size 32 on 2 threads of an AMD EPYC, inference takes 1.40 times" in text
    assert "times as long as with OpenVINO" in text


def test_a_measured_machine_begins_with_its_times(site: Site) -> None:
    """They are unfolded above the costs of jobs; other machines keep them folded below."""
    page = site.pages["machines/local.md"]
    assert "We measured it: its times come first." in page
    assert page.index(" open>") < page.index("Each training time") < page.index("Cost of each job")
    other = site.pages["machines/box.md"]
    assert " open>" not in other
    assert other.index("Cost of each job") < other.index("Each training time")


def test_the_list_of_machines_counts_the_jobs_of_each_page(site: Site) -> None:
    """A machine without a measurement has jobs, too: those of its predicted times."""
    row = r'<tr[^>]*><td><a href="site:(machines/[^"]*.md)".*?<td[^>]*>(\d+)</td></tr>'
    listed = re.findall(row, site.pages["machines/index.md"], re.DOTALL)
    counted = {uri: int(count) for uri, count in listed}
    assert any(counted.values())
    for uri, count in counted.items():
        _, _, table = site.pages[uri].partition("## Cost of each job")
        assert table.partition("</table>")[0].count('<a href="site:models/') == count


def test_a_superseded_price_says_so_with_its_source(site: Site) -> None:
    """The page of prices lists the superseded price of a plan with its date and source."""
    page = site.pages["prices.md"]
    assert page.count("superseded</small>") == 1
    assert "2016-11-01" in page
    assert "2026-07-01" in page
    assert "example.org/prices" in page


def test_old_prices_say_what_renews_them(site: Site) -> None:
    """The page lists prices older than 60 days by source, with how to renew them."""
    fold = site.pages["prices.md"].partition("Older than 60 days")[2].partition("</details>")[0]
    assert "example.org/prices" in fold
    assert "a spec with a newer source, by hand" in fold
    assert "owned" not in fold


def test_changed_prices_are_listed_where_the_first_page_links_them(site: Site) -> None:
    """A newer price of a plan has a row with both amounts and the change."""
    assert 'href="site:prices.md#changed-prices">' in site.pages["index.md"]
    page = html.unescape(site.pages["prices.md"])
    (row,) = page.partition('id="changed-prices">')[2].partition("</details>")[0].split("<tr>")[2:]
    assert row.index("$0.90") < row.index("$0.80") < row.index("-11\N{NO-BREAK SPACE}%")


def test_every_figure_has_its_table_and_its_files(site: Site) -> None:
    """Every chart has a table, a description, and its data as CSV and JSON."""
    pages = "\n".join(site.pages.values())
    assert site.figures
    for identifier, figure in site.figures.items():
        assert re.search(f'data-ec-(figure|later)="{identifier}"', pages)
        assert figure.data.table.rows
        assert figure.description
        assert f"data/figures/{identifier}.csv" in site.files
        assert f"data/figures/{identifier}.json" in site.files


def test_tables_are_whole(site: Site) -> None:
    """Each row of a table has as many cells as the header, and no cell's tag was escaped."""
    tables = [table for page in site.pages.values() for table in _TABLE.findall(page)]
    assert len(tables) > 30
    for table in tables:
        head, *rows = re.findall(r"<tr>.*?</tr>", table)
        assert {len(cells(row)) for row in rows} <= {head.count("<th")}, table
    assert not any("&#60;td" in page for page in site.pages.values())


def test_an_unknown_name_in_a_template_is_a_named_error(tmp_path: Path, inputs: Inputs) -> None:
    """An unknown name in a template is an error that names the template."""
    for path in (REPOSITORY / "site_templates").rglob("*.jinja"):
        target = tmp_path / path.relative_to(REPOSITORY / "site_templates")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    broken = tmp_path / "pages/prices.md.jinja"
    broken.write_text("{{ nothing }}", encoding="utf-8")
    with pytest.raises(InputError, match=r"prices\.md\.jinja"):
        build(inputs, tmp_path)


def test_the_navigation_holds_every_page_once(site: Site) -> None:
    """Every generated and hand-written page is in the navigation once, in the agreed order."""
    written = [
        "cuda.md",
        "decisions/0001-x.md",
        "explanation/bills.md",
        "how-to/add.md",
        "how-to/index.md",
        "start.md",
    ]
    entries = navigation(site, written)
    listed = list(_pages(entries))
    assert {"Calculator": "calculator.md"} in entries
    assert sorted(listed) == sorted([*site.pages, *written])
    assert entries[0] == {"Home": "index.md"}
    assert [next(iter(entry)) for entry in entries] == [
        *("Home", "Models", "Machines", "Prices", "Calculator", "More", "Docs")
    ]
    assert entries[-1]["Docs"] == [
        "start.md",
        "cuda.md",
        {"How-to": ["how-to/index.md", "how-to/add.md"]},
        {"Explanation": ["explanation/bills.md"]},
        {"Decisions": ["decisions/0001-x.md"]},
    ]


def test_pages_below_more_show_the_list_of_their_section(site: Site) -> None:
    """Pages of the main sections hide the list of pages at the side; all others show it."""
    leading = {"Home", "Models", "Machines", "Prices", "Calculator"}
    for title, pages in site.sections.items():
        for uri in pages:
            hidden = site.pages[uri].partition("hide: [")[2].partition("]")[0]
            assert ("navigation" in hidden) == (title in leading), uri


def _pages(entries: object) -> Iterator[str]:
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, dict):
        yield from _pages(list(entries.values()))
    elif isinstance(entries, list):
        for entry in entries:
            yield from _pages(entry)


def test_doubts_stand_at_every_figure_that_they_concern(tmp_path: Path) -> None:
    """A doubtful result has its doubts in its row; a sound result has none."""
    doubtful = make_result().model_copy(update={"contradictions": ("8 GPUs, not 1",)})
    calm = make_result(batch_size=128, samples=(0.030, 0.031) * 20)
    rounds = add_round(add_round(None, calm.measurement, 0.1), calm.measurement, 0.1)
    calm = calm.model_copy(update={"measurement": rounds})
    project = write_project(tmp_path, [doubtful, calm])
    pages = site_of(project).pages
    for page in (pages["models/net.md"], pages["machines/local.md"]):
        folded = page.split("training time with")[1].split("</table>")[0]
        lines = html.unescape(folded).splitlines()
        calm_row, doubtful_row = (line for line in lines if ">result file</a>" in line)
        assert "ec-doubt" not in calm_row
        assert "differs from the spec: 8 GPUs, not 1" in doubtful_row
        assert "unstable: only 4 samples, measured in one process only" in doubtful_row


def test_metered_energy_stands_at_its_step(tmp_path: Path) -> None:
    """50 W and 10 W over a step of 11 ms are 0.66 J; both meters are named."""
    package = MeteredEnergy(meter="RAPL package-0", of="cpu", joules=100.0, seconds=2.0)
    memory = MeteredEnergy(meter="RAPL dram", of="memory", joules=20.0, seconds=2.0)
    metered = make_result(samples=(0.011,) * 40)
    energy = Energy(readings=(package, memory))
    measurement = metered.measurement.model_copy(update={"energy": energy})
    project = write_project(tmp_path, [metered.model_copy(update={"measurement": measurement})])
    page = site_of(project).pages["models/net.md"]
    assert "0.66 J, RAPL package-0 + RAPL dram" in html.unescape(page)


def test_machines_without_a_time_are_told_by_reason(tmp_path: Path) -> None:
    """A reason names its own machines, or all without a time, and its mode if it holds for one."""
    report = Report(inputs_of(write_project(tmp_path)))
    hardware = {machine.id: machine.name for machine in report.catalogue.hardware.values()}
    (workload,) = (each for each in report.workloads if each.id == "net")
    rows = report.workloads[workload]
    untimed = {
        mode: {*hardware} - {row.observed.machine.hardware for row in rows if row.mode == mode}
        for mode in ("training", "inference")
    }
    neither = untimed["training"] & untimed["inference"]
    trained = untimed["inference"] - neither
    assert trained
    gaps = (
        NoTime("net", "too few"),
        NoTime("net", "does not fit", (*hardware.values(),), mode="inference"),
        NoTime("local", "not known"),
    )
    report.__dict__["predictions"] = replace(report.predictions, without=gaps)
    about = about_model(report, workload)
    assert {reason: {*names} for reason, names in about["without"].items()} == {
        "too few": {hardware[key] for key in neither},
        "inference: too few": {hardware[key] for key in trained},
        "inference: does not fit": {hardware[key] for key in untimed["inference"]},
    }
    assert about["untimed"] == {mode: len(machines) for mode, machines in untimed.items()}


def test_a_measured_machine_is_compared_with_a_cheaper_one(tmp_path: Path) -> None:
    """A measured machine of one's own has its ratio, its odds and the energy that the job adds."""
    project = write_project(tmp_path)
    price = project / "specs/prices/assumed-local.toml"
    dear = price.read_text("utf-8").replace("assumed = true", "").replace("per_vcpu = true", "")
    price.write_text(dear.replace("purchase = 100", "purchase = 10000000"), "utf-8")
    page = site_of(project).pages["models/net.md"]
    (training,) = (each for each in page.split("<p>") if each.startswith("Training for"))
    (measured,) = re.findall(r"<li>Measured on (.*?)</li>", html.unescape(training), re.DOTALL)
    assert re.search(r"This is [\d,]+ times as much \(likely [\d,.]+ to [\d,.]+\)", measured)
    assert "costs least in 0 of 100" in measured
    assert "If you own this machine already, the job adds only $0.0" in measured


def test_a_sole_machine_has_nothing_to_be_ranked_against(tmp_path: Path) -> None:
    """Its page says so, and does not blame a doubt of its times."""
    project = write_project(tmp_path, [make_result(hardware="crate")])
    shutil.rmtree(project / "specs/published")
    page = site_of(project).pages["machines/crate.md"]
    assert "not ranked against those of other machines (no other machine has a known time" in page


def test_a_slow_inference_is_not_0_examples_a_second(tmp_path: Path) -> None:
    """One example in 2.35 s is 0.43 a second."""
    slow = make_result(mode="inference", batch_size=1, samples=(2.34, 2.35, 2.36, 2.35))
    page = site_of(write_project(tmp_path, [slow])).pages["models/net.md"]
    rates = re.findall(r"<td[^>]*>([\d.,]+)</td> *<td[^>]*>2\.35 s", page)
    assert "0.43" in rates


def test_only_a_training_pays_for_rounded_time(tmp_path: Path) -> None:
    """Only the training's cost mentions whole hours; a million inferences cost a share of hours."""
    project = write_project(tmp_path)
    price = project / "specs/prices/assumed-local.toml"
    rented = 'plan = "on-demand"\nbilling = "whole-hour"\namount = 0.01\n'
    text = price.read_text("utf-8").replace("assumed = true", "").replace('plan = "owned"', rented)
    price.write_text(text.partition("[owned]")[0], "utf-8")
    page = site_of(project).pages["models/net.md"]
    training, serving = html.unescape(page.partition("<figure")[0]).split("<ul>")[1:]
    assert "bills in whole hours: a part of the cost" in training
    assert "of 100 scenarios." in training
    assert "bills in" not in serving


def test_a_fee_for_each_run_is_a_price_without_an_hour(tmp_path: Path) -> None:
    """Lists show a dash for the hour, and sentences leave it out."""
    project = write_project(tmp_path, results_of_rented_machines())
    (project / "specs/prices/fee.toml").write_text(
        "id = 'fee'\nhardware = 'crate'\nplan = 'on-demand'\nprovider = 'Fees'\n"
        "source = 'a test'\nas_of = 2026-11-01\n"
        "[[components]]\nlabel = 'fee'\nper = 'run'\namount = 0.01\n"
    )
    pages = site_of(project).pages
    assert "<strong>—</strong><br><small>fee&#58; &#36;0.01 per run</small>" in pages["prices.md"]
    assert "Fees, on-demand, 2026-11-01" in pages["index.md"]
    assert "This time is billed too" not in pages["models/net.md"]


def test_names_of_files_are_bounded(tmp_path: Path) -> None:
    """File names stay below 250 characters for the longest names of providers and GPUs."""
    gpus = (Gpu(name="G" * 5000, memory_bytes=None, driver=None),)
    result = make_result()
    trial = result.trial.model_copy(update={"provider": "cuda"})
    with_gpu = result.environment.model_copy(update={"gpus": gpus})
    on_gpu = result.model_copy(
        update={"environment": with_gpu, "trial": trial, "trial_id": trial.id}
    )
    folder = write_project(tmp_path, [result, on_gpu])
    price = (folder / "specs/prices/box-2026.toml").read_text("utf-8")
    for number, name in enumerate(("x" * 250, "x" * 251, "\u963f\u91cc", "\u817e\u8baf")):
        for day in ("06-01", "07-01"):
            result_name = f"box-{number}-{day}"
            text = price.replace("box-2026", result_name).replace('"Cloud"', f'"{name}"')
            text = text.replace("2026-07-01", f"2026-{day}")
            (folder / f"specs/prices/{result_name}.toml").write_text(text, "utf-8")
    site = build(inputs_of(folder), folder / "site_templates")
    names = [*site.pages, *site.files, *site.results]
    assert max(len(part) for name in names for part in name.split("/")) < 250


def test_a_host_is_described_with_its_limits(tmp_path: Path) -> None:
    """A machine's page describes a host's virtual machine, limits and epochcost's revision."""
    result = make_result()
    environment = result.environment.model_copy(
        update={
            "instance": Instance(provider="AWS EC2", type="p5.48xlarge"),
            "cpu_quota": 1.5,
            "memory_limit_bytes": 2**32,
            "gpus": (Gpu(name=None, memory_bytes=None, driver=None, power_limit_watts=700.0),),
            "revision": "0123456789" * 4,
            "modified": True,
        }
    )
    project = write_project(tmp_path, [result.model_copy(update={"environment": environment})])
    page = site_of(project).pages["machines/local.md"]
    (row,) = (line for line in html.unescape(page).splitlines() if "<code>f00df00d" in line)
    for phrase in (
        "<small>p5.48xlarge</small>",
        "quota 1.5",
        "limit 4.0 GiB",
        "unknown, memory unknown, driver unknown, 700 W",
        "epochcost at 0123456789, modified",
    ):
        assert phrase in row
