"""Each fault of a spec is one line with place, key, expected value and given value."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from epochcost.errors import InputError, SpecError
from epochcost.specs.loader import check_paths, load_catalogue

if TYPE_CHECKING:
    from conftest import Project
from epochcost.specs.catalogue import KINDS

HARDWARE_TEXT = 'id = "box"\nname = "A cup"\nprovider = "Us"\nsource = "the lid"\n'
HARDWARE = "specs/hardware/box.toml"
PRICE = "specs/prices/box.toml"
MODEL = "specs/models/mlp.toml"
STUDY = "specs/studies/first.toml"
PUBLISHED = "specs/published/paper.toml"

# (file, text, its replacement, the fault after the file's name)
BROKEN = [
    # keys
    (PRICE, "amount =", "amuont =", '5:1: amuont: unknown key; did you mean "amount"?'),
    (HARDWARE, "vcpus = 4", "x = 4", '4:1: x: unknown key; known: "accelerators", '
     '"busy_watts", "cores", "cpu", "detected", "id", "memory_gib", "name", "notes", '
     '"peak_fp32_tflops", "provider", "source", "unconfirmed" and 1 more'),
    (MODEL, "learning_rate", "learning_rat", '13:29: training.optimizer.learning_rat: unknown key; '
     'did you mean "learning_rate"?'),
    (MODEL, '"sgd"', '"sgd", rho = 0.9', '13:29: training.optimizer.rho: unknown key; known: '
     '"learning_rate", "momentum", "name", "nesterov", "weight_decay"'),
    (PRICE, "as_of", "[start]\nas_of", "8:1: start.as_of: unknown key; move it above the first "
     "table"),
    (PRICE, "as_of", "seconds = 90\nas_of", "7:1: seconds: unknown key; move it into the table "
     "start"),
    (PRICE, "as_of", "utilisation = 0.5\nas_of", "7:1: utilisation: unknown key; move it into the "
     "table commitment or owned"),
    (HARDWARE, "vcpus = 4", "gpus = 1", '4:1: gpus: unknown key; did you mean "accelerators"?'),
    (PRICE, "as_of", '"as of"', '7:1: "as of": unknown key; did you mean "as_of"?'),
    (PRICE, 'source = "the list"\n', "", "1:1: source: required key is missing"),
    (MODEL, "learning_rate = 0.1", "momentum = 0.1", "13:1: training.optimizer.learning_rate: "
     "required key is missing"),
    (MODEL, 'name = "sgd", ', "", "13:1: training.optimizer.name: required key is missing"),
    (PUBLISHED, 'hardware = "box"\n', "", "9:3: timings[0].hardware: required key is missing"),
    # types
    (PRICE, "0.90", '"0.90"', '5:1: amount: should be a number, got "0.90"'),
    (PRICE, "0.90", "true", "5:1: amount: should be a number, got true"),
    (PRICE, '"the list"', "7", "6:1: source: should be a text in quotes, got 7"),
    (PRICE, "2026-01-31", '"2026-01-31"', "7:1: as_of: should be a date without quotes, such as "
     '2016-11-01, got "2026-01-31"'),
    (PRICE, "2026-01-31", "2026-01-31T10:00:00", "7:1: as_of: should be a date without quotes, "
     "such as 2016-11-01, got 2026-01-31T10:00:00"),
    (PRICE, "2026-01-31", "1026-01-31", "7:1: as_of: should be in 1950 or later, got 1026-01-31"),
    (HARDWARE, "vcpus = 4", "vcpus = 4.5", "4:1: vcpus: should be a whole number, got 4.5"),
    (HARDWARE, "vcpus = 4", "detected = 1", "4:1: detected: should be true or false, got 1"),
    (STUDY, '["mlp"]', '"mlp"', '3:1: models: should be an array in square brackets, got "mlp"'),
    (STUDY, '["mlp"]', '["mlp", 3]', "3:18: models[1]: should be a text in quotes, got 3"),
    (MODEL, "[[inputs]]", "[inputs]", "7:2: inputs: should be an array in square brackets, got a "
     "table: write its header as [[inputs]]"),
    (MODEL, "[training]", "[[training]]", "9:3: training: should be a table, got an array of 1: "
     "write its header as [training]"),
    (STUDY, '["mlp"]', "{ mlp = 1 }", "3:1: models: should be an array in square brackets, got a "
     "table"),
    (MODEL, "{ classes = 10 }", "10", "12:1: training.target: should be a table, got 10"),
    (MODEL, '{ name = "sgd", learning_rate = 0.1 }', '"sgd"', "13:1: training.optimizer: should be "
     'a table, got "sgd"'),
    (MODEL, '"sgd"', "3", '13:15: training.optimizer.name: should be one of "sgd", "rmsprop", '
     '"adagrad", "adadelta", "adam", "adamw", got 3'),
    # values
    (PRICE, "0.90", "0", "5:1: amount: should be greater than 0, got 0"),
    (PRICE, "0.90", "-0.90", "5:1: amount: should be greater than 0, got -0.90"),
    (PRICE, "0.90", "nan", "5:1: amount: should be a finite number, got nan"),
    (PRICE, "0.90", "-inf", "5:1: amount: should be a finite number, got -infinity"),
    (PRICE, "0.90", "1e99999999999999999999", "5:1: amount: should be a finite number, got "
     "infinity"),
    (PRICE, "0.90", "1e16", "5:1: amount: should be at most 1000000000000000, got 1e+16"),
    (PRICE, "0.90", "0x" + "f" * 5000, "5:1: amount: should be at most 1000000000000000, got a "
     "huge whole number"),
    (PRICE, "0.90", "9" * 5000, "5:10: should have no number of thousands of digits"),
    (PRICE, "0.90", '0.90\nper = "day"', '6:1: per: should be "hour", got "day"'),
    (PRICE, "on-demand", "on-demnd", '3:1: plan: should be one of "on-demand", "spot", '
     '"reserved", "committed-use", "savings-plan", "managed", "marketplace", "owned", got '
     '"on-demnd"; did you mean "on-demand"?'),
    (PRICE, "0.90", '0.90\nbilling = "daily"', '6:1: billing: should be one of "prorated", '
     '"per-second", "whole-hour", "ten-minutes", got "daily"'),
    (PRICE, "0.90", "0.90\nbilling = { increment_seconds = -1 }",
     "6:13: billing.increment_seconds: should be at least 0, got -1"),
    (PRICE, "0.90", "0.90\nbilling = { increment_seconds = 1e-9 }",
     "6:13: billing.increment_seconds: should be 0, or at least 0.001, got 1e-9"),
    (PRICE, "0.90", '0.90\ncurrency = "usd"', "6:1: currency: should be a currency of ISO 4217, "
     'such as USD, got "usd"'),
    (HARDWARE, '"A box"', '" "', '2:1: name: should not be empty, got " "'),
    (HARDWARE, '"Us"', '"Us "', "3:1: provider: should have no space at its start or end, got "
     '"Us "'),
    (HARDWARE, '"A box"', '"A\\u0000box"', '2:1: name: should contain no control characters, got '
     '"A\\u0000box"'),
    (HARDWARE, '"A box"', f'"{"x" * 2001}"', "2:1: name: should have at most 2000 characters, got "
     f'"{"x" * 59}…"'),
    (HARDWARE, '"the lid"', '"ab"', '5:1: source: should have at least 3 characters, got "ab"'),
    (STUDY, '"first"', '"First 1"', "1:1: id: should be an id: lower-case letters, digits, dots, "
     'hyphens and underscores, at most 80, got "First 1"'),
    (MODEL, "[32, 128]", "[]", "14:1: training.batch_sizes: should have at least 1 item, got an "
     "empty array"),
    (MODEL, "[32, 128]", "[32, 32]", "14:1: training.batch_sizes: should name each item once, got "
     "32 twice"),
    (MODEL, "[[inputs]]", '[[inputs]]\nname = "image"\n[[inputs]]', "7:3: inputs: should name "
     'each item once, got "image" twice'),
    (MODEL, "0.1 }", "0.1, momentum = 1 }", "13:50: training.optimizer.momentum: should be less "
     "than 1, got 1"),
    (MODEL, "mlp.onnx", "../mlp.onnx", "5:1: graph: should be the name of an .onnx file in the "
     'folder models/, without a path, got "../mlp.onnx"'),
    (HARDWARE, "vcpus = 4", "memory_gib = 65536", "4:1: memory_gib: should be at most 60000, got "
     "65536"),
    # what a table needs as a whole
    (HARDWARE, "vcpus = 4", "vcpus = 4\ncores = 8", "1:1: should have cores of at most the vcpus, "
     "4"),
    (MODEL, 'name = "image"', 'name = "image"\nlow = 1', "7:3: inputs[0]: should have low below "
     "high"),
    (PRICE, "on-demand", "owned", '1:1: should have the table [owned] with plan = "owned", and '
     "only then"),
    (PRICE, "amount = 0.90\n", "", "1:1: should have amount (rented), the table [owned], or a "
     "component per hour or per run"),
    (PUBLISHED, "epochs = 25\n", 'epochs = 25\n[[timings]]\nid = "one"\nhardware = "box"\n'
     'price = "box-2026"\nbatch_size = 1\nseconds_per_epoch = 1\nepochs = 1\n',
     '9:3: timings: should name each item once, got "one" twice'),
    # references
    (STUDY, '["mlp"]', '["mpl"]', '3:11: models[0]: should be the id of a spec in models/, got '
     '"mpl"; did you mean "mlp"?'),
    (STUDY, '["box"]', '["box", "moon"]', "4:20: hardware[1]: should be the id of a spec in "
     'hardware/, got "moon"; known: "box"'),
    (PRICE, 'hardware = "box"', 'hardware = "bux"', "2:1: hardware: should be the id of a spec in "
     'hardware/, got "bux"; did you mean "box"?'),
    (PUBLISHED, 'model = "mlp"', 'model = "cnn"', "6:1: model: should be the id of a spec in "
     'models/, got "cnn"; known: "mlp"'),
    (PUBLISHED, '"box-2026"', '"box-2025"', "12:1: timings[0].price: should be the id of a spec in "
     'prices/, got "box-2025"; did you mean "box-2026"?'),
    (MODEL, "mlp.onnx", "mpl.onnx", '5:1: graph: should be a file in models/, got "mpl.onnx"; did '
     'you mean "mlp.onnx"?'),
    (MODEL, 'source = "a book"', 'source = "a book"\nunconfirmed = ["training.epoch"]',
     '7:16: unconfirmed[0]: should be a key of this spec, such as source or training.epochs, got '
     '"training.epoch"; did you mean "epochs" or "examples_per_epoch"?'),
    (MODEL, 'source = "a book"', 'source = "a book"\nunconfirmed = ["trainin.epochs"]',
     '7:16: unconfirmed[0]: should be a key of this spec, such as source or training.epochs, got '
     '"trainin.epochs"; did you mean "training"?'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "line"), BROKEN, ids=[row[3] for row in BROKEN])
def test_fault_line(project: Project, name: str, old: str, new: str, line: str) -> None:
    """Each single mistake gives one line, with its place and a message by epochcost."""
    project.edit(name, old, new)
    assert project.faults() == [f"{name}:{line}"]


def test_many_faults_beside_other_specs_are_cut(project: Project) -> None:
    """Only a hundred unknown references are named, since each is compared with all ids."""
    project.edit(STUDY, '["mlp"]', str([f"m{i}" for i in range(5000)]))
    found = project.faults()
    assert len(found) == 101
    assert found[0].endswith(":1:1: more faults between specs: correct these first")


def test_valid_project_has_no_fault(project: Project) -> None:
    """The project that other tests break has no fault."""
    assert project.faults() == []


def test_all_faults_of_all_files_in_one_go(project: Project) -> None:
    """Faults of schema, references and unreadable files are reported together in order."""
    project.edit(STUDY, '["mlp"]', '["mpl"]')
    project.edit(PRICE, "0.90", "0")
    project.edit(PRICE, 'hardware = "box"', 'hardware = "bix"')
    project.write("specs/prices/broken.toml", "id = ")
    found = [line.split(": ")[0] for line in project.faults()]
    assert found == [
        f"{PRICE}:2:1",
        f"{PRICE}:5:1",
        "specs/prices/broken.toml:1:6",
        f"{STUDY}:3:11",
    ]


def test_an_overlooked_file_is_one_fault(project: Project) -> None:
    """A file without the suffix .toml is one fault, and references to its id are none."""
    path = project.root / HARDWARE
    path.rename(path.with_suffix(".TOML"))
    assert project.faults() == [
        'specs/hardware/box.TOML:1:1: should be a .toml file, got the file "box.TOML"'
    ]


def test_file_in_the_folder_of_another_kind(project: Project) -> None:
    """A spec of another kind is one fault, and not one for each of its keys."""
    path = project.write("specs/hardware/cup.toml", (project.root / PRICE).read_bytes())
    advice = "has the keys of a spec in specs/prices: move the file to that folder"
    assert project.faults() == [f"specs/hardware/cup.toml:1:1: {advice}"]
    path.write_text(path.read_text(encoding="utf-8") + "x = 1\n", encoding="utf-8")
    assert len(project.faults()) > 1


def test_duplicate_ids_name_both_places(project: Project) -> None:
    """A duplicate id, as of a copied file, is a fault at both places."""
    project.write("specs/prices/copy.toml", (project.root / PRICE).read_text(encoding="utf-8"))
    demand = 'id: should differ from every other id, got "box-2026", as in'
    assert project.faults() == [
        f"{PRICE}:1:1: {demand} specs/prices/copy.toml:1:1",
        f"specs/prices/copy.toml:1:1: {demand} {PRICE}:1:1",
    ]


def test_published_price_is_of_its_hardware(project: Project) -> None:
    """A timing with another machine's price is a fault at the price."""
    project.write("specs/hardware/cup.toml", HARDWARE_TEXT.replace('"box"', '"cup"'))
    project.edit(PUBLISHED, 'hardware = "box"', 'hardware = "cup"')
    demand = 'timings[0].price: should be a price of "cup", got "box-2026", a price of "box"'
    assert project.faults() == [f"{PUBLISHED}:12:1: {demand}"]


