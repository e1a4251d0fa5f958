"""The calculator's data as the browser gets them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import observe
from epochcost.analysis.rows import Row, price_rows
from epochcost.cost.estimate import Time
from epochcost.predict.joint import joint_draws
from epochcost.report.pages.calculator import FOLDER, files
from epochcost.report.pages.page import Report


def data_of(report: Report) -> dict[str, Any]:
    """The data of each script by name, with the data that ``plans`` has for each machine."""
    found = {}
    for uri, text in files(report):
        if uri.startswith(FOLDER):
            name, _, value = text.partition("=")
            assert name.startswith('window["epochcost')
            key = uri.removeprefix(f"{FOLDER}/").removesuffix(".js")
            found[key] = json.loads(value.removesuffix(";\n"))
    usual = found["plans"]["machines"]
    for jobs in (value for key, value in found.items() if key != "plans"):
        for job in ("train", "serve"):
            jobs[job] = [usual[timing["machine"]] | timing for timing in jobs[job]]
    return found


def predicted_rows(inputs: Inputs, count: int = 5) -> tuple[Row, ...]:
    """Rows of trainings: predicted together for several machines, and one measured."""
    known = [one for one in observe(inputs) if one.workload.id == "net" and one.full]
    measured = next(one for one in known if one.kind == "measured")
    mixed = np.random.default_rng(3).normal(size=(count, count))
    covariance = 0.02 * mixed @ mixed.T + 0.3
    draws = joint_draws(covariance, np.full(count, 1.9), "net training")
    predicted = [
        replace(
            measured,
            kind="predicted",
            machine=Machine("box", None, f"Box {at}", "cpu", 8),
            epoch=Time.from_floats(100 + 10 * at, 200 + 20 * at, 400 + 100 * at),
            draws=drawn.bounded(0.0, -0.2 if at == 1 else -np.inf),
        )
        for at, drawn in enumerate(draws)
    ]
    own = Machine("box", None, "Measured box", "cpu", 8)
    moved = replace(measured, machine=own, epoch=Time.from_floats(230, 240, 250))
    return price_rows(inputs.catalogue, [*predicted, moved])
