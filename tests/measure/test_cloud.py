"""Instances of three clouds, from local HTTP servers; without a cloud nothing is requested."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from epochcost.measure.cloud import (
    PATIENCE_SECONDS,
    instance,
    suspected_cloud,
)
from epochcost.results.environment import CloudProvider, Instance

# By method and path: the header that the service demands, and its answer.
Answers = dict[tuple[str, str], tuple[tuple[str, str], str]]
_TOKEN = ("X-aws-ec2-metadata-token", "t0ken")
_DOCUMENT = {
    "instanceType": "g5.xlarge",
    "region": "us-east-1",
    "availabilityZone": "us-east-1a",
    "accountId": "123456789012",
}
EC2: Answers = {
    ("PUT", "/latest/api/token"): (("X-aws-ec2-metadata-token-ttl-seconds", "60"), "t0ken"),
    ("GET", "/latest/dynamic/instance-identity/document"): (_TOKEN, json.dumps(_DOCUMENT)),
}
_GOOGLE = ("Metadata-Flavor", "Google")
_KEYS = "/computeMetadata/v1/instance"
GCE: Answers = {
    ("GET", f"{_KEYS}/machine-type"): (_GOOGLE, "projects/42/machineTypes/n1-standard-8"),
}
_COMPUTE = {"vmSize": "Standard_NC4as_T4_v3", "location": "westeurope", "zone": "", "priority": ""}
AZURE: Answers = {
    ("GET", "/metadata/instance/compute?api-version=2021-02-01"): (
        ("Metadata", "true"),
        json.dumps(_COMPUTE),
    )
}


@contextmanager
def service(answers: Answers) -> Iterator[str]:
    """A metadata service; yields its base address."""

    class Answering(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            demanded, text = answers.get((self.command, self.path), (("", ""), None))
            known = text is not None and self.headers.get(demanded[0]) == demanded[1]
            self.send_response(200 if known else 401)
            self.end_headers()
            self.wfile.write((text if known and text else "no").encode())

        do_GET = do_PUT = _answer  # noqa: N815 - the names are http.server's

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with _served(ThreadingHTTPServer(("127.0.0.1", 0), Answering)) as base:
        yield base


@contextmanager
def _served(server: ThreadingHTTPServer) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (EC2, Instance(provider="AWS EC2", type="g5.xlarge")),
        (GCE, Instance(provider="Google Compute Engine", type="n1-standard-8")),
        (AZURE, Instance(provider="Azure", type="Standard_NC4as_T4_v3")),
    ],
)
def test_each_service_names_its_instance(answers: Answers, found: Instance) -> None:
    """Each request has the headers that its service requires, and gets the instance."""
    with service(answers) as base:
        assert instance(found.provider, base) == (found, None)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({}, "status 401"),
        (
            {**EC2, ("GET", "/latest/dynamic/instance-identity/document"): (_TOKEN, "<html>")},
            "read",
        ),
        ({**EC2, ("GET", "/latest/dynamic/instance-identity/document"): (_TOKEN, "{}")}, "read"),
        ({**EC2, ("GET", "/latest/dynamic/instance-identity/document"): (_TOKEN, "[1]")}, "read"),
    ],
)
def test_answers_of_another_kind_are_a_reason(answers: Answers, words: str) -> None:
    """A refusal, a proxy's page or an empty document leaves the instance unknown, with a reason."""
    with service(answers) as base:
        found, reason = instance("AWS EC2", base)
    assert found is None
    assert reason is not None
    assert words in reason


def test_a_service_that_drips_is_given_up() -> None:
    """A service that sends a byte at a time is given up after the limit of the whole wait."""
    ended = threading.Event()

    class Dripping(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            while not ended.wait(0.05):
                self.wfile.write(b" ")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with _served(ThreadingHTTPServer(("127.0.0.1", 0), Dripping)) as base:
        begun = time.monotonic()
        found, reason = instance("Azure", base)
        waited = time.monotonic() - begun
        ended.set()
    assert found is None
    assert reason is not None
    assert "no answer within" in reason
    # The wait ends by its own limit: it is not a measure of speed.
    assert waited >= PATIENCE_SECONDS


@pytest.mark.parametrize(
    ("files", "cloud"),
    [
        ({}, None),
        ({"dmi/sys_vendor": "Dell Inc."}, None),
        ({"dmi/sys_vendor": "Amazon EC2"}, "AWS EC2"),
        ({"dmi/sys_vendor": "Xen", "dmi/bios_version": "4.11.amazon"}, "AWS EC2"),
        ({"hypervisor/uuid": "ec2e1916-9099-7caf-fd21-012345abcdef"}, "AWS EC2"),
        ({"dmi/product_name": "Google Compute Engine"}, "Google Compute Engine"),
        ({"dmi/chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"}, "Azure"),
        ({"dmi/sys_vendor": "Microsoft Corporation", "dmi/product_name": "Virtual Machine"}, None),
    ],
)
def test_the_firmware_names_the_cloud(
    tmp_path: Path, files: dict[str, str], cloud: CloudProvider | None
) -> None:
    """Firmware names each cloud. A Hyper-V machine outside Azure is not taken for Azure."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert suspected_cloud(tmp_path / "dmi", tmp_path / "hypervisor") == cloud


def test_nobody_is_asked_where_no_cloud_is_suspected(tmp_path: Path) -> None:
    """Without a suspected cloud, no service is asked, even if one would answer."""
    with service(EC2) as base:
        found, reason = instance(suspected_cloud(tmp_path, tmp_path), base)
    assert found is None
    assert reason == "neither the firmware nor the hypervisor names a cloud"
