"""Damage specs in a way that follows from a number: hostile texts, extreme numbers, other types.

``fuzzing_specs`` checks and builds the damaged specs.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli
import tomlkit
import tomlkit.exceptions

from epochcost.specs.base import ordered_keys_of
from epochcost.specs.catalogue import KINDS

ROOT = Path(__file__).parents[1]
# Specs of this project that together have every key that any has; what they name comes with them.
_REAL = {
    "datasets": "cifar-10 digits markov-text mnist shakespeare-characters textured-shapes",
    "devices": "geforce-gtx-1080-ti l4",
    "hardware": "c4.8xlarge cloud-ml-basic-gpu g6.12xlarge gcp-tpu-v2-8 gcp-v100 lambda-1x-gh200",
    "models": "bert-1.5b chinchilla cifar10-resnet44 elmo gpt2-decoder imdb-bidirectional-lstm "
    "lstm-char-cnn-small markov-gru minilm-l6-pairs resnet50-fine-tune-head transformer-base",
    "observations": "mlperf-inference tensorflow-2017",
    "prices": "a2-highgpu-1g-committed-use-1y-2024-06 assumed-server-8x-a100-80gb "
    "assumed-spot-a2-highgpu-1g cloud-ml-basic-gpu-managed-2018-01 n1-highcpu-16-spot-2017-07 "
    "p4d.24xlarge-on-demand-2022-10 rescale-worker-on-demand-2016-11",
    "published": "ai21-2020 kroutikov-2016 malta-2019 strubell-2019 strubell-2019-project",
    "replays": "made-three-zones",
    "studies": "one-gpu-precisions one-gpu-tokens starter token-requests-fp32 two-vcpus",
}
_MORE = {
    "grids/here": """
        id = "here"
        name = "Here"
        kg_co2e_per_kwh = 0.05
        year = 2023
        source = "a table"
    """,
    "datasets/digits": """
        id = "digits"
        name = "Digits"
        example = "an image"
        shape = "28 x 28"
        training_examples = 60_000
        held_out_examples = 10_000
        classes = 10
        source = "a count"
    """,
    "apis/somewhere": """
        id = "somewhere"
        name = "A model"
        provider = "Somewhere"
        input_per_million = 1.25
        cached_input_per_million = 0.25
        output_per_million = 10
        as_of = 2025-10-01
        source = "a list"
    """,
    "studies/brief": """
        id = "brief"
        name = "Brief"
        models = ["net"]
        hardware = ["local"]
        [budget]
        limits = [{ model = "net", goal = "epoch", at_most = 0.01 }]
    """,
}
# Each would do something, or stand out, wherever it were read as more than text.
_HOSTILE = (
    *("<hax>", "</title><script>hax()</script>", "<img src=x onerror=hax()>", "<svg onload=hax()>"),
    *("</template><script>hax()</script>", "<a href=javascript:hax()>hax</a>", "<base href=//hax>"),
    *(
        "<meta http-equiv=refresh content=0;//hax>",
        "<style>hax</style>",
        "<?php hax ?>",
        "</style>",
    ),
    *('" onmouseover=hax() x="', "' onmouseover=hax() x='", "]]>", "-->", "<!-- hax", "</script>"),
    *("{{ 6007*7001 }}", "{% raise %}", "{# hax #}", "${hax}", "datum.hax", "<javascript:hax()>"),
    *("**hax**", "_hax_", "`hax`", "~~hax~~", "^^hax^^", "^hax^", "==hax==", "++hax++", ":smile:"),
    *("[hax](javascript:hax())", "![hax](javascript:hax())", "[hax]: javascript:hax()", "[hax]"),
    *("{: onclick=hax() .hax }", "*[a]: hax", "[^1]: hax", "[^1]", '--8<-- "/etc/passwd"', "$hax$"),
    *("&lt;script&gt;hax()&lt;/script&gt;", "&#60;img src=x onerror=hax()&#62;", "&#64;hax", "\\`"),
    *("\n\n# hax\n\n- hax\n", "\n---\nhide: hax\n---\n", "| hax | hax |", "\\", "'''", '"""', "\t"),
    *("\u2028", "\u202ehax\u202c", "\u200b", "\ufeff", "\u05d0\u05d1", "\0", "\x1b[31mhax", "\r\n"),
    *('=HYPERLINK("hax")', " =hax", "\u00a0+hax", "@hax #1 GH-1 us/costs#1", "%0a%0dhax"),
    *("javascript:hax()", "java\nscript:hax()", "data:text/html,<script>hax()</script>"),
    *('https://hax.example/"onclick=hax()', "https://[hax", "//hax.example", "x" * 3000),
    *("x" * 250, "x" * 2000, "\u00e9" * 130, "\u963f\u91cc", "x/" * 100, "../x", ".", "-"),
    "http://hax@hax.example/<b>?a=1&b=2#<i>",
)
_NUMBERS = (
    0, 1, -1, 2, 7, 1e-12, 0.5, 1e15, 1e-300, 1e308, -0.0, float("inf"), float("nan"), 2**31, 2**53,
    2**63, 10**20, 365, 1000, 1_000_000,
)  # fmt: skip
_DATES = (dt.date.min, dt.date.max, dt.date(1970, 1, 1), dt.date(2016, 11, 1), dt.date(2026, 7, 1))
Place = tuple[Any, Any, tuple[str, ...]]


