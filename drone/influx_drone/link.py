"""The way to the drone: SSH to its computer, and through that to the server's port.

Host keys are checked against the known hosts, and a key logs in: there is no password
anywhere. What is wrong for good (an unknown host, a refused key, another ground station)
is a ``DroneError``; what may be better in a moment is ``LinkLost``.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import shlex
import socket
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import paramiko

from influx_drone import protocol
from influx_drone.errors import DroneError
from influx_drone.protocol import Message, ProtocolError

CONNECT_S = 8.0
ANSWER_S = 4.0
"""How long a reply may take; a flash and its fsync included."""
STATES = ("/var/lib/influx-drone", ".local/state/influx-drone")
"""Where a server keeps its state, as the service or run by hand."""


class LinkLost(Exception):
    """The drone cannot be reached now; trying again may help."""


@dataclass(frozen=True)
class Host:
    """Whom to connect to.

    identity     file of a private key; None: those ssh would try, and the agent's
    identities   files of more of those, as the user's ssh is configured
    known_hosts  file of host keys beside the user's own
    state        the server's folder on the drone; None: one of the usual
    """

    name: str
    user: str
    port: int = 22
    identity: Path | None = None
    known_hosts: Path | None = None
    state: str | None = None
    identities: tuple[Path, ...] = ()


def find_host(text: str, config: Path = Path("~/.ssh/config"), **more: Any) -> Host:
    """``[user@]host[:port]``, where host may be a name from the user's configuration of ssh.

    That may know its address, user, port and keys; what ``text`` and ``more`` say comes first.
    """
    host = parse_host(text, **more)
    said_user, _, place = text.rpartition("@")
    is_complete = bool(said_user) and ":" in place
    try:
        known = paramiko.SSHConfig.from_path(str(config.expanduser())).lookup(host.name)
        port = host.port if ":" in place else int(known.get("port", host.port))
    except FileNotFoundError:
        return host
    except OSError as error:
        raise DroneError(f"{config} cannot be read: {error.strerror}.") from None
    except (paramiko.SSHException, ValueError, KeyError, ImportError) as error:
        # paramiko does not know all that ssh does; an address that says it all can do without.
        if is_complete:
            return host
        raise DroneError(
            f"{config} cannot be understood: {error}. Give the whole address, as "
            f"{host.user}@{host.name}:{host.port}."
        ) from None
    user = said_user or known.get("user", host.user)
    through = known.get("proxyjump") or known.get("proxycommand")
    if through and through.lower() != "none":
        raise DroneError(
            f"{config} reaches {host.name} through {through!r}, which only ssh itself can. Have it "
            f"forward a port (ssh -L 2222:localhost:{port} {host.name}), and connect to "
            f"{user}@localhost:2222."
        )
    return replace(
        host,
        name=known["hostname"],
        user=user,
        port=port,
        identities=tuple(Path(key).expanduser() for key in known.get("identityfile", ())),
    )


def parse_host(text: str, **more: Any) -> Host:
    """``[user@]host[:port]``, as it stands."""
    user, at, place = text.rpartition("@")
    name, colon, port = place.partition(":")
    if not name or (at and not user) or (colon and not port.isdigit()):
        raise DroneError(f"{text!r} is no [user@]host[:port], pi@drone say.")
    if ":" in user:
        raise DroneError("a password does not belong on a command line; log in with a key.")
    return Host(name, user or getpass.getuser(), int(port) if colon else 22, **more)


class Link:
    """A connection to the server, for one request at a time."""

    def __init__(self, host: Host, flight: str) -> None:
        """Connect and say hello; ``hello`` is the server's answer."""
        self._host = host
        self._numbers = count(1)
        self._buffer = b""
        self._client = paramiko.SSHClient()
        try:
            _log_in(self._client, host)
            connection = _find_server(self._client, host)
            self._channel = _open_channel(self._client, int(connection["port"]))
            self.hello = self.ask(
                "hello", token=connection["token"], flight=flight, version=protocol.VERSION
            )
        except BaseException:
            self.close()
            raise

    def ask(self, kind: str, *, limit_s: float = ANSWER_S, **values: Any) -> Message:
        """The reply to a request."""
        number = next(self._numbers)
        try:
            self._channel.settimeout(limit_s)
            self._channel.sendall(protocol.encode({"type": kind, "seq": number, **values}))
            reply = protocol.decode(self._line())
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise LinkLost(str(error) or "no answer") from None
        except ProtocolError as error:
            raise DroneError(
                f"{self._host.name} answers in another language: {error}. Is it an "
                "influx-drone-server that listens there?"
            ) from None
        if reply["type"] == "error" and reply.get("seq") is None:
            raise DroneError(f"the drone refuses: {reply.get('message')}.")
        if reply.get("seq") != number:
            raise LinkLost("an answer to another question")
        return reply

    def _line(self) -> bytes:
        while b"\n" not in self._buffer:
            data = self._channel.recv(1 << 16)
            if not data:
                raise EOFError("the connection was closed")
            self._buffer += data
            if len(self._buffer) > protocol.REPLY_BYTES:
                raise ProtocolError("an endless line")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(Exception):
            self._client.close()


