"""Specs of electricity grids, data sets and replayed jobs."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import (
    Array,
    Identifier,
    NonNegative,
    PastYear,
    Positive,
    PositiveInt,
    Pue,
    Share,
    SourcedSpec,
    Spec,
    TableName,
    Text,
    distinct,
    key,
    matching,
    optional,
)


class Grid(SourcedSpec):
    """The carbon intensity of an electricity grid, as a source states it."""

    name: Text = key("The country or region that the grid supplies.", "France")
    # No grid emits more than 2 kg: a larger number is in grams.
    kg_co2e_per_kwh: Annotated[NonNegative, Field(le=5)] = key(
        "Emission of a kilowatt-hour at the building's meter, in kg of CO2 equivalent.", 0.056
    )
    pue: Pue | None = optional("Power usage effectiveness, if the source states it.", 1.58)
    year: PastYear = key("Year of the carbon intensity.", 2023)


DataFormat = Literal["idx", "cifar-binary", "text", "csv"]
FileName = Annotated[
    str, matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}", "a file's name without a folder")
]


class DataFile(Spec):
    """A file of a data set, with its size and hash if a source states them."""

    name: FileName = key("The file's name.", "train-labels-idx1-ubyte.gz")
    part: Literal["training", "held-out", "both"] = key(
        "Use of the file's examples; with `both`, `held_out_examples` of them are held out."
    )
    holds: Literal["examples", "labels", "both"] = key(
        "Whether the file has the examples, their labels, or both.", default="both"
    )
    members: Array[FileName] = key(
        "Members to read from an archive, in this order.", ["data_batch_1.bin"], default=()
    )
    held_out_members: Array[FileName] = key(
        "Members with held-out examples; `members` is for training.", ["test_batch.bin"], default=()
    )
    size_bytes: PositiveInt | None = optional("Length of the file, in bytes.", 28881)
    sha256: Annotated[str, matching(r"[0-9a-f]{64}", "a SHA-256 in 64 hexadecimal digits")] | (
        None
    ) = optional("SHA-256 of the file, if a source states it.")
    address: Annotated[str, matching(r"https?://\S{3,500}", "an address of the web")] | None = (
        optional("Address at the publisher, or at a host that the publisher permits.")
    )

    @model_validator(mode="after")
    def _two_parts_in_one(self) -> DataFile:
        if self.held_out_members and not (self.members and self.part == "both"):
            raise ValueError('should have members and part = "both" with held_out_members')
        return self

    def by_part(self) -> tuple[DataFile, ...]:
        """Split an archive with ``held_out_members`` into a training file and a held-out file.

        Both have the name of the archive. Any other file is returned unchanged, as the only item.
        """
        if not self.held_out_members:
            return (self,)
        rest = {"held_out_members": ()}
        return (
            self.model_copy(update={**rest, "part": "training"}),
            self.model_copy(update={**rest, "part": "held-out", "members": self.held_out_members}),
        )


class Files(Spec):
    """The files of a data set, in a local folder with the data set's name."""

    format: DataFormat = key("The format of every file.")
    files: Annotated[Array[DataFile], Field(min_length=1), distinct(lambda file: file.name)] = key(
        "The files, in the order of their examples."
    )
    shape: Array[PositiveInt] = key(
        "The shape of an example, if files of this format do not state it.", [8, 8], default=()
    )
    largest_value: Positive = key(
        "Largest possible number in an example; the smallest is 0.", default=Decimal(255)
    )


class Generated(Spec):
    """Settings to generate the examples of a data set.

    The settings determine the best loss or accuracy that any model can reach on the examples.
    """

    generator: Literal["markov-text", "textured-shapes"] = key(
        "Kind of data: text of a Markov chain of order 2, or coloured images of shapes."
    )
    seed: Annotated[int, Field(ge=0, lt=2**32)] = key("Seed of all random numbers.", default=0)
    characters: Annotated[int, Field(ge=2, le=256)] | None = optional(
        "Markov chain: number of different characters.", 16
    )
    concentration: Positive = key(
        "Markov chain: a smaller value gives text of less entropy.", default=Decimal("0.3")
    )
    side: Annotated[int, Field(ge=12, le=512)] | None = optional("Images: side in pixels.", 32)
    channels: Literal[1, 3] = key("Images: 1 for grey, 3 for colour.", default=3)
    wrong_labels: Annotated[Share, Field(lt=1)] = key(
        "Images: the share of wrong labels, in held-out examples too.", 0.05, default=Decimal(0)
    )

    @model_validator(mode="after")
    def _has_what_it_draws(self) -> Generated:
        needed = "characters" if self.generator == "markov-text" else "side"
        if getattr(self, needed) is None:
            raise ValueError(f"should have {needed}, which {self.generator} needs")
        return self


class Dataset(SourcedSpec):
    """A data set: the type, number and origin of its examples."""

    name: Text = key("Name for people.", "CIFAR-10")
    example: Text = key("Description of an example.", "a colour photograph of one of ten things")
    shape: Text = key("Size of an example, described in words.", "32 x 32 pixels of 3 channels")
    training_examples: PositiveInt = key("Number of training examples.", 50000)
    held_out_examples: PositiveInt | None = optional("Number of held-out examples.", 10000)
    classes: Annotated[int, Field(ge=2, le=10**7)] | None = optional(
        "Number of classes, if the examples have classes.", 10
    )
    licence: Text | None = optional("The licence, as an SPDX identifier if it has one.", "MIT")
    address: Text | None = optional("Web page of the data set.")
    data: Files | None = optional("The files of the data set, if `epochcost train` can read them.")
    generated: Generated | None = optional("Settings to generate the examples, instead of files.")

    @model_validator(mode="after")
    def _one_origin(self) -> Dataset:
        if self.data is not None and self.generated is not None:
            raise ValueError("should have either data or generated")
        parts = {file.part for file in self.data.files} if self.data else {"both"}
        if "both" in parts and (self.data or self.generated) and self.held_out_examples is None:
            raise ValueError("should have held_out_examples, to split them off")
        return self


class ReplayedJob(SourcedSpec):
    """A training on spot machines whose prices and availability come from a trace of the past.

    The training saves checkpoints and may move between zones.
    """

    name: Text = key("Name for people.", "Three zones, made")
    trace: TableName = key("CSV file with prices, in this folder.", "made-three-zones.csv")
    model: Identifier = key("The model to train, by id.", "resnet50")
    hardware: Identifier = key("The machine whose training time is used, by id.", "a2-highgpu-1g")
    deadline_hours: Positive | None = optional("Longest time from start to end, in hours.", 48)
    state_gb: Positive | None = optional(
        "Size of a checkpoint, in GB; by default, of parameters and optimizer state.", 1.3
    )
    disk_gb_per_second: Positive = key("Speed of saving, in GB/s.", default=Decimal("0.5"))
    network_gb_per_second: Positive = key(
        "Speed of moving a checkpoint to another zone, in GB/s.", default=Decimal("0.1")
    )
    transfer_price_per_gb: NonNegative = key("Price of a GB to another zone.", default=Decimal(0))
    restart_seconds: NonNegative = key(
        "Time from a machine's start to the first step, in seconds.", default=Decimal(300)
    )
    interval_seconds: Positive | None = optional(
        "Time of work between checkpoints, in seconds; Daly's optimum by default."
    )
    licence: Text | None = optional("The trace's licence, as an SPDX identifier if it has one.")
