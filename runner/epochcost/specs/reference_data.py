"""Reference data beside machines, prices and models: currencies, electricity grids, data sets.

A grid has the figures of a source for a year; a data set is described, with its files if trainings
can read them, but holds no examples.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from epochcost.specs.base import (
    NamedSpec,
    NonNegative,
    Notes,
    Positive,
    PositiveInt,
    Source,
    Text,
    Unconfirmed,
    matching,
)
from epochcost.specs.data import Files, Generated

# The codes of national currencies in ISO 4217 as of 2025: funds, metals and test codes left out.
_CODES = """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD
    CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP
    GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD
    KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN
    NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP
    SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES
    VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
    """
ISO_4217 = frozenset(_CODES.split())


def _known(code: str) -> str:
    if code not in ISO_4217:
        raise ValueError("should be a currency of ISO 4217, such as USD")
    return code


Currency = Annotated[
    str,
    matching(r"[A-Z]{3}", "a currency of three capitals, such as USD"),
    AfterValidator(_known),
]


class Grid(NamedSpec):
    """The carbon intensity of an electricity grid."""

    name: Text = Field(
        description="The country or region that the grid supplies.", examples=["France"]
    )
    kg_co2e_per_kwh: NonNegative = Field(
        description=(
            "What a kilowatt-hour at the building's meter emits, in kg of CO2 equivalent."
        ),
        examples=[0.056],
    )
    pue: Annotated[Positive, Field(ge=1)] | None = Field(
        None,
        description="Power usage effectiveness, where the source states one with the grid.",
        examples=[1.58],
    )
    year: Annotated[int, Field(ge=1950, le=2100)] = Field(
        description="The year of the value.", examples=[2023]
    )
    source: Source
    notes: Notes | None = None
    unconfirmed: Unconfirmed = ()


class Dataset(NamedSpec):
    """One data set: what an example is and how many there are."""

    name: Text = Field(description="What people call it.", examples=["CIFAR-10"])
    example: Text = Field(
        description="What one example is, in words.",
        examples=["a colour photograph of one of ten things"],
    )
    shape: Text = Field(
        description="How large one example is, in words.", examples=["32 x 32 pixels of 3 channels"]
    )
    training_examples: PositiveInt = Field(description="Examples to learn from.", examples=[50000])
    held_out_examples: PositiveInt | None = Field(
        None, description="Examples to test with.", examples=[10000]
    )
    classes: Annotated[int, Field(ge=2, le=10**7)] | None = Field(
        None, description="Classes, where examples have one.", examples=[10]
    )
    licence: Text | None = Field(
        None, description="The licence, by its SPDX name where it has one.", examples=["MIT"]
    )
    address: Text | None = Field(None, description="Where people read of it and get it.")
    data: Files | None = Field(None, description="Its files, where trainings can read them.")
    generated: Generated | None = Field(None, description="How it is made up, where it is.")
    source: Source
    notes: Notes | None = None
    unconfirmed: Unconfirmed = ()

    @model_validator(mode="after")
    def _one_origin(self) -> Dataset:
        if self.data is not None and self.generated is not None:
            raise ValueError("should have either data or generated")
        parts = {file.part for file in self.data.files} if self.data else {"both"}
        if "both" in parts and (self.data or self.generated) and self.held_out_examples is None:
            raise ValueError("should have held_out_examples, which are split off")
        return self