def test_price_of_a_budget_is_of_its_hardware(project: Project) -> None:
    """A limit of a budget with another machine's price is a fault at the price."""
    project.write("specs/hardware/cup.toml", HARDWARE_TEXT.replace('"box"', '"cup"'))
    limit = 'model = "mlp"\ngoal = "epoch"\nat_most = 1\nhardware = "cup"\nprice = "box-2026"\n'
    project.edit(STUDY, '["box"]\n', f'["box"]\n[[budget.limits]]\n{limit}')
    demand = 'budget.limits[0].price: should be a price of "cup", got "box-2026"'
    (fault,) = project.faults()
    assert fault.startswith(f"{STUDY}:10:1: {demand}")


def test_price_per_vcpu_needs_vcpus(project: Project) -> None:
    """A plan per vCPU for a machine of unknown vCPUs is a fault."""
    owned = "[owned]\npurchase = 9\nyears = 4\nutilisation = 1\npower_watts = 9\n"
    project.edit(PRICE, "on-demand", "owned")
    project.edit(PRICE, "amount = 0.90\n", "")
    project.write(
        PRICE,
        (project.root / PRICE).read_text(encoding="utf-8")
        + owned
        + "electricity_per_kwh = 0.2\nper_vcpu = true\n",
    )
    assert project.faults() == []
    project.edit(HARDWARE, "vcpus = 4\n", "")
    demand = 'owned.per_vcpu: should be for hardware with vcpus, or detected, got "box"'
    assert project.faults() == [f"{PRICE}:13:1: {demand}"]
    project.edit(HARDWARE, "source", "detected = true\nsource")
    assert project.faults() == []


