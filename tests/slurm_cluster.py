"""A real Slurm on loopback in a folder of its own: two nodes with different features, accounting.

It is made of Debian's packages slurmctld, slurmd, slurmdbd, slurm-client, munge and
mariadb-server, whose own services need not run.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from crowding import crowded

PROGRAMS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sbatch")
NODES = ("n1", "n2")


_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
_MISSING = [program for program in PROGRAMS if not shutil.which(program, path=_PATH)]
NEEDS_SLURM = pytest.mark.skipif(
    bool(_MISSING) or os.geteuid() != 0,
    reason=f"not installed: {', '.join(_MISSING)}" if _MISSING else "only root can start nodes",
)


class SlurmCluster:
    """Daemons of a cluster; ``environment`` makes the commands of Slurm reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = _free_ports(2 + len(NODES))

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables with which the commands of Slurm reach this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": _PATH}

    def start(self) -> None:
        """Start munge, the accounting, the controller and the nodes; wait until both are idle."""
        self._write_settings()
        self._start_munge()
        self._start_database()
        self._start("slurmdbd", "slurmdbd", "-D", MYSQL_UNIX_PORT=str(self.folder / "mysql.socket"))
        self._until("slurmdbd", lambda: self._answers(self._ports[1]))
        for node in NODES:
            self.start_node(node)
        self.start_controller()

    def start_controller(self) -> None:
        """Start a controller that knows no jobs, and wait for the nodes."""
        self._start("slurmctld", "slurmctld", "-D", "-c")
        self.await_idle()

    def await_idle(self) -> None:
        """Wait until all nodes are up and free."""
        self._until("slurmctld", lambda: set(self.states().values()) == {"idle"})

    def stop_daemon(self, name: str) -> None:
        """End a daemon in order."""
        daemon = self._daemons.pop(name)
        daemon.terminate()
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def start_node(self, node: str) -> None:
        """Start a node's daemon."""
        # The kernel ends all processes of a namespace with its first one: those of jobs, too.
        # The first is a shell, as Slurm takes an orphan that nobody waits for as running.
        namespace = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
        self._start(node, *namespace, "bash", "-c", f"slurmd -D -N {node} & wait")

    def kill_node(self, node: str) -> None:
        """Kill a node, its daemon and its jobs, as a power cut does."""
        daemon = self._daemons.pop(node)
        daemon.kill()
        daemon.wait()

    def states(self) -> dict[str, str]:
        """Map each node to Slurm's word for its state."""
        lines = self.run("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return dict(line.split() for line in lines)

    def stop(self) -> None:
        """End every daemon and the jobs that are left."""
        for node in NODES:
            if node in self._daemons:
                self.kill_node(node)
        for name in reversed(list(self._daemons)):
            self.stop_daemon(name)

    def node_of(self, job: str) -> str:
        """The node where a job runs or ran."""
        return self.run("sacct", "--noheader", "-X", f"--jobs={job}", "--format=NodeList").strip()

    def run(self, *command: str) -> str:
        """The output of a command of Slurm."""
        environment = os.environ | self.environment
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    def _start(self, name: str, program: str, *arguments: str, **environment: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [shutil.which(program, path=_PATH) or program, *arguments],
                env=os.environ | self.environment | environment,
                stdout=log,
                stderr=log,
            )

    def _until(self, name: str, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + crowded(60)
        while True:
            with contextlib.suppress(subprocess.CalledProcessError, OSError):
                if condition():
                    return
            code = self._daemons[name].poll()
            if code is not None or time.monotonic() > end:
                log = (self.folder / f"{name}.out").read_text("utf-8", "replace")
                raise RuntimeError(f"{name} does not start (exit code {code}):\n{log[-2000:]}")
            time.sleep(0.2)

    def _answers(self, port: int) -> bool:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        places = {"key-file": key, "log-file": "munge.log", "pid-file": "munge.pid"}
        places |= {"seed-file": "munge.seed", "socket": "munge.socket"}
        options = [f"--{option}={self.folder / place}" for option, place in places.items()]
        self._start("munge", "munged", "--foreground", "--force", *options)
        self._until("munge", (self.folder / "munge.socket").exists)

    def _start_database(self) -> None:
        data, user = self.folder / "database", getpass.getuser()
        self.run(
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={data}",
            f"--user={user}",
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={user}",
            "--skip-test-db",
        )
        self._start(
            "mariadb",
            "mariadbd",
            "--no-defaults",
            f"--datadir={data}",
            f"--user={user}",
            "--skip-networking",
            f"--socket={self.folder / 'mysql.socket'}",
            f"--pid-file={self.folder / 'mysql.pid'}",
        )
        self._until("mariadb", (self.folder / "mysql.socket").exists)

    def _write_settings(self) -> None:
        user, (controller, database, *nodes) = getpass.getuser(), self._ports
        munge = self.folder / "munge.socket"
        state = self.folder / "state"
        state.mkdir(parents=True)
        (self.folder / "slurm.conf").write_text(
            "\n".join(
                [
                    "ClusterName=test",
                    f"SlurmctldHost={socket.gethostname()}(127.0.0.1)",
                    f"SlurmctldPort={controller}",
                    "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
                    f"SlurmUser={user}",
                    f"SlurmdUser={user}",
                    f"AuthInfo=socket={munge}",
                    f"StateSaveLocation={state}",
                    f"SlurmctldPidFile={self.folder}/slurmctld.pid",
                    f"SlurmdPidFile={self.folder}/slurmd-%n.pid",
                    f"SlurmdSpoolDir={self.folder}/spool-%n",
                    "ProctrackType=proctrack/pgid",
                    "TaskPlugin=task/none",
                    "SlurmdParameters=config_overrides",
                    "SelectType=select/cons_tres",
                    "SelectTypeParameters=CR_Core",
                    "MpiDefault=none",
                    "ReturnToService=2",
                    "SlurmdTimeout=10",
                    "KillWait=5",
                    "SchedulerParameters=sched_interval=2",
                    "JobAcctGatherType=jobacct_gather/none",
                    "AccountingStorageType=accounting_storage/slurmdbd",
                    "AccountingStorageHost=127.0.0.1",
                    f"AccountingStoragePort={database}",
                    f"AccountingStoragePass={munge}",
                    *(
                        f"NodeName={name} NodeAddr=127.0.0.1 NodeHostname=localhost Port={port}"
                        f" CPUs=2 RealMemory=1024 Feature={name}-only,both"
                        for name, port in zip(NODES, nodes, strict=True)
                    ),
                    "PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP",
                    "",
                ]
            ),
            "utf-8",
        )
        accounts = self.folder / "slurmdbd.conf"
        accounts.write_text(
            "\n".join(
                [
                    "DbdHost=localhost",
                    "DbdAddr=127.0.0.1",
                    f"DbdPort={database}",
                    f"AuthInfo=socket={munge}",
                    f"SlurmUser={user}",
                    f"PidFile={self.folder}/slurmdbd.pid",
                    "StorageType=accounting_storage/mysql",
                    "StorageHost=localhost",
                    f"StorageUser={user}",
                    "StorageLoc=slurm",
                    "",
                ]
            ),
            "utf-8",
        )
        accounts.chmod(0o600)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for bound in sockets:
            bound.bind(("127.0.0.1", 0))
        return [bound.getsockname()[1] for bound in sockets]


@contextlib.contextmanager
def running_cluster(folder: Path) -> Iterator[SlurmCluster]:
    """Start a cluster in a folder and end all of its daemons after the block."""
    cluster = SlurmCluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
