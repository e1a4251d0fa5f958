"""The specs of the small project for a site, some with hostile text (a table)."""

from __future__ import annotations

# What a name would do if anything on its way read it as HTML, Jinja, Markdown or a script.
HOSTILE = (
    "</title><script>window.hacked=1</script>{{ 7*7 }}{% raise %} **bold** | "
    "[x](javascript:hack()) `code` <img src=x onerror=window.hacked=1> & \"quoted\" 'text' "
    "\u05d0\u05d1\u05d2 12"
)
# The longest text that a spec may hold, without a place to break a line at.
LONG = "m" * 2000
_TOML_HOSTILE = f"'''{HOSTILE}'''"
SPECS = {
    "hardware/local.toml": """
        id = "local"
        name = "This machine"
        provider = "local"
        detected = true
        source = "read when measuring"
    """,
    "hardware/box.toml": f"""
        id = "box"
        name = {_TOML_HOSTILE}
        provider = {_TOML_HOSTILE}
        vcpus = 8
        memory_gib = 16
        cpu = "Some CPU"
        source = {_TOML_HOSTILE}
        notes = {_TOML_HOSTILE}
        accelerators = [{{ name = "Some GPU", memory_gib = 12 }}]
    """,
    "hardware/bare.toml": f"""
        id = "bare"
        name = "Machine without a price"
        provider = "nobody"
        source = "https://example.org/bare_machine_list"
        notes = "{LONG}"
    """,
    "hardware/crate.toml": """
        id = "crate"
        name = "Crate"
        provider = "Cloud"
        vcpus = 4
        memory_gib = 8
        source = "https://example.org/crate"
    """,
    "hardware/shed.toml": """
        id = "shed"
        name = "Shed"
        provider = "Cloud"
        vcpus = 16
        memory_gib = 32
        source = "https://example.org/shed"
    """,
    "prices/shed.toml": """
        id = "shed"
        hardware = "shed"
        plan = "on-demand"
        provider = "Cloud"
        region = "east"
        amount = 6.00
        source = "https://example.org/prices"
        as_of = 2026-07-01
    """,
    "prices/crate.toml": """
        id = "crate"
        hardware = "crate"
        plan = "on-demand"
        provider = "Cloud"
        region = "east"
        amount = 1.20
        source = "https://example.org/prices"
        as_of = 2026-07-01
    """,
    "prices/assumed-local.toml": """
        id = "assumed-local"
        hardware = "local"
        plan = "owned"
        provider = "local"
        assumed = true
        source = "assumed"
        as_of = 2026-11-01
        [owned]
        per_vcpu = true
        purchase = 100
        years = 4
        utilisation = 0.25
        power_watts = 10
        electricity_per_kwh = 0.2
    """,
    "prices/box-2016.toml": f"""
        id = "box-2016"
        hardware = "box"
        plan = "on-demand"
        provider = "Cloud"
        amount = 0.90
        billing = "whole-hour"
        source = {_TOML_HOSTILE}
        as_of = 2016-11-01
    """,
    "prices/box-2026.toml": """
        id = "box-2026"
        hardware = "box"
        plan = "on-demand"
        provider = "Cloud"
        region = "east"
        amount = 0.80
        sustained_use = "gce-n1"
        source = "https://example.org/prices?a=1&b=2"
        as_of = 2026-07-01
    """,
    "models/net.toml": f"""
        id = "net"
        name = {_TOML_HOSTILE}
        task = {_TOML_HOSTILE}
        example = "an image"
        graph = "mnist_mlp.onnx"
        source = "javascript:hack()"
        [[inputs]]
        name = "image"
        [training]
        loss = "softmax_cross_entropy"
        output = "logits"
        target = {{ classes = 10 }}
        optimizer = {{ name = "sgd", learning_rate = 0.1 }}
        batch_sizes = [32, 128]
        examples_per_epoch = 6400
        epochs = 10
        [inference]
        batch_sizes = [1]
    """,
    "models/silent.toml": f"""
        id = "silent"
        name = "Model without a figure"
        task = "classification"
        example = "{LONG}"
        graph = "mnist_mlp.onnx"
        source = "a test"
        [[inputs]]
        name = "image"
        [inference]
        batch_sizes = [1]
    """,
    "published/paper-net.toml": f"""
        id = "paper-net"
        title = {_TOML_HOSTILE}
        authors = {_TOML_HOSTILE}
        year = 2016
        workload = "the net"
        model = "net"
        source = "https://example.org/paper"
        as_of = 2016-11-01
        [[timings]]
        id = "bare"
        hardware = "box"
        framework = "ONNX Runtime 1.0"
        price = "box-2016"
        batch_size = 128
        seconds_per_epoch = 20
        epochs = 10
        [[timings]]
        id = "crate"
        hardware = "crate"
        framework = "ONNX Runtime 1.0"
        batch_size = 128
        seconds_per_epoch = 60
        epochs = 10
        [[timings]]
        id = "shed"
        hardware = "shed"
        framework = "ONNX Runtime 1.0"
        batch_size = 128
        seconds_per_epoch = 8
        epochs = 10
    """,
    "published/paper.toml": """
        id = "paper"
        source_id = "kroutikov-2016"
        title = "A paper"
        authors = "An Author"
        year = 2016
        workload = "a language model"
        source = "https://example.org/paper"
        as_of = 2016-11-01
        [[timings]]
        id = "box"
        hardware = "box"
        price = "box-2016"
        batch_size = 20
        seconds_per_epoch = 428
        steps_per_epoch = 1327
        epochs = 25
        claims = [
          { label = "one epoch", printed = "11", unit = "US cents" },
          { label = "25 epochs take", printed = "2.98", unit = "hours",
            differs = "428 s is rounded" },
          { label = "one epoch alone", printed = "0.90", unit = "USD", shown = "derived" },
          { label = "one batch", printed = "0.5", unit = "seconds", differs = "of another box" },
          { label = "25 epochs, prorated", printed = "2", unit = "USD", relation = "at-least" }
        ]
        [[remarks]]
        said = "The box has 12 CPUs."
        ours = "It has 8."
        price = "box-2016"
        model = "net"
    """,
    "published/paper-hostile.toml": f"""
        id = "paper-hostile"
        source_id = "kroutikov-2016"
        title = "A paper"
        authors = "An Author"
        year = 2016
        workload = {_TOML_HOSTILE}
        source = {_TOML_HOSTILE}
        as_of = 2016-11-01
        notes = {_TOML_HOSTILE}
        [[timings]]
        id = "box"
        name = {_TOML_HOSTILE}
        hardware = "box"
        count = 4
        hours = 79
        confirmed = false
        notes = {_TOML_HOSTILE}
        claims = [
          {{ label = {_TOML_HOSTILE}, printed = "12,571", unit = "USD", differs = {_TOML_HOSTILE},
            price = "box-2026" }}
        ]
        [[claims]]
        label = {_TOML_HOSTILE}
        printed = "10"
        unit = "million USD"
        differs = {_TOML_HOSTILE}
        [[claims]]
        label = "{LONG}"
        printed = "40"
        unit = "thousand USD"
        relation = "at-least"
        [[remarks]]
        said = {_TOML_HOSTILE}
        ours = {_TOML_HOSTILE}
    """,
}
