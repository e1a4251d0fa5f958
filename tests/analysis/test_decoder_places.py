"""Machines on which language models are predicted."""

from __future__ import annotations

from epochcost.analysis.decoder_places import decoder_places
from epochcost.analysis.inputs import Inputs
from epochcost.specs.hardware import Device


def test_a_machine_may_have_less_memory_than_its_device(own_inputs: Inputs) -> None:
    """The accelerator memory that a machine's spec states counts, not that of its device."""
    places, _ = decoder_places(own_inputs.catalogue)
    (place,) = (each for each in places if each.machine.hardware == "g6e.xlarge")
    assert isinstance(place.device, Device)
    assert place.memory_bytes == float(place.device.memory_gib) * 2**30 == 44.7 * 2**30
    assert own_inputs.catalogue.devices["l40s"].memory_gib == 45