def corpus(folder: Path) -> list[tuple[str, str, str]]:
    """The specs of a project to damage, as kind, id and text; missing kinds are added."""
    for name, text in _MORE.items():
        path = folder / "specs" / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    _copy_real(folder / "specs")
    paths = sorted((folder / "specs").rglob("*.toml"))
    return [(path.parent.name, path.stem, path.read_text("utf-8")) for path in paths]


def _copy_real(specs: Path) -> None:
    """Copy specs of this repository, the specs that they name, and the tables of their kinds."""
    real = ROOT / "specs"
    left = {real / kind / f"{name}.toml" for kind in _REAL for name in _REAL[kind].split()}
    copied: set[Path] = set()
    while left:
        file = left.pop()
        copied.add(file)
        copy = specs / file.relative_to(real)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(file, copy)
        named = set(re.findall(r'"([a-z0-9][a-z0-9._-]*)"', file.read_text("utf-8")))
        ids = {f"{kind}/{name}.toml" for kind in KINDS for name in named}
        left |= {path for name in ids if (path := real / name).is_file()} - copied
    for table in real.rglob("*.csv"):
        if (specs / table.parent.name).is_dir():
            shutil.copyfile(table, specs / table.relative_to(real))


def damaged(specs: Sequence[tuple[str, str, str]], number: int) -> tuple[str, bytes]:
    """The name and contents of the file with this number, equal at each call."""
    rng = random.Random(number)
    kind, identifier, text = rng.choice(specs)
    own = f"{identifier}-{number}"
    tree = tomli.loads(text)
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        places = list(_places(tree, ()))
        if places:
            rng.choice((_hostile, _hostile, _hostile, _number, _key, _other))(
                rng.choice(places), kind, rng
            )
    if "id" in tree and tree["id"] == identifier:
        tree["id"] = own
    try:
        contents = tomlkit.dumps(tree).encode()
    except (ValueError, TypeError, UnicodeError, tomlkit.exceptions.TOMLKitError):
        contents = text.encode()  # TOML has no such value
    if rng.random() < 0.05:
        at = rng.randrange(len(contents))
        contents = contents[:at] + rng.randbytes(rng.choice((0, 1, 4))) + contents[at + 1 :]
    return f"{kind}/{own}.toml", contents


def _places(value: Any, path: tuple[str, ...]) -> Any:
    """Every entry of tables and arrays: its holder, its key, and the path of keys to the holder."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in list(entries):
        yield value, key, path
        if isinstance(one, dict | list):
            yield from _places(one, (*path, key) if isinstance(key, str) else path)


def _random_text(rng: random.Random) -> str:
    parts = rng.choices(_HOSTILE, k=rng.choice((1, 1, 2, 3, 6)))
    return rng.choice(("", " ", "\n", "a ")).join(parts)


def _hostile(place: Place, _: str, rng: random.Random) -> None:
    """Replace or extend a text by hostile text."""
    holder, key, _ = place
    if isinstance(holder[key], str) or rng.random() < 0.1:
        holder[key] = (
            _random_text(rng) if rng.random() < 0.8 else f"{holder[key]}{_random_text(rng)}"
        )


def _number(place: Place, _: str, rng: random.Random) -> None:
    holder, key, _ = place
    if isinstance(holder[key], int | float) or rng.random() < 0.1:
        holder[key] = rng.choice(_NUMBERS)
    elif isinstance(holder[key], dt.date):
        holder[key] = rng.choice(_DATES)


def _key(place: Place, kind: str, rng: random.Random) -> None:
    """Add or remove a key that such a table may have, or an item of an array."""
    holder, key, path = place
    if isinstance(holder, list):
        holder.append(holder[key]) if rng.random() < 0.5 else holder.pop(key)
    elif rng.random() < 0.3:
        del holder[key]
    else:
        known = [*ordered_keys_of(KINDS[kind], path), "hax"]
        value = rng.choice(
            (_random_text(rng), rng.choice(_NUMBERS), rng.choice(_DATES), True, [], {})
        )
        holder[rng.choice(known)] = value


def _other(place: Place, _: str, rng: random.Random) -> None:
    """Replace a value by one of another type."""
    holder, key, _ = place
    one = holder[key]
    holder[key] = rng.choice(
        ([one], {"hax": one}, str(one), [], {}, True, _random_text(rng), [_random_text(rng)])
    )
