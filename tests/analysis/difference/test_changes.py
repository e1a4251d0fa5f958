"""Differences of two revisions: amounts, causes, winners and results."""

from __future__ import annotations

import shutil
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.analysis.difference.causes import ChangedCost
from epochcost.analysis.difference.changes import Difference
from epochcost.analysis.difference.rendering import (
    cells,
    render_result,
    render_winner,
    sections,
    shown_costs,
    summary,
)
from epochcost.analysis.odds import scenarios
from epochcost.plan.digests import graph_sha256, work_sha256
from epochcost.specs.loader import load_catalogue
from report_project import make_result, store_results
from revisions import STEPS, Compare, commit, dataset_amounts, edit, write_spec


def amounts(change: ChangedCost) -> tuple[Decimal, Decimal]:
    """The costs before and after a change, which must both exist."""
    assert change.before
    assert change.after
    assert change.before.cost is not None
    assert change.after.cost is not None
    return change.before.cost, change.after.cost


def of_goal(changes: Difference, goal: str) -> ChangedCost:
    """The only change of a cost for ``goal``."""
    (change,) = (cost for cost in changes.costs if cost.figure.job.goal == goal)
    return change


def causes(change: ChangedCost) -> list[tuple[str, str]]:
    """The kinds of the causes and their texts."""
    return [(cause.kind, cause.text) for cause in change.causes]


def test_nothing_changed(compare: Compare) -> None:
    """Equal revisions have no differences."""
    assert compare().is_empty


def test_an_edited_price(project: Path, compare: Compare) -> None:
    """Each cost changes in proportion to the edited price, and the price is the only cause."""
    edit(project, "prices/local-2025", "0.90", "0.45")
    changes = compare()
    assert {cost.figure.job.goal for cost in changes.costs} == {"epoch", "full"}
    change = of_goal(changes, "full")
    # 10 epochs of 200 steps of 10 ms are 20 s of an hour at $0.90, then at $0.45.
    assert [round(amount, 12) for amount in amounts(change)] == [
        Decimal("0.005"),
        Decimal("0.0025"),
    ]
    assert causes(change) == [("price", "amount 0.9 → 0.45")]
    assert change.relative == pytest.approx(-0.5)
    assert not changes.results.by_kind()


def test_a_newer_price(project: Path, compare: Compare) -> None:
    """A cost at a plan's older price is compared with the cost at the plan's newer price."""
    text = (project / "specs/prices/local-2025.toml").read_text(encoding="utf-8")
    newer = text.replace("2025", "2026").replace("0.90", "1.08")
    write_spec(project, "prices/local-2026", newer)
    change = of_goal(compare(), "full")
    before, after = amounts(change)
    assert after == Decimal("1.2") * before
    change_text = "amount 0.9 → 1.08, 2025-11-01 → 2026-11-01"
    assert causes(change) == [("price", change_text)]


def test_a_price_with_another_id_changes_no_cost(project: Path, compare: Compare) -> None:
    """A price with a new id alone changes no cost and no cheapest choice."""
    edit(project, "prices/local-2025", 'id = "local-2025"', 'id = "ours"')
    changes = compare()
    assert not changes.costs
    assert not changes.winners
    assert changes.prices == ("price local-2025 removed", "price ours added")


def test_a_price_in_another_currency(project: Path, compare: Compare) -> None:
    """A cost in another currency is neither compared nor counted as added or removed."""
    edit(project, "prices/local-2025", "amount =", 'currency = "EUR"\namount =')
    changes = compare()
    assert of_goal(changes, "full").amount is None
    assert summary(changes).startswith("1 cost changes (1 in another currency)")


def test_a_price_stated_again_is_no_cause(project: Path, compare: Compare) -> None:
    """If a newer price only repeats the older one, the longer training is the only cause."""
    text = (project / "specs/prices/local-2025.toml").read_text(encoding="utf-8")
    write_spec(project, "prices/local-2026", text.replace("2025", "2026"))
    edit(project, "models/net", "epochs = 10", "epochs = 12")
    assert causes(of_goal(compare(), "full")) == [("spec", "training.epochs 10 → 12")]


def test_a_price_that_is_gone_is_unknown(project: Path, compare: Compare) -> None:
    """If a price is removed, the cost becomes unknown, and no machine is the cheapest."""
    (project / "specs/prices/local-2025.toml").unlink()
    write_spec(project, "prices/x", _price_of_other())
    changes = compare()
    change = of_goal(changes, "full")
    assert change.after
    assert change.after.cost is None
    assert cells(change)[2:6] == ("local-2025", "$0.0050", "unknown", "—")
    assert change.amount is None
    (winner,) = changes.winners
    assert winner.before is not None
    assert winner.after is None


