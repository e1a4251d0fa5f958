"""Machines behind a real sshd on the loopback: one home each, keys and settings of the test's own.

The system's ssh reads the settings in the user's own folder; so ``ssh`` on the path is a script
that names the test's settings instead.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

_SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
_SERVER = shutil.which("sshd", path=_SBIN)
_PROGRAMS = ("ssh", "ssh-keygen", "rsync")
_MISSING = [name for name in _PROGRAMS if shutil.which(name) is None]
NEEDS_RSYNC = pytest.mark.skipif("rsync" in _MISSING, reason="rsync is not installed")
NEEDS_SSHD = pytest.mark.skipif(
    bool(_MISSING) or _SERVER is None,
    reason=f"not installed: {', '.join([*_MISSING, *([] if _SERVER else ['sshd'])])}",
)
_SERVER_SETTINGS = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin yes
"""
_HOST_SETTINGS = """\
Host {name}
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/{name}
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
"""
_ENTER = """\
#!/bin/bash
export HOME="$1"
cd
exec bash -c "$SSH_ORIGINAL_COMMAND"
"""


def offline_environment(venv: Path) -> None:
    """Make a virtual environment that sees the packages of this one, except epochcost."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (packages,) = venv.glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "epochcost" not in path.name and not (packages / path.name).exists():
            (packages / path.name).symlink_to(path)


@dataclass
class Machines:
    """Machines behind one sshd, by name; each has a home folder in ``folder``/homes."""

    folder: Path
    port: int
    server: subprocess.Popen[bytes] | None = None

    def home(self, name: str) -> Path:
        """The user's home folder on a machine."""
        return self.folder / "homes" / name

    def start(self) -> None:
        """Start sshd and wait until it answers."""
        assert _SERVER is not None
        command = [_SERVER, "-D", "-f", self.folder / "sshd_config", "-E", self.folder / "log"]
        self.server = subprocess.Popen(command)
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        """End sshd and all of its connections, as a broken network would."""
        if self.server is None:
            return
        for process in psutil.Process(self.server.pid).children(recursive=True):
            if process.name().startswith("sshd"):
                process.kill()
        self.server.kill()
        self.server.wait()
        self.server = None

    def trust(self, key: str) -> None:
        """Make a host key the only one that ssh knows of the machines."""
        public = (self.folder / f"{key}.pub").read_text()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}")


def make_machines(folder: Path, names: tuple[str, ...]) -> Machines:
    """Make machines in a folder; the caller starts them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        machines = Machines(folder, probe.getsockname()[1])
    for name in ("host_key", "other_key", *names):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name]
        subprocess.run(command, check=True)
    machines.trust("host_key")
    places = {"folder": folder, "port": machines.port}
    _program(folder / "enter", _ENTER)
    _program(folder / "bin/ssh", f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    (folder / "sshd_config").write_text(_SERVER_SETTINGS.format(**places))
    (folder / "config").write_text(
        "".join(_HOST_SETTINGS.format(name=name, **places) for name in names)
    )
    keys = []
    for name in names:
        machines.home(name).mkdir(parents=True)
        public = (folder / f"{name}.pub").read_text()
        keys.append(f'restrict,command="{folder}/enter {machines.home(name)}" {public}')
    (folder / "authorized_keys").write_text("".join(keys))
    if os.geteuid() == 0:  # sshd of root demands the folder that its service makes
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    return machines


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