def test_a_broken_neighbour_is_no_dangling_reference(project: Project) -> None:
    """A spec that cannot be parsed is one fault, and references to it are none."""
    project.write(HARDWARE, "id = ")
    project.edit(MODEL, "epochs = 20", "epochs = 0")
    assert [line.split(":")[0] for line in project.faults()] == [HARDWARE, MODEL]


def test_graphs_are_not_sought_without_their_folder(project: Project) -> None:
    """Specs without a folder models/ beside them can be checked."""
    (project.root / "models/mlp.onnx").unlink()
    demand = 'graph: should be a file in models/, got "mlp.onnx"'
    assert project.faults() == [f"{MODEL}:5:1: {demand}"]
    (project.root / "models").rmdir()
    assert project.faults() == []


def test_one_file_is_checked_against_the_whole_tree(project: Project) -> None:
    """References of a checked file are resolved. Faults of other files are not shown."""
    project.edit(PRICE, "0.90", "0")
    assert project.faults(STUDY) == []
    assert project.faults(STUDY, "specs/hardware") == []
    assert len(project.faults("specs/prices")) == 1
    assert len(project.faults(".")) == 1
    assert check_paths([Path(STUDY)]).files == (("studies", Path(STUDY)),)


def test_paths_without_specs_are_one_clear_error(project: Project) -> None:
    """A missing path, or a path without specs, is one error."""
    with pytest.raises(InputError, match=r"^nowhere: expected a file or .*: No such file or dir"):
        project.faults("nowhere")
    project.write("specs/README.md", "About the specs.")
    demand = "expected .toml files in folders specs/hardware, specs/prices, "
    with pytest.raises(InputError, match=f"^specs/README.md: {demand}"):
        project.faults("specs/README.md")