def _price_of_other() -> str:
    return """
        id = "x"
        hardware = "other"
        plan = "on-demand"
        provider = "Cloud"
        amount = 0.01
        source = "a test"
        as_of = 2025-11-01
    """


def test_a_longer_training(project: Path, compare: Compare) -> None:
    """More epochs change only the cost of the full training, and the cause names the spec's key."""
    edit(project, "models/net", "epochs = 10", "epochs = 12")
    changes = compare()
    (change,) = changes.costs
    before, after = amounts(change)
    assert float(after / before) == pytest.approx(1.2)
    assert causes(change) == [("spec", "training.epochs 10 → 12")]


def test_a_slower_measurement(project: Path, compare: Compare) -> None:
    """A clearly slower step changes the cost, and the cause is the time, with an interval."""
    slower = make_result(samples=[step * 1.3 for step in STEPS], day=21, rounds=3)
    store_results(project, [slower])
    changes = compare()
    change = of_goal(changes, "full")
    assert [cause.kind for cause in change.causes] == ["time"]
    assert change.time is not None
    assert change.time.factor.low > 1.1
    assert [result.title for result in changes.results.measured_again] == [
        "net training cpu batch 32"
    ]


def test_a_slower_process(project: Path, compare: Compare) -> None:
    """A step that is slower in a single process is not a significant change."""
    slower = make_result(samples=[step * 1.3 for step in STEPS], day=21)
    store_results(project, [slower])
    changes = compare()
    assert (changes.costs, changes.unsure) == ((), 1)


def test_another_host_is_no_change(project: Path, compare: Compare) -> None:
    """Results of two hosts are never compared: the result of another host is an added result."""
    store_results(
        project, [make_result(samples=[step * 2 for step in STEPS], fingerprint="1" * 16)]
    )
    changes = compare()
    assert (changes.costs, changes.unsure) == ((), 0)
    assert [result.hardware for result in changes.results.added] == ["local"]


def test_each_cause_is_named(project: Path, compare: Compare) -> None:
    """The causes time, epochs and price are listed in this order, each with its size."""
    store_results(project, [make_result(samples=[step * 1.3 for step in STEPS], day=21, rounds=3)])
    edit(project, "models/net", "epochs = 10", "epochs = 12")
    edit(project, "prices/local-2025", "0.90", "0.45")
    time, *further = causes(of_goal(compare(), "full"))
    assert time[0] == "time"
    assert time[1].startswith("step +30.0 % (95 % interval")
    assert further == [("spec", "training.epochs 10 → 12"), ("price", "amount 0.9 → 0.45")]


@pytest.mark.parametrize(
    ("old", "new", "cause_text"),
    [
        ("0.01", "0.02", "price x: amount 0.01 → 0.02"),
        (
            "amount = 0.01",
            'amount = 0.01\n        billing = "whole-hour"',
            'price x: billing "per-second" → "whole-hour"',
        ),
        (
            "amount = 0.01",
            "amount = 0.01\n        valid_until = 2026-01-01",
            "price x: valid_until — → 2026-01-01",
        ),
        ('"x"', '"y"', "price x removed"),
    ],
    ids=["amount", "terms", "end of the offer", "another id"],
)
def test_a_price_of_what_nobody_timed(
    project: Path, compare: Compare, old: str, new: str, cause_text: str
) -> None:
    """A changed price of a machine without timed workloads is listed with its changed keys."""
    write_spec(project, "prices/x", _price_of_other())
    commit(project)
    text = (project / "specs/prices/x.toml").read_text("utf-8").replace(old, new)
    (project / "specs/prices/x.toml").unlink()
    name = new.strip('"') if old == '"x"' else "x"
    write_spec(project, f"prices/{name}", text)
    changes = compare()
    assert not changes.costs
    assert changes.prices[0] == cause_text


@pytest.mark.parametrize("per_vcpu", [True, False])
def test_a_variant_costs_what_its_page_says(
    project: Path, compare: Compare, *, per_vcpu: bool
) -> None:
    """The cost of a trial on half of the vCPUs follows a price per vCPU or per machine."""
    pinned = make_result(samples=STEPS, hardware="other", fingerprint="2" * 16, vcpus=2)
    store_results(project, [pinned])
    owned = "[owned]\nper_vcpu = true\npurchase = 100\nyears = 4\nutilisation = 0.25\n"
    owned += "power_watts = 10\nelectricity_per_kwh = 0.2\n"
    text = _price_of_other()
    if per_vcpu:
        text = text.replace("amount = 0.01\n", "").replace("on-demand", "owned") + owned
    write_spec(project, "prices/x", text)
    commit(project)
    before = dataset_amounts(project)
    edit(project, "prices/x", *(("= 100", "= 200") if per_vcpu else ("0.01", "0.02")))
    (otherwise,) = dataset_amounts(project) - before
    (change,) = (cost for cost in compare().costs if cost.figure.job.variant)
    assert amounts(change)[1] == otherwise


