"""Ask the cloud's metadata service for the type of this machine's instance.

No request is sent unless the firmware or the hypervisor names a cloud. The instance's id and the
account are not stored. Sources: EC2's user guide (instance metadata service version 2), Compute
Engine (metadata server), Azure (Instance Metadata Service).
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from epochcost.measure.cpu import read_text
from epochcost.results.environment import CloudProvider, Instance

PATIENCE_SECONDS = 0.5
# The link-local address in all three clouds; not a name, which may take long to resolve.
SERVICE = "http://169.254.169.254"
_DMI = Path("/sys/class/dmi/id")
_HYPERVISOR = Path("/sys/hypervisor")
# All machines of Azure have this asset tag; other Hyper-V machines do not.
_AZURE_ASSET_TAG = "7783-7084-3265-9085-8269-3286-77"
_LONGEST_ANSWER_BYTES = 65_536
_OK = 200
# Errors of an answer that has another form.
_UNREADABLE = (KeyError, TypeError, ValueError)


# A function that sends a request (path, headers and perhaps a method) and returns the answer.
Ask = Callable[..., str]


def _ask_service(base: str, path: str, headers: Mapping[str, str], method: str = "GET") -> str:
    """Ask the service at ``base``, and return its answer as text.

    Raises OSError or HTTPException if no answer comes within ``PATIENCE_SECONDS``.
    """
    # Not urllib: it would send the request to a configured proxy.
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=PATIENCE_SECONDS)
    try:
        connection.request(method, path, headers=dict(headers))
        answered = connection.getresponse()
        if answered.status != _OK:
            raise ConnectionError(f"status {answered.status} for {path}")
        return answered.read(_LONGEST_ANSWER_BYTES).decode().strip()
    finally:
        connection.close()


def _ask_ec2(ask: Ask) -> Instance:
    # Version 2 of the service, which needs a token; version 1 may be off.
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = ask("/latest/api/token", lifetime, "PUT")
    headers = {"X-aws-ec2-metadata-token": token}
    document = json.loads(ask("/latest/dynamic/instance-identity/document", headers))
    return Instance(provider="AWS EC2", type=document["instanceType"])


def _ask_compute_engine(ask: Ask) -> Instance:
    key = "/computeMetadata/v1/instance/machine-type"
    answer = ask(key, {"Metadata-Flavor": "Google"})
    # Machine types are paths, such as ``projects/1/machineTypes/n1-standard-8``.
    return Instance(provider="Google Compute Engine", type=answer.rpartition("/")[2])


def _ask_azure(ask: Ask) -> Instance:
    path = "/metadata/instance/compute?api-version=2021-02-01"
    compute = json.loads(ask(path, {"Metadata": "true"}))
    return Instance(provider="Azure", type=compute["vmSize"])


_ASK: Mapping[CloudProvider, Callable[[Ask], Instance]] = {
    "AWS EC2": _ask_ec2,
    "Google Compute Engine": _ask_compute_engine,
    "Azure": _ask_azure,
}


def suspected_cloud(dmi: Path = _DMI, hypervisor: Path = _HYPERVISOR) -> CloudProvider | None:
    """The cloud named by the firmware's texts or by Xen's UUID; None if they name no cloud."""

    def says(name: str, word: str) -> bool:
        return word in (read_text(dmi / name) or "").lower()

    xen = (read_text(hypervisor / "uuid") or "").lower().startswith("ec2")
    if xen or says("sys_vendor", "amazon ec2") or says("bios_version", "amazon"):
        return "AWS EC2"
    if says("product_name", "google compute engine"):
        return "Google Compute Engine"
    return "Azure" if says("chassis_asset_tag", _AZURE_ASSET_TAG) else None


def instance(
    cloud: CloudProvider | None, base: str = SERVICE
) -> tuple[Instance | None, str | None]:
    """The instance from the cloud's metadata service, or None and the reason why it is unknown."""
    if cloud is None:
        return None, "neither the firmware nor the hypervisor names a cloud"
    answers: queue.SimpleQueue[tuple[Instance | None, str | None]] = queue.SimpleQueue()
    ask_service = partial(_ask_service, base)

    def ask() -> None:
        try:
            answers.put((_ASK[cloud](ask_service), None))
        except (OSError, http.client.HTTPException, *_UNREADABLE) as error:
            answers.put((None, f"{cloud}'s metadata service: {_reason(error)}"))

    # The thread limits the total time, since a socket's time limit starts again with each packet.
    threading.Thread(target=ask, daemon=True).start()
    try:
        return answers.get(timeout=PATIENCE_SECONDS)
    except queue.Empty:
        return None, f"{cloud}'s metadata service: no answer within {PATIENCE_SECONDS} s"


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {PATIENCE_SECONDS} s; in a container, allow it two hops"
    if isinstance(error, _UNREADABLE):
        return "an answer that this version cannot read"
    return str(error) or type(error).__name__
