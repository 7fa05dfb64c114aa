"""A real OpenSSH server on the loopback, and a wire to it that can be cut."""

from __future__ import annotations

import contextlib
import getpass
import os
import random
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.drone.harness import wait_for

CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
MaxStartups 100
{more}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_key(path: Path) -> Path:
    """A private key, its public half beside it."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


@dataclass(frozen=True)
class Sshd:
    """Where it listens, and the keys that fit."""

    port: int
    folder: Path

    @property
    def host(self) -> str:
        return f"{getpass.getuser()}@127.0.0.1:{self.port}"

    @property
    def identity(self) -> Path:
        return self.folder / "key"

    def known_hosts(self, port: int | None = None) -> Path:
        """A file in which the host's key is known, at another port if one is given."""
        path = self.folder / f"known_hosts_{port or self.port}"
        public = (self.folder / "host_key.pub").read_text()
        path.write_text(f"[127.0.0.1]:{port or self.port} {public}")
        return path


@contextmanager
def sshd(folder: Path, more: str = "") -> Iterator[Sshd]:
    """Run OpenSSH's server for this user, with keys of its own."""
    folder.mkdir(parents=True)
    make_key(folder / "host_key")
    make_key(folder / "key")
    shutil.copy(folder / "key.pub", folder / "authorized_keys")
    port = free_port()
    (folder / "config").write_text(CONFIG.format(port=port, folder=folder, more=more))
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    binary = shutil.which("sshd") or "/usr/sbin/sshd"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([binary, "-D", "-e", "-f", str(folder / "config")], stderr=log)
    try:
        wait_for(lambda: _listens(port) or process.poll() is not None)
        yield Sshd(port, folder)
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@dataclass
class Wire:
    """Connections to ``port`` pass through; each is cut after a random time while it is cutting."""

    target: int
    seed: int
    life_s: float = 0.8
    cutting: bool = False
    cuts: int = 0
    port: int = 0
    _listener: socket.socket = field(default_factory=socket.socket)

    def open(self) -> None:
        """Begin to listen."""
        self._random = random.Random(self.seed)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                return
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(a, b), daemon=True).start()
            if self.cutting:
                delay = self._random.uniform(0.0, self.life_s)
                threading.Timer(delay, self._cut, args=(near, far)).start()

    def _pass_on(self, a: socket.socket, b: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := a.recv(65536):
                b.sendall(data)
        for end in (a, b):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _cut(self, near: socket.socket, far: socket.socket) -> None:
        """As a radio does it: no good-bye; both sides find a broken connection."""
        self.cuts += 1
        for end in (near, far):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
                end.close()


@contextmanager
def wire(target: int, seed: int, life_s: float = 0.8) -> Iterator[Wire]:
    made = Wire(target, seed, life_s)
    made.open()
    try:
        yield made
    finally:
        made.close()
