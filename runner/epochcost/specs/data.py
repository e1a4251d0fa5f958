"""Where a data set's examples come from: files of a published format, or a generator of ours.

Specs say what a file is and hold none; how it is read is left to ``train.readers``, what a
generator draws to ``train.generated``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import (
    FROM_LIST,
    Positive,
    PositiveInt,
    Share,
    Spec,
    Text,
    distinct,
    matching,
)

DataFormat = Literal["idx", "cifar-binary", "text", "csv", "numpy"]
FileName = Annotated[
    str, matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}", "a file's name without a folder")
]


class DataFile(Spec):
    """One file of a data set; what has no size or hash in a source leaves it out."""

    name: FileName = Field(description="The file's name.", examples=["train-labels-idx1-ubyte.gz"])
    part: Literal["training", "held-out", "both"] = Field(
        description="What its examples are for; `both` is split as the data set says."
    )
    holds: Literal["examples", "labels", "both"] = Field(
        "both", description="What of each example it has."
    )
    members: Annotated[tuple[FileName, ...], FROM_LIST] = Field(
        (),
        description="Which members of an archive are read, in order; of an .npz the examples' "
        "array and the labels'.",
        examples=[["data_batch_1.bin"]],
    )
    held_out_members: Annotated[tuple[FileName, ...], FROM_LIST] = Field(
        (),
        description="Which members are held out, where one archive has both parts; `members` are "
        "then those to train on.",
        examples=[["test_batch.bin"]],
    )
    size_bytes: PositiveInt | None = Field(None, description="Its length.", examples=[28881])
    sha256: Annotated[str, matching(r"[0-9a-f]{64}", "a SHA-256 in 64 hexadecimal digits")] | (
        None
    ) = Field(None, description="Its SHA-256; left out where no source has it.")
    address: Annotated[str, matching(r"https?://\S{3,500}", "an address of the web")] | None = (
        Field(None, description="Where its publisher offers it, or who hosts it with their leave.")
    )

    @model_validator(mode="after")
    def _two_parts_in_one(self) -> DataFile:
        if self.held_out_members and not (self.members and self.part == "both"):
            raise ValueError('should have members and part = "both" beside held_out_members')
        return self

    def by_part(self) -> tuple[DataFile, ...]:
        """The file as two, one for each part, where its members say which is which."""
        if not self.held_out_members:
            return (self,)
        rest = {"held_out_members": ()}
        return (
            self.model_copy(update={**rest, "part": "training"}),
            self.model_copy(update={**rest, "part": "held-out", "members": self.held_out_members}),
        )


class Files(Spec):
    """Files at hand, in the folder that is named as the data set is."""

    format: DataFormat = Field(description="The format of every file.")
    files: Annotated[
        tuple[DataFile, ...], FROM_LIST, Field(min_length=1), distinct(lambda file: file.name)
    ] = Field(description="The files, in the order in which their examples count.")
    package: Text | None = Field(
        None,
        description="The folder of an installed Python package that has them.",
        examples=["sklearn/datasets/data"],
    )
    shape: Annotated[tuple[PositiveInt, ...], FROM_LIST] = Field(
        (), description="The shape of an example where the format has none.", examples=[[8, 8]]
    )
    largest_value: Positive = Field(
        Decimal(255), description="The largest number of an example; 0 is the least."
    )
    stride: PositiveInt | None = Field(
        None,
        description="Characters from one example of a text to the next; as many as it has where "
        "this is left out.",
        examples=[3],
    )


class Generated(Spec):
    """Examples that a seed makes up, whose best attainable result is known."""

    generator: Literal["markov-text", "textured-shapes"] = Field(
        description="Characters of a Markov chain of order 2, or coloured images of shapes."
    )
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(0, description="What all is drawn from.")
    characters: Annotated[int, Field(ge=2, le=256)] | None = Field(
        None, description="Of the chain: how many different characters.", examples=[16]
    )
    concentration: Positive = Field(
        Decimal("0.3"), description="Of the chain: the smaller, the less entropy it has."
    )
    side: Annotated[int, Field(ge=12, le=512)] | None = Field(
        None, description="Of images: height and width in pixels.", examples=[32]
    )
    channels: Literal[1, 3] = Field(3, description="Of images: grey or colour.")
    wrong_labels: Annotated[Share, Field(lt=1)] = Field(
        Decimal(0),
        description="Of images: the share of labels that name another class, held-out ones too.",
        examples=[0.05],
    )

    @model_validator(mode="after")
    def _has_what_it_draws(self) -> Generated:
        key = "characters" if self.generator == "markov-text" else "side"
        if getattr(self, key) is None:
            raise ValueError(f"should have {key}, which {self.generator} demands")
        return self