def test_a_winner_that_changes(project: Path, compare: Compare) -> None:
    """The former and the new cheapest machine are named, with odds."""
    rival = make_result(samples=STEPS, hardware="other", fingerprint="2" * 16)
    store_results(project, [rival])
    write_spec(project, "prices/x", _price_of_other().replace("0.01", "5.00"))
    commit(project)
    edit(project, "prices/x", "5.00", "0.01")
    (winner,) = compare().winners
    assert winner.before
    assert winner.after
    assert winner.before.job.hardware == "local"
    assert winner.after.job.hardware == "other"
    assert winner.wins is not None
    assert winner.wins > 0.99
    assert render_winner(winner).endswith(f"; it costs least in {scenarios(winner.wins)} scenarios")


def test_a_removed_model_is_the_reason(project: Path, compare: Compare) -> None:
    """If the model was removed, the sentence says so, and blames no missing time."""
    (project / "specs/models/net.toml").unlink()
    shutil.rmtree(project / "docs/data/results")
    words = [render_winner(winner) for winner in compare().winners]
    assert words
    assert all(line.endswith("; the model was removed") for line in words)


def test_a_sole_choice_has_no_odds(project: Path, compare: Compare) -> None:
    """Without a second machine to compare, the sentence states no probability.

    The measured time of a new job is named only if another machine is cheaper.
    """
    shutil.rmtree(project / "docs/data/results/local")
    commit(project)
    store_results(project, [make_result(samples=STEPS)])
    changes = compare()
    (winner,) = changes.winners
    assert "; 1 new job" in summary(changes)
    assert winner.before is None
    assert winner.wins is None
    assert winner.measured is None
    sole = "; no other machine has a time and a price to compare it with"
    assert render_winner(winner).endswith(sole)
    assert winner.after
    dearer = replace(winner, measured=(winner.after, 0.321))
    assert (
        render_winner(dearer)
        .partition(f"{sole}; measured: local, batch 32, ")[2]
        .endswith("; it costs least in 32 of 100")
    )


def test_results_that_went_stale(project: Path, compare: Compare) -> None:
    """Results of a model whose training spec changed are listed as newly stale."""
    catalogue = load_catalogue(project)
    fresh = make_result(samples=STEPS, batch_size=64)
    trial = fresh.trial.model_copy(
        update={
            "graph_sha256": graph_sha256(catalogue, "net"),
            "spec_sha256": work_sha256(catalogue.models["net"], "training"),
        }
    )
    store_results(project, [fresh.model_copy(update={"trial": trial, "trial_id": trial.id})])
    commit(project)
    edit(project, "models/net", "learning_rate = 0.1", "learning_rate = 0.2")
    changes = compare()
    assert [result.title for result in changes.results.stale] == ["net training cpu batch 64"]
    assert not changes.costs


def test_an_added_result_has_its_cost(project: Path, compare: Compare) -> None:
    """The sentence on the result states the job's cost at its price; new machines are named."""
    rival = make_result(samples=STEPS, hardware="other", fingerprint="2" * 16)
    store_results(project, [rival])
    write_spec(project, "prices/x", _price_of_other())
    machine = (project / "specs/hardware/other.toml").read_text("utf-8")
    write_spec(project, "hardware/third", machine.replace('"other"', '"third"'))
    changes = compare()
    (added,) = changes.results.added
    words = render_result(added)
    assert words.startswith("net training cpu batch 32 on other: $")
    assert " for full training in 20 s, " in words
    assert changes.results.learned_from == "1 result added"
    assert "machine third added" in changes.prices


def test_a_replaced_result_and_another_batch_change_little(project: Path, compare: Compare) -> None:
    """An earlier result of the same trial is named as not used, after the others.

    A cheaper batch on the same machine is not another choice.
    """
    earlier = make_result(samples=STEPS, batch_size=64, day=21)
    later = make_result(samples=STEPS, batch_size=64, day=22, producer="0.2.0")
    store_results(project, [earlier, later])
    changes = compare()
    first, last = sections(changes)["results_added"]
    assert ": $" in first
    assert last.endswith("batch 64 on local: not used, because another result replaces it")
    assert not changes.winners
    assert summary(changes) == "2 results added"


def test_a_damaged_result_is_left_out(project: Path, compare: Compare) -> None:
    """A damaged result file is named, and all other results are compared."""
    (project / "docs/data/results/local/net-training-x.json").write_text("{")
    edit(project, "prices/local-2025", "0.90", "0.45")
    changes = compare()
    assert len(shown_costs(changes.costs)) == 1
    (problem,) = changes.problems
    assert problem.startswith("working tree: docs/data/results/local/net-training-x.json:1:")