def test_catalogue_holds_every_kind(project: Project) -> None:
    """A valid project becomes frozen specs with exact numbers, by kind and id."""
    catalogue = load_catalogue(project.root)
    assert catalogue.price("box-2026").amount == Decimal("0.90")
    assert catalogue.machine("box").vcpus == 4
    assert catalogue.model("mlp").training is not None
    assert catalogue.study("first").models == ("mlp",)
    assert [*catalogue.published] == ["paper"]
    assert catalogue.files["prices/box-2026"] == project.root / PRICE
    assert catalogue.prices_of("box") == (catalogue.price("box-2026"),)
    assert catalogue.graph_path(catalogue.model("mlp")) == project.root / "models/mlp.onnx"


def test_catalogue_raises_every_fault(project: Project) -> None:
    """Loading a project with faults raises all of them."""
    project.edit(PRICE, "0.90", "0")
    project.edit(STUDY, '["mlp"]', '["mpl"]')
    with pytest.raises(SpecError) as caught:
        load_catalogue(project.root)
    assert [str(fault.path) for fault in caught.value.faults] == [PRICE, STUDY]


def test_unknown_ids_name_the_nearest(project: Project) -> None:
    """An unknown id is refused with the nearest known ids."""
    catalogue = load_catalogue(project.root)
    with pytest.raises(InputError, match=r'^unknown model "mpl"; did you mean "mlp"\?$'):
        catalogue.model("mpl")
    with pytest.raises(InputError, match=r'^unknown price "free"; known: "box-2026"$'):
        catalogue.price("free")


