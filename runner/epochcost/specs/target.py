"""Targets: machines on which `epochcost launch` measures, and the programs that reach them."""

from __future__ import annotations

import re
from importlib.metadata import requires
from typing import Annotated, Literal

from pydantic import Field

from epochcost.specs.base import (
    RELEASE,
    Array,
    Identifier,
    NamedSpec,
    Spec,
    Text,
    key,
    matching,
    optional,
)
from epochcost.specs.study import Provider

# Excludes texts that ssh would read as an option, or rsync as a path.
_Host = Annotated[
    Text,
    matching(
        r"[^-\s:][^\s:]*",
        "a host for `ssh`, such as alice@gpu-box, without spaces, colons or a leading -",
    ),
]
_Option = Annotated[str, matching(r"--[a-z][\s\S]*", "an option that begins with --")]
_Runtime = Annotated[
    str,
    matching(
        rf"onnxruntime[a-z-]{{0,20}}(\[[a-z,_-]{{1,40}}\])?=={RELEASE}",
        'a package and its version, such as "onnxruntime==1.31.1"',
    ),
]
# The package that the extra `run` installs on Linux with x86-64.
PINNED_RUNTIME = next(
    requirement.partition(";")[0]
    for requirement in requires("epochcost") or ()
    if requirement.startswith("onnxruntime-gpu==")
)
Minutes = Annotated[int, Field(ge=1, le=10_000)]
# A rented machine shuts down after this time without work; results are collected before.
IDLE_MINUTES = 10


class Ssh(Spec):
    """A machine that the system's `ssh` reaches, with the keys and settings of the user."""

    name: Literal["ssh"] = key("The system's `ssh` and `rsync`.")
    host: _Host = key("Host for `ssh`: an address or a configured alias.", "alice@gpu-box")


class Slurm(Spec):
    """Nodes of a Slurm cluster."""

    name: Literal["slurm"] = key("A Slurm cluster.")
    login: _Host | None = optional(
        "Login node for `ssh`; by default, this machine submits jobs.", "alice@login"
    )
    options: Array[_Option] = key(
        "Options of `sbatch` that choose the nodes.",
        ["--partition=gpu", "--constraint=a100", "--gres=gpu:1", "--account=lab"],
        default=(),
    )
    jobs: Annotated[int, Field(ge=1, le=1000)] = key(
        "Most jobs in the queue at once; each job has a whole node.", 2, default=1
    )


class Sky(Spec):
    """A machine that SkyPilot rents from a cloud or a Kubernetes cluster."""

    name: Literal["sky"] = key("SkyPilot.")
    infra: Text = key("Cloud, region and zone in which SkyPilot rents.", "aws/us-east-1")
    instance_type: Text | None = optional("The provider's instance type.", "g6.xlarge")
    accelerators: Text | None = optional("SkyPilot's name for the accelerators.", "L4:1")


class Target(NamedSpec):
    """A machine on which `epochcost launch` runs the trials and batch sweeps of a study."""

    engine: Ssh | Slurm | Sky = key("How to reach the machine.", discriminator="name")
    hardware: Identifier = key("The machine, by id in hardware/.", "g6.xlarge")
    price: Identifier = key(
        "Price plan, by id; a spot plan rents a spot machine.", "g6.xlarge-on-demand-2026-07"
    )
    provider: Provider = key("The execution provider.", "cuda", default="cpu")
    limit_minutes: Minutes = key("Longest time of a trial or sweep, in minutes.", default=60)
    setup_minutes: Minutes = key("Longest time to start and install, in minutes.", default=15)
    retries: Annotated[int, Field(ge=0, le=10)] = key(
        "How often a trial or sweep is repeated after its machine was lost.", default=1
    )
    runtime: _Runtime | None = optional(
        "The package of ONNX Runtime on the machine; by default, the package that epochcost's "
        "extra `run` installs on Linux.",
        "onnxruntime==1.31.1",
    )
    setup: Array[Text] = key(
        "Shell commands that run on the machine before the installation and before each run.",
        ["module load python/3.12"],
        default=(),
    )
    folder: Text = key(
        "Folder below the user's home, with a folder for each target.", default=".cache/epochcost"
    )
    secrets: Array[Text] = key(
        "Your environment variables that the trials need on the machine.", ["HF_TOKEN"], default=()
    )

    @property
    def kind(self) -> tuple[str, str, str]:
        """Machine, provider and runtime; targets with equal kinds can measure the same trials."""
        return self.hardware, self.provider, self.measured_runtime

    @property
    def measured_runtime(self) -> str:
        """The runtime as results name it: without extras such as ``[cuda,cudnn]``."""
        return re.sub(r"\[.*\]", "", self.runtime or PINNED_RUNTIME)

    @property
    def host(self) -> str | None:
        """The host for `ssh`; None if this computer submits the jobs of a Slurm cluster."""
        match self.engine:
            case Ssh(host=host) | Slurm(login=host):
                return host
        return "epochcost-" + re.sub("[^a-z0-9]+", "-", self.id.lower())

    @property
    def place(self) -> str:
        """The folder that only this target uses, relative to the user's home."""
        return f"{self.folder}/{self.id}"

    @property
    def attempt_seconds(self) -> int:
        """Longest billed time of one attempt at a trial: set-up, trial, and ``IDLE_MINUTES``."""
        return 60 * (self.setup_minutes + self.limit_minutes + IDLE_MINUTES)