def _log_in(client: paramiko.SSHClient, host: Host) -> None:
    client.set_missing_host_key_policy(_RefuseUnknown())
    with contextlib.suppress(OSError):
        client.load_system_host_keys()
    if host.known_hosts is not None:
        try:
            client.load_host_keys(str(host.known_hosts))
        except OSError as error:
            raise DroneError(f"{host.known_hosts} cannot be read: {error.strerror}.") from None
    if host.identity is not None and not host.identity.is_file():
        raise DroneError(f"{host.identity} does not exist: it should be a private key.")
    try:
        client.connect(
            host.name,
            port=host.port,
            username=host.user,
            # A list is fine with paramiko, but not known to its type stubs.
            key_filename=[str(key) for key in _keys(host)],  # type: ignore[arg-type]
            look_for_keys=host.identity is None,
            allow_agent=host.identity is None,
            timeout=CONNECT_S,
            banner_timeout=CONNECT_S,
            auth_timeout=CONNECT_S,
            channel_timeout=CONNECT_S,
        )
    except paramiko.BadHostKeyException as error:
        found = error.key.fingerprint
        raise DroneError(
            f"the host key of {host.name} is not the known one but {found}. If the drone's "
            f"computer was set up anew, remove the old key with: ssh-keygen -R {host.name}. "
            "If not, this may be another machine."
        ) from None
    except paramiko.PasswordRequiredException:
        raise DroneError(
            f"{host.identity or 'the key'} is protected by a passphrase: add it to the agent "
            "with ssh-add first."
        ) from None
    except paramiko.AuthenticationException as error:
        # A link that breaks while the key is checked looks the same but for the words.
        if any(words in str(error).lower() for words in ("timeout", "shut down", "eof")):
            raise LinkLost("the link broke during the login") from None
        raise DroneError(
            f"{host.name} does not let {host.user} in with this key. Copy the key there with: "
            f"ssh-copy-id {host.user}@{host.name}"
        ) from None
    except socket.gaierror:
        raise LinkLost(f"there is no host {host.name} in this network") from None
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise LinkLost(str(error) or "the connection was closed") from None
    transport = client.get_transport()
    if transport is not None:
        transport.set_keepalive(2)


def _keys(host: Host) -> list[Path]:
    if host.identity is not None:
        return [host.identity]
    return [path for path in host.identities if path.is_file()]


class _RefuseUnknown(paramiko.MissingHostKeyPolicy):
    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        found = key.fingerprint
        raise DroneError(
            f"the host key of {hostname}, {found}, is not known. Compare it with the one on the "
            "drone's computer (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), then make it "
            "known by logging in with ssh once, or with --known-hosts FILE."
        )


def _find_server(client: paramiko.SSHClient, host: Host) -> Message:
    """Where the server listens and its token, from the file that only its user can read."""
    folders = [host.state] if host.state else list(STATES)
    files = " ".join(shlex.quote(f"{folder}/connection.json") for folder in folders)
    try:
        _, output, _ = client.exec_command(f"cat {files} 2>/dev/null", timeout=ANSWER_S)
        text = output.read(1 << 16).decode(errors="replace")
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise LinkLost(str(error) or "the connection was closed") from None
    try:
        connection = json.loads(text.strip().splitlines()[0] if text.strip() else "null")
        return {"port": int(connection["port"]), "token": str(connection["token"])}
    except (ValueError, TypeError, KeyError):
        raise LinkLost(f"influx-drone-server is not running on {host.name}") from None


def _open_channel(client: paramiko.SSHClient, port: int) -> paramiko.Channel:
    transport = client.get_transport()
    try:
        if transport is None:
            raise EOFError("the connection was closed")
        return transport.open_channel(
            "direct-tcpip", ("127.0.0.1", port), ("127.0.0.1", 0), timeout=CONNECT_S
        )
    except paramiko.ChannelException as error:
        if error.code == 1:
            raise DroneError(
                "the drone's SSH server forbids forwarding: set AllowTcpForwarding to local in "
                "its sshd_config."
            ) from None
        raise LinkLost("influx-drone-server does not answer") from None
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise LinkLost(str(error) or "the connection was closed") from None