MISPLACED = [
    (
        "specs/pricse/x.toml",
        'specs/pricse:1:1: unknown folder or file "pricse"; did you mean "prices"?',
    ),
    (
        "specs/x/x.toml",
        'specs/x:1:1: unknown folder or file "x"; known: '
        + ", ".join(f'"{kind}"' for kind in sorted(KINDS)),
    ),
    (
        "specs/x.toml",
        f"specs/x.toml:1:1: should be in the folder of its kind: {', '.join(KINDS)}",
    ),
    ("specs/prices/x.tml", 'specs/prices/x.tml:1:1: should be a .toml file, got the file "x.tml"'),
    (
        "specs/prices/x.toml/y.toml",
        'specs/prices/x.toml:1:1: should be a .toml file, got the folder "x.toml"',
    ),
    (
        "specs/prices/a/x.TOML",
        'specs/prices/a/x.TOML:1:1: should be a .toml file, got the file "x.TOML"',
    ),
]


@pytest.mark.parametrize(("name", "line"), MISPLACED, ids=[row[0] for row in MISPLACED])
def test_misplaced(project: Project, name: str, line: str) -> None:
    """A file or folder in a wrong place or with a wrong name is one fault."""
    project.write(name, 'id = "x"')
    assert project.faults() == [line]


