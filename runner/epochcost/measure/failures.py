"""The errors of a trial that did not end in a measurement."""

from __future__ import annotations

from epochcost.errors import CapabilityError, EpochcostError, InputError


class TrialFailed(EpochcostError):  # noqa: N818 - an outcome of a trial, named as people say it
    """The worker died, hung or could not go on; the message says how, and its last words."""

    exit_code = CapabilityError.exit_code


class TrialRefused(TrialFailed):
    """The worker found its input wrong: the graph, the data, or a training that diverged."""

    exit_code = InputError.exit_code


class OutOfMemory(TrialFailed):
    """The trial needs more memory than there is: of the host, or of the device."""


class PlacementError(CapabilityError):
    """Work that was asked for on a GPU ran on the CPU."""


class JobError(InputError):
    """A job's files do not fit its graph: a name, a type or a shape."""
