"""The published program of a workload: similar graphs, texts apart from images, similar batches."""

from __future__ import annotations

from pathlib import Path

from epochcost.predict.learnt import placed
from epochcost.predict.published import nearest_program
from epochcost.predict.rates import read_rates
from predict.tables import KNOWN, MODELS, PROFILES, row, write


def test_a_published_rate_is_of_a_similar_batch(tmp_path: Path):
    """A rate at a batch of 1 is not the time of a batch of 100: of large ones, the nearest is."""
    table = [row("dense", "Maker A1", 10.0 * size, batch=str(size)) for size in (1, 64, 128)]
    known = placed(read_rates(write(tmp_path / "t.csv", table)), KNOWN, PROFILES)
    program = nearest_program("", PROFILES["dense", ""], known, "inference", "fp32")
    assert program is not None
    batches = [
        rate and rate.batch
        for rate in (program.published_on(known[0].device, 1, size) for size in (1, 8, 80, 1000))
    ]
    assert batches == [1, 64, 64, None]


def test_a_text_model_runs_in_a_program_for_texts(tmp_path: Path):
    """An image classifier is not the program of a text model, even if its graph is more similar."""
    names = ("PyTorch Classification ConvNets resnet50v1.5", "PyTorch LanguageModeling BERT base")
    profiles = {(name, ""): PROFILES[model, ""] for name, model in zip(names, MODELS, strict=False)}
    table = [
        row(name, "Maker A1", 100.0, task="Mixed Precision Inference Latency") for name in names
    ]
    known = placed(read_rates(write(tmp_path / "t.csv", table)), KNOWN, profiles)
    for task, expected in (("language modelling", names[1]), ("image classification", names[0])):
        program = nearest_program(task, profiles[names[0], ""], known, "inference", "fp32")
        assert program is not None
        assert program.rate.model == expected
        assert {each.rate.model for each in program.same} == {expected} - {names[1]}


def test_the_program_with_rates_on_most_devices_is_preferred(tmp_path: Path):
    """Rates on two devices say more about a third than rates at three batch sizes on one."""
    table = [
        row("dense", "Maker A1", 100.0, batch=str(size), software="old") for size in (64, 65, 66)
    ]
    table += [row("dense", f"Maker {chip}", 100.0, software="new") for chip in ("A1", "B1")]
    known = placed(read_rates(write(tmp_path / "t.csv", table)), KNOWN, PROFILES)
    program = nearest_program("", PROFILES["dense", ""], known, "inference", "fp32")
    assert program is not None
    assert program.rate.software == "new"