def test_kind_whose_folder_is_a_link(project: Project) -> None:
    """A kind's folder that is a link is one fault, and references into it are none."""
    (project.root / "specs/hardware").rename(project.root / "elsewhere")
    (project.root / "specs/hardware").symlink_to("../elsewhere")
    demand = "hardware: should be a folder, got a file or a link"
    assert project.faults() == [f"specs/hardware:1:1: {demand}"]


def test_files_beside_the_specs(project: Project) -> None:
    """Markdown, hidden files and editors' backups are ignored."""
    for name in ("README.md", ".hidden", ".git/config", "prices/box.toml~", "prices/.box.swp"):
        project.write(f"specs/{name}", "not TOML")
    assert project.faults() == []


def test_former_kinds_and_keys_are_ignored(project: Project) -> None:
    """Kinds and keys of specs that an earlier version had are ignored."""
    project.write("specs/currencies/euro.toml", 'id = "euro"')
    text = (project.root / PUBLISHED).read_text()
    claim = 'label = "cost", printed = "1.00", unit = "USD", differs = "why"'
    project.write(PUBLISHED, f'{text}claims = [{{ {claim}, formula = {{ name = "cost" }} }}]\n')
    digits = 'id = "digits"\nname = "Digits"\nexample = "a digit"\nshape = "8 x 8"\n'
    files = '[data]\nformat = "csv"\npackage = "x"\nfiles = [{ name = "a.csv", part = "training" }]'
    digits += f'training_examples = 9\nsource = "the web"\n{files}\n'
    project.write("specs/datasets/digits.toml", digits)
    catalogue = load_catalogue(project.root)
    (row,) = catalogue.published["paper"].timings
    assert row.claims[0].label == "cost"
    assert catalogue.dataset("digits").data is not None


def test_a_csv_file_of_no_spec_is_doubted(project: Project) -> None:
    """A CSV file that no spec of its folder names is read by nothing, and check says so."""
    project.write("specs/observations/own.csv", "model,value\n")
    project.write("specs/observations/.hidden.csv", "model,value\n")
    (doubt,) = check_paths([Path("specs")]).doubts
    advice = 'write a .toml file with table = "own.csv"'
    place = "specs/observations/own.csv:1:1"
    assert str(doubt) == f"{place}: no spec in its folder names this file: {advice}"
    for name, doubts in (("", 1), ("own.csv", 0)):
        project.write("specs/observations/own.toml", f'table = "{name}"')
        assert len(check_paths([Path("specs")]).doubts) == doubts
