"""Targets: machines where `epochcost launch` measures, and the engine that reaches them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from epochcost.specs.base import FROM_LIST, Identifier, NamedSpec, Notes, Spec, Text
from epochcost.specs.study import Provider

# No option of ssh, and no path of rsync.
HOST = r"^[^-\s:][^\s:]*$"
Minutes = Annotated[int, Field(ge=1, le=10_000)]


class Ssh(Spec):
    """A machine that the system's `ssh` reaches, with the keys and settings of the user."""

    # Whether the machine is paid from its start to its end, or only while a job runs.
    held: ClassVar[bool] = True
    idle_minutes: ClassVar[int] = 5
    jobs: ClassVar[int] = 1
    name: Literal["ssh"] = Field(description="The system's `ssh` and `rsync`.")
    host: Text = Field(
        pattern=HOST,
        description="The host as `ssh` knows it; an alias of its configuration, too.",
        examples=["alice@gpu-box"],
    )


class Slurm(Spec):
    """Nodes of a Slurm cluster."""

    held: ClassVar[bool] = False
    idle_minutes: ClassVar[int] = 5
    name: Literal["slurm"] = Field(description="A Slurm cluster.")
    login: Text | None = Field(
        None,
        pattern=HOST,
        description="The login node, as `ssh` knows it; by default, this machine submits jobs.",
        examples=["alice@login"],
    )
    partition: Text | None = Field(None, description="The partition.", examples=["gpu"])
    constraint: Text | None = Field(None, description="Features of the nodes.", examples=["a100"])
    gres: Text | None = Field(None, description="Generic resources of a job.", examples=["gpu:1"])
    account: Text | None = Field(None, description="The account to charge.", examples=["lab"])
    jobs: Annotated[int, Field(ge=1, le=1000)] = Field(
        1, description="Most jobs in the queue at once; each has its node alone.", examples=[2]
    )


class Sky(Spec):
    """A machine that SkyPilot rents or finds."""

    held: ClassVar[bool] = True
    jobs: ClassVar[int] = 1
    name: Literal["sky"] = Field(description="SkyPilot.")
    infra: Text = Field(
        description="SkyPilot's infrastructure: cloud, region and zone.", examples=["aws/us-east-1"]
    )
    instance_type: Text | None = Field(
        None, description="The provider's instance type.", examples=["g6.xlarge"]
    )
    accelerators: Text | None = Field(
        None, description="Accelerators by SkyPilot's name.", examples=["L4:1"]
    )
    spot: bool = Field(
        False, description="Whether to rent a spot machine; the price must be of such a plan, too."
    )
    idle_minutes: Minutes = Field(
        10,
        description=(
            "Time from the limit of the last cell until the machine ends itself, even without the"
            " launcher, in minutes."
        ),
    )


EngineTable = Annotated[Ssh | Slurm | Sky, Field(discriminator="name")]


class Target(NamedSpec):
    """A machine where `epochcost launch` measures cells of a study."""

    engine: EngineTable = Field(description="How to reach the machine.")
    hardware: Identifier = Field(
        description="The machine, by id in hardware/.", examples=["g6.xlarge"]
    )
    price: Identifier = Field(
        description="The price plan that the use costs, by id; a spot plan rents a spot machine.",
        examples=["g6.xlarge-on-demand-2026-07"],
    )
    provider: Provider = Field("cpu", description="The execution provider.", examples=["cuda"])
    limit_minutes: Minutes = Field(
        60, description="Time after which a cell is ended on the machine, in minutes."
    )
    setup_minutes: Minutes = Field(
        15, description="Most time to start and install the machine, in minutes."
    )
    retries: Annotated[int, Field(ge=0, le=10)] = Field(
        1, description="How often a cell is repeated after its machine was lost."
    )
    runtime: Text | None = Field(
        None,
        description="The package of ONNX Runtime there, if not that of the extra `run` on Linux.",
        examples=["onnxruntime==1.31.1"],
    )
    setup: Annotated[tuple[Text, ...], FROM_LIST] = Field(
        (),
        description="Shell commands that run there before the installation and before each run.",
        examples=[["module load python/3.12"]],
    )
    folder: Text = Field(
        ".cache/epochcost", description="Folder on the machine, from the user's home."
    )
    secrets: Annotated[tuple[Text, ...], FROM_LIST] = Field(
        (),
        description="Names of environment variables of this machine that the run there needs.",
        examples=[["HF_TOKEN"]],
    )
    notes: Notes | None = None

    @property
    def kind(self) -> tuple[str, str]:
        """The machine and the provider, which decide the cells that the target measures."""
        return self.hardware, self.provider

    @property
    def attempt_seconds(self) -> int:
        """Longest paid time of an attempt at a cell: set-up, cell, and collection or idle time."""
        return 60 * (self.setup_minutes + self.limit_minutes + self.engine.idle_minutes)
