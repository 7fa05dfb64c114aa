"""The server on the drone: on a trigger it flashes the LED and keeps where the drone was.

A trigger's life is written down as it goes: ``started`` with the fix before the LED is turned
on, ``reading`` when it is off, and only then the answer is sent. So whatever happens to
the link or to this process, an answer the ground has is on the disk, and a flash that was made
is known: a server that is started anew completes what was begun (the LED's own log tells
whether it had flashed). A trigger is known by its id: sent again, it gets the answer it
got, and no flash.

It listens on the loopback alone; who may reach that is SSH's business. The token in
``connection.json``, which only this user can read, keeps other users of the machine out.
Connections that have not shown it are few and short: when there are too many, the oldest gives
way, so that they cannot lock out one that has it. One ground station at a time is served; the
same one may come back at any time.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import math
import os
import secrets
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from influx_drone import __version__, protocol
from influx_drone.entries import is_entry
from influx_drone.errors import DroneError
from influx_drone.files import own_folder, replace_file
from influx_drone.journal import Journal, locked
from influx_drone.led import Keeper, Wiring, flashed
from influx_drone.protocol import Message, ProtocolError
from influx_drone.receiver import Arrival, Limits, Receiver, problems, sigma_m

log = logging.getLogger(__name__)

JOURNAL, CONNECTION, SERVER_LOCK = "journal.jsonl", "connection.json", "server.lock"
HELLO_S = 2.0
"""How long a connection may take to say who it is."""
MOST_STRANGERS, BACKLOG = 64, 16
"""How many connections may not have said it yet; and how many are accepted before others are
heard again, so that of many at once the first words of each are read before it gives way."""
SILENT_S = 5.0
"""After how long without a word a ground station may be replaced by another."""
IDLE_S = 30.0
NEAR_S = 1.0
"""How far from a flash a fix is looked for."""


@dataclass(frozen=True)
class Settings:
    """How a server works; ``gps`` is a stream as ``streams.open_stream`` takes it."""

    gps: str
    wiring: Wiring
    state: Path
    port: int
    flash_s: float = 0.25
    limits: Limits = field(default_factory=Limits)
    accept_float: bool = False


@dataclass(eq=False)
class _Connection:
    writer: asyncio.StreamWriter
    peer: str
    flight: str | None = None
    heard_s: float = 0.0


class Server:
    """What answers the ground."""

    def __init__(self, settings: Settings, journal: Journal, receiver: Receiver) -> None:
        self._settings = settings
        self._journal = journal
        self._receiver = receiver
        self._keeper = Keeper(settings.wiring, settings.state)
        self._token = secrets.token_hex(16)
        self._answers: dict[str, Message] = {}
        self._numbers: dict[str, int] = {}
        self._begun: dict[str, Message] = {}
        self._one_flash = asyncio.Lock()
        self._made: dict[str, float] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[Message]] = {}
        self._strangers: list[_Connection] = []
        self._welcomed: set[_Connection] = set()
        for entry in journal.entries:
            self._note(entry)
        # A damaged line may have had a number, too: it must not be given again.
        self._skipped = {flight: n + journal.n_damaged for flight, n in self._numbers.items()}

    async def run(self) -> None:
        """Serve until cancelled."""
        await self._keeper.start()
        self._complete_what_was_begun()
        self._receiver.start()
        server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._settings.port, limit=protocol.REQUEST_BYTES,
            backlog=BACKLOG,
        )  # fmt: skip
        watch = asyncio.create_task(self._keeper.watch())
        try:
            port = server.sockets[0].getsockname()[1]
            self._announce(port)
            log.info("listening on the loopback's port %d", port)
            await asyncio.Event().wait()
        finally:
            with contextlib.suppress(OSError):
                (self._settings.state / CONNECTION).unlink()
            server.close()
            watch.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks.values(), timeout=2.0)
            await self._keeper.stop()
            self._receiver.stop()

    def _announce(self, port: int) -> None:
        """Tell those who may log in as this user where to connect, and with which token."""
        content = {"port": port, "token": self._token, "pid": os.getpid()}
        replace_file(self._settings.state / CONNECTION, json.dumps(content).encode())

    def _note(self, entry: Message) -> None:
        """Take an entry of the journal into account."""
        if entry["kind"] == "started":
            self._begun[entry["id"]] = entry
            return
        self._begun.pop(entry["id"], None)
        self._answers[entry["id"]] = entry
        self._numbers[entry["flight"]] = max(self._numbers.get(entry["flight"], 0), entry["n"])

    def _complete_what_was_begun(self) -> None:
        """A flash that was made before the end of an earlier server becomes a reading."""
        self._made = flashed(self._settings.state)
        for begun in list(self._begun.values()):
            if begun["id"] not in self._made:
                log.warning("trigger %s was begun and never flashed", begun["id"])
                continue
            log.warning("trigger %s was flashed and not answered; it is now", begun["id"])
            try:
                self._complete(begun)
            except DroneError as error:
                log.error("%s", error)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(writer, str(writer.get_extra_info("peername")))
        self._strangers.append(connection)
        if len(self._strangers) > MOST_STRANGERS:
            self._strangers.pop(0).writer.close()
        try:
            await self._welcome(connection, await self._request(reader, HELLO_S))
            while True:
                request = await self._request(reader, IDLE_S)
                connection.heard_s = time.monotonic()
                await self._reply(connection, request, await self._answer(connection, request))
        except ProtocolError as error:
            log.warning("refused %s: %s", connection.peer, error)
            with contextlib.suppress(OSError, ConnectionError):
                await self._send(writer, {"type": "error", "seq": None, "message": str(error)})
        except (OSError, asyncio.IncompleteReadError):
            log.info("%s is gone", connection.peer)
        finally:
            if connection in self._strangers:
                self._strangers.remove(connection)
            self._welcomed.discard(connection)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, limit_s: float) -> Message:
        try:
            line = await asyncio.wait_for(reader.readuntil(b"\n"), limit_s)
        except asyncio.LimitOverrunError:
            longest = protocol.REQUEST_BYTES
            raise ProtocolError(f"a request of more than {longest} bytes") from None
        except TimeoutError:
            raise ProtocolError(f"nothing was said for {limit_s:g} s") from None
        request = protocol.decode(line)
        protocol.whole(request, "seq")
        return request

    async def _welcome(self, connection: _Connection, hello: Message) -> None:
        token = hello.get("token")
        if hello["type"] != "hello" or not isinstance(token, str):
            raise ProtocolError("the first message must be a hello with a token")
        if not hmac.compare_digest(token.encode(errors="replace"), self._token.encode()):
            raise ProtocolError("the token is wrong")
        if hello.get("version") != protocol.VERSION:
            raise ProtocolError(
                f"the ground speaks version {str(hello.get('version'))[:20]} of the protocol, the "
                f"drone version {protocol.VERSION}; install the same release on both"
            )
        flight = protocol.name(hello, "flight")
        if connection not in self._strangers:
            raise OSError("it gave way while its hello was read")
        now = time.monotonic()
        for other in list(self._welcomed):
            if other.flight != flight and now - other.heard_s < SILENT_S:
                raise ProtocolError(
                    f"another ground station (flight {other.flight}) is connected; one at a time"
                )
            log.info("%s takes the place of %s", connection.peer, other.peer)
            self._welcomed.discard(other)
            other.writer.close()
        self._strangers.remove(connection)
        self._welcomed.add(connection)
        connection.flight, connection.heard_s = flight, now
        log.info("flight %s at %s", flight, connection.peer)
        answer = {
            "type": "hello",
            "version": protocol.VERSION,
            "server": __version__,
            "clock_s": time.monotonic(),
            "n": self._numbers.get(flight, 0),
            "flash_s": self._settings.flash_s,
        }
        await self._reply(connection, hello, answer)

    async def _reply(self, connection: _Connection, request: Message, answer: Message) -> None:
        await self._send(connection.writer, {**answer, "seq": request["seq"]})

    async def _send(self, writer: asyncio.StreamWriter, message: Message) -> None:
        writer.write(protocol.encode(message))
        await asyncio.wait_for(writer.drain(), 5.0)

    async def _answer(self, connection: _Connection, request: Message) -> Message:
        match request["type"]:
            case "status":
                return self._status(connection)
            case "trigger":
                return await self._triggered(connection, request)
            case "readings":
                return self._readings(connection, protocol.whole(request, "after"))
        raise ProtocolError(f"there is no request {request['type'][:40]!r}")

    def _status(self, connection: _Connection) -> Message:
        latest, now = self._receiver.latest(), time.monotonic()
        assert connection.flight is not None
        strict = problems(latest, self._settings.limits, now, accept_float=False)
        return {
            "type": "status",
            "clock_s": now,
            "fix": None if latest is None else _as_json(latest),
            "age_s": None if latest is None else now - latest.clock_s,
            "sigma_m": None if latest is None else sigma_m(latest.fix),
            "problems": strict,
            "n": self._numbers.get(connection.flight, 0),
            "disk_free_mb": shutil.disk_usage(self._settings.state).free // 2**20,
        }

    def _readings(self, connection: _Connection, after: int) -> Message:
        found = [
            entry
            for entry in self._answers.values()
            if entry["flight"] == connection.flight and entry["n"] > after
        ]
        found.sort(key=lambda entry: entry["n"])
        most = protocol.READINGS_PER_REPLY
        return {"type": "readings", "entries": found[:most], "more": len(found) > most}

    async def _triggered(self, connection: _Connection, request: Message) -> Message:
        flash = protocol.name(request, "id")
        protocol.whole(request, "point")
        protocol.number(request, "not_after_s")
        protocol.flag(request, "accept_float")
        assert connection.flight is not None
        key = connection.flight, flash
        if key not in self._tasks:
            # A task of its own: when the link breaks, the flash goes on and is written down.
            task = asyncio.create_task(self._trigger(connection.flight, flash, request))
            self._tasks[key] = task
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return await asyncio.shield(self._tasks[key])

    async def _trigger(self, flight: str, flash: str, request: Message) -> Message:
        async with self._one_flash:
            try:
                return self._as_answer(await self._answer_of(flight, flash, request))
            except DroneError as error:
                log.error("flash %s: %s", flash, error)
                return {"type": "error", "message": str(error)}

    async def _answer_of(self, flight: str, flash: str, request: Message) -> Message:
        """The answer that the trigger got before, or a new one."""
        known = self._answers.get(flash) or self._begun.get(flash)
        if known is not None and known["flight"] != flight:
            raise DroneError(f"the id {flash} is that of another flight's trigger")
        if flash in self._answers:
            return self._answers[flash]
        if flash in self._made:
            return self._complete(self._begun.get(flash))
        accept = self._settings.accept_float or request.get("accept_float", False)
        latest = self._receiver.latest()
        started = {
            "kind": "started",
            "id": flash,
            "flight": flight,
            "point": request["point"],
            "fix": None if latest is None else _as_json(latest),
            "unix_s": time.time(),
        }
        if found := self._problems(latest, request, accept=accept):
            return self._refuse(started, found)
        assert latest is not None
        await asyncio.to_thread(self._journal.append, started)
        self._note(started)
        # A slow disk may have taken its time.
        if found := self._problems(self._receiver.latest(), request, accept=accept):
            return self._refuse(started, found)
        return await self._flash(started, latest, request["not_after_s"], accept=accept)

    def _problems(self, latest: Arrival | None, request: Message, *, accept: bool) -> str:
        """Why a trigger is refused now; empty if it is not."""
        now = time.monotonic()
        if (late_s := now - request["not_after_s"]) > 0:
            return f"the trigger came {late_s:.1f} s too late; the drone may have moved"
        return "; ".join(problems(latest, self._settings.limits, now, accept_float=accept))

    async def _flash(
        self, started: Message, latest: Arrival, not_after_s: float, *, accept: bool
    ) -> Message:
        flash = started["id"]
        try:
            on_s, off_s = await self._keeper.flash(flash, self._settings.flash_s, not_after_s)
        except DroneError:
            # Cut short or not, a flash that was begun is in the video, and will not be made again.
            self._made.update(flashed(self._settings.state))
            if flash not in self._made:
                raise
            return self._complete(started)
        self._made[flash] = on_s
        # The receiver may have lost its position meanwhile: then the fix before the flash counts.
        good = [
            arrival
            for arrival in self._receiver.between(on_s - NEAR_S, off_s)
            if not problems(arrival, self._settings.limits, arrival.clock_s, accept_float=accept)
        ]
        nearest = min(good or [latest], key=lambda arrival: abs(arrival.clock_s - on_s))
        entry = self._keep_reading(started, _as_json(nearest), on_s, off_s)
        log.info("flash %s: point %s, reading %d", flash, entry["point"], entry["n"])
        return entry

    def _complete(self, begun: Message | None) -> Message:
        """The reading of a flash that was made, with the fix before it."""
        if begun is None or begun["fix"] is None:
            raise DroneError("it was flashed, but what the journal had of it is damaged")
        return self._keep_reading(begun, begun["fix"], self._made[begun["id"]], None)

    def _keep_reading(
        self, started: Message, fix: Message, on_s: float, off_s: float | None
    ) -> Message:
        """Write a reading down; ``off_s`` is None if nobody heard of the flash's end."""
        entry = {
            "kind": "reading",
            "id": started["id"],
            "flight": started["flight"],
            "n": self._next_number(started["flight"]),
            "point": started["point"],
            "fix": fix,
            "led_on_clock_s": on_s,
            "led_off_clock_s": off_s,
        }
        try:
            self._journal.append(entry)
        except DroneError as error:
            raise DroneError(
                f"it flashed, but {error} The reading is kept as soon as that is possible"
            ) from None
        self._note(entry)
        return entry

    def _refuse(self, started: Message, reason: str) -> Message:
        entry = {
            "kind": "refused",
            "id": started["id"],
            "flight": started["flight"],
            "n": self._next_number(started["flight"]),
            "point": started["point"],
            "reason": reason,
        }
        self._journal.append(entry)
        self._note(entry)
        log.warning("trigger %s refused: %s", started["id"], reason)
        return entry

    def _next_number(self, flight: str) -> int:
        skipped = self._skipped.get(flight, self._journal.n_damaged)
        return max(self._numbers.get(flight, 0), skipped) + 1

    @staticmethod
    def _as_answer(entry: Message) -> Message:
        return {"type": entry["kind"], "entry": entry}


def _as_json(arrival: Arrival) -> dict[str, Any]:
    fix = arrival.fix
    covariance = fix.covariance_m2
    numbers = {
        name: value if math.isfinite(value) else None
        for name in ("time_unix_s", "latitude_deg", "longitude_deg", "height_m")
        for value in [getattr(fix, name)]
    }
    return {
        **numbers,
        "quality": str(fix.quality),
        "covariance_m2": None if covariance is None else [list(row) for row in covariance],
        "n_satellites": fix.n_satellites,
        "clock_s": arrival.clock_s,
    }


def serve(settings: Settings) -> None:
    """Run the server until it is told to stop (SIGTERM, SIGINT)."""
    own_folder(settings.state)
    with locked(settings.state / SERVER_LOCK, "another influx-drone-server"):
        journal = Journal(settings.state / JOURNAL, is_entry)
        server = Server(settings, journal, Receiver(settings.gps))
        asyncio.run(_until_stopped(server))


async def _until_stopped(server: Server) -> None:
    running = asyncio.create_task(server.run())
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, running.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await running
