"""Rates on CPUs: how vCPUs are counted and which rows are used."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from epochcost.analysis.arithmetic import arithmetic_of_model
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.predicted import profiles_of
from epochcost.analysis.rates import cpu_of, cpu_rates, models_with_rates
from epochcost.analysis.representatives import representatives
from epochcost.graphs.profile import Profile
from epochcost.predict.design import designed
from epochcost.predict.forecast import OUR_RUNTIME
from epochcost.predict.process import (
    OF_CPUS,
    centred_departures,
    held_out,
    inverted,
    members,
    with_noise,
)
from epochcost.results.rounds import summary_of


@pytest.fixture(scope="module")
def profiles(own_inputs: Inputs) -> dict[str, Profile]:
    """Profiles of the graphs of two models, one of them recurrent."""
    profiles_by_model = {}
    for name in ("mnist-cnn", "lstm-text-generation"):
        counted = arithmetic_of_model(own_inputs.catalogue, own_inputs.catalogue.models[name])
        assert counted is not None
        assert counted.profile is not None
        profiles_by_model[name] = counted.profile
    return profiles_by_model


def test_results_timings_and_tables_count_with_their_vcpus(
    own_inputs: Inputs, profiles: dict[str, Profile]
) -> None:
    """Our results, published timings and tables give rates with their numbers of vCPUs."""
    rows, devices = cpu_rates(own_inputs, profiles)
    makes = Counter((row.device.chip, float(row.device.memory_gb_per_second)) for row in rows)
    assert makes["AMD EPYC (family 25, model 1)", 1]
    assert makes["AMD EPYC (family 25, model 1)", 2]
    # Two models with two builds of TensorFlow.
    for vcpus in (8, 16, 32, 64):
        assert makes["Intel Xeon, 2.0 GHz (Skylake)", vcpus] == 4
    assert makes["i9_10940x", 28] > 100
    assert {row.chip for row in devices.all} == {chip for chip, _ in makes}


def test_nothing_follows_from_one_or_two_makes(
    own_inputs: Inputs, profiles: dict[str, Profile]
) -> None:
    """There are no rates for predictions if only two makes of CPU were measured."""
    bare = replace(own_inputs.catalogue, published={}, observations={})
    two = [s for s in own_inputs.stored if s.result.hardware in {"epyc-vm-2", "turin-vm-2"}]
    assert two
    few = replace(own_inputs, catalogue=bare, stored=tuple(two))
    assert cpu_rates(few, profiles)[0] == ()


def test_a_machine_left_out_is_predicted_from_others_of_its_make(own_inputs: Inputs) -> None:
    """Each of Woolf's four machines is predicted from the other three, mostly within 50 %."""
    profiles = profiles_of(own_inputs, models_with_rates(own_inputs))
    rows, devices = cpu_rates(own_inputs, profiles)
    woolf = [row for row in rows if "woolf-2017" in row.rate.software]
    design = designed(woolf, devices)
    inverse = inverted(with_noise(design, OF_CPUS))
    groups = held_out(inverse, centred_departures(design)[0], members(design.device))
    errors = np.concatenate([departures for _, departures, _ in groups])
    assert len(errors) == 4 * 7 * 2
    assert np.quantile(np.abs(errors), 0.9) < np.log(1.5)


def test_rates_are_as_uncertain_as_their_measurements(
    own_inputs: Inputs, profiles: dict[str, Profile]
) -> None:
    """Half the interval of a rate is 1.96 of its standard deviations; of one step, nothing is used.

    Repeated results of a workload stay rows of their own, each with its uncertainty.
    """
    stored = next(s for s in own_inputs.stored if s.result.trial.model == "mnist-cnn")
    rows, _ = cpu_rates(own_inputs, profiles)
    half_widths = {
        summary_of(s.result).relative_half_width
        for s in representatives(own_inputs.stored)
        if s.result.trial.model in profiles
    }
    ours = [row.uncertainty * 1.96 for row in rows if row.rate.software == OUR_RUNTIME]
    assert ours
    assert all(min(abs(width - each) for each in half_widths) < 1e-4 * width for width in ours)
    assert {row.uncertainty for row in rows if row.rate.software != OUR_RUNTIME} == {0.0}
    measurement = stored.result.measurement
    single = measurement.model_copy(
        update={"samples_seconds": measurement.samples_seconds[:1], "rounds": ()}
    )
    result = stored.result.model_copy(update={"measurement": single})
    alone = replace(own_inputs, stored=(replace(stored, result=result),))
    rows, _ = cpu_rates(alone, profiles)
    assert not [row for row in rows if row.rate.software == OUR_RUNTIME]


def test_results_that_others_disturbed_teach_nothing(
    own_inputs: Inputs, profiles: dict[str, Profile]
) -> None:
    """A result during which other programs used half of the CPUs gives no rate."""
    stored = next(
        s
        for s in own_inputs.stored
        if s.result.trial.model == "mnist-cnn" and s.result.measurement.conditions
    )
    counts = []
    for busy in (0.0, 1.0):
        measurement = stored.result.measurement
        assert measurement.conditions is not None
        conditions = measurement.conditions.model_copy(
            update={"others_cpus": busy, "steal_share": 0.0}
        )
        measurement = measurement.model_copy(update={"conditions": conditions})
        result = stored.result.model_copy(update={"measurement": measurement})
        alone = replace(own_inputs, stored=(replace(stored, result=result),))
        rows, _ = cpu_rates(alone, profiles)
        counts.append(len([row for row in rows if row.rate.software == OUR_RUNTIME]))
    assert counts == [1, 0]


def test_arm_and_unnamed_cpus_have_a_reason(own_inputs: Inputs) -> None:
    """Arm CPUs and unknown CPUs have a reason instead of a prediction."""
    assert (
        cpu_of(own_inputs.catalogue.hardware["c8g.48xlarge"]) == "no published time of an Arm CPU"
    )
    assert cpu_of(own_inputs.catalogue.hardware["rescale-worker"]) == "its CPUs are not known"
