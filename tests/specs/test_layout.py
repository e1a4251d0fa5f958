"""The layout of specs: one order, one spacing, every comment and every value kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcost.specs.catalogue import KINDS
from epochcost.specs.layout import format_spec
from epochcost.specs.model import Model
from epochcost.specs.price import Price

SPECS = Path(__file__).parents[2] / "specs"
# The tables of a model in their order, each with its keys in theirs.
TABLES = [
    (
        "",
        [
            'id = "m"',
            'name = "M"',
            'task = """\na # no comment\n"""',
            'graph = "m.onnx"',
            "dimensions = { b = 1, a = 2 }",
        ],
    ),
    ("[[inputs]]", ['name = "x"', "low = -1", "high = 1"]),
    ("[[inputs]]", ['name = "y"', "vocabulary = 30_522"]),
    (
        "[training]",
        ['loss = "mse"', 'output = "o"', "batch_sizes = [\n  1, # one\n  2,\n]", "epochs = 1"],
    ),
    ("[training.target]", ["low = 0", "high = 1.50"]),
    ("[training.optimizer]", ['name = "adamw"', "beta2 = 0.9", "weight_decay = 1e-2"]),
    ("[inference]", ["batch_sizes = [1, 8]"]),
]
COMMENTS = re.compile(r"# (?:above|behind|after) \d+")


@st.composite
def untidy(draw: st.DrawFn) -> str:
    """The tables in any order that means the same, with comments, empty lines and loose spaces."""
    count = 0

    def remark(where: str) -> str:
        nonlocal count
        count += 1
        return f"# {where} {count}"

    def lines(header: str, pairs: list[str]) -> list[str]:
        made = [""] * draw(st.integers(0, 3))
        made += [remark("above")] * draw(st.booleans()) + [f"{header} "] * bool(header)
        for pair in draw(st.permutations(pairs)):
            made += draw(st.sampled_from([[], [""], ["", "", remark("above")], [remark("above")]]))
            loose = pair.replace(" = ", draw(st.sampled_from([" = ", "=", "  =   "])), 1)
            made.append(loose + draw(st.sampled_from(["", "  ", f"   {remark('behind')} "])))
        return made + draw(st.sampled_from([[], [""], ["", remark("after"), ""]]))

    first, *others = TABLES
    order = draw(st.permutations(others))
    inputs = iter([table for table in others if table[0] == "[[inputs]]"])
    kept = [next(inputs) if table[0] == "[[inputs]]" else table for table in order]
    text = [line for table in (first, *kept) for line in lines(*table)]
    return draw(st.sampled_from(["\n", "\r\n"])).join(text) + "\n"


@given(untidy())
def test_any_text_is_laid_out_once(text: str) -> None:
    """Values and comments stay, laying out again changes nothing, and the order is the model's."""
    result = format_spec(Model, text)
    assert format_spec(Model, result) == result
    assert tomli.loads(result) == tomli.loads(text)
    assert sorted(COMMENTS.findall(result)) == sorted(COMMENTS.findall(text))
    headers = re.findall(r"^\[.*\]", result, re.M)
    assert headers == [header for header, _ in TABLES if header]
    assert re.findall(r"^(\w+) = ", result, re.M)[:4] == ["id", "name", "task", "graph"]
    assert "\n\n\n" not in result


@settings(max_examples=40)
@given(untidy())
def test_comments_stay_with_their_keys(text: str) -> None:
    """A comment behind a value is behind the same value afterwards."""
    behind = re.compile(r"(\w+)\s*=\s*([^\n#]+?) *(# behind \d+)")
    result = format_spec(Model, text)
    assert sorted(behind.findall(result)) == sorted(behind.findall(text.replace("\r", "")))


def test_committed_specs_are_laid_out() -> None:
    """`epochcost fmt` has nothing to do in this repository."""
    for path in sorted(SPECS.rglob("*.toml")):
        kind = KINDS[path.relative_to(SPECS).parts[0]]
        text = path.read_text("utf-8")
        assert format_spec(kind, text) == text, path


def test_inline_tables_are_ordered_too() -> None:
    """The keys of an optimizer are in the order of that optimizer, not of another one."""
    loose = "[training]\noptimizer={weight_decay=0.1,beta1=0.8,name='adam'}\n"
    tidy = "[training]\noptimizer = { name = 'adam', beta1 = 0.8, weight_decay = 0.1 }\n"
    assert format_spec(Model, loose) == tidy


def test_the_first_lines_stay_on_top() -> None:
    """The schema and the comments above the first key are about the file."""
    text = '#:schema x.json\n# About it.\n\namount = 3\n# its name\nid = "a"\n'
    tidy = '#:schema x.json\n# About it.\n\n# its name\nid = "a"\namount = 3\n'
    assert format_spec(Price, text) == tidy


def test_a_comment_above_a_header_moves_with_it() -> None:
    """What stands apart from a header stays with the table before it."""
    owned, start = "# of owned\n[owned]\npue = 1\n", "# of start\n[start]\nseconds = 1\n"
    text = 'id = "a"\n# of the id\n\n' + owned + "\n" + start
    tidy = 'id = "a"\n# of the id\n\n' + start + "\n" + owned
    assert format_spec(Price, text) == tidy


def test_numbers_and_texts_stay_as_written() -> None:
    """An amount keeps its digits, a text its quotes, an unknown key its place at the end."""
    text = "zeal = 1\nid = 'a'\namount = 0.900\nsku = \"\\u0041\"\nas_of = 2026-01-31\n"
    tidy = "id = 'a'\nsku = \"\\u0041\"\namount = 0.900\nas_of = 2026-01-31\nzeal = 1\n"
    assert format_spec(Price, text) == tidy


def test_text_that_is_no_toml_is_refused() -> None:
    """There is nothing to lay out where nothing can be read."""
    with pytest.raises(ValueError, match="Invalid value"):
        format_spec(Price, "id = \n= 3")
