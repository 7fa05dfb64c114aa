"""A flight as the ground sees it: triggers sent, answers received, both written down.

A trigger's id is on the ground's disk before it is sent. When the link breaks, the same
trigger is sent again until it is answered or too old; whatever the drone did meanwhile is
fetched first. Every answer of the drone has a number within its flight, so the ground knows
what it lacks, and at the end the two journals can be compared.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from influx_drone.entries import is_entry
from influx_drone.errors import DroneError
from influx_drone.journal import Journal, locked
from influx_drone.link import Host, Link, LinkLost
from influx_drone.protocol import Message

READINGS, FLIGHT, LOCK = "readings.jsonl", "flight.json", ".lock"
RETRY_S = (0.2, 0.5, 1.0, 2.0)
"""How long to wait before the first, second, ... attempt to connect again."""


class FlashFailed(Exception):
    """The drone could not flash now (its disk is full, its LED's process died); it may later."""


@dataclass(frozen=True)
class State:
    """What a person wants to see: is there a link, and what would a flash give now."""

    linked: bool
    trouble: str | None
    status: Message | None
    n_readings: int


class Flight:
    """One flight: its folder on the ground, and the link to the drone."""

    def __init__(
        self, folder: Path, host: Host, *, patience_s: float, accept_float: bool = False
    ) -> None:
        """``patience_s``: how long after it was asked for a flash still makes sense."""
        self._host = host
        self._patience_s = patience_s
        self._accept_float = accept_float
        self._folder = folder
        self._link: Link | None = None
        self._trouble: str | None = None
        self._status: Message | None = None
        self._failures = 0
        self._retry_at_s = 0.0
        self._offset_s = 0.0
        self.id = _flight_id(folder)
        self._journal = Journal(folder / READINGS, is_entry)
        self._answers = {
            entry["id"]: entry for entry in self._journal.entries if entry["kind"] != "sent"
        }

    @property
    def readings(self) -> list[Message]:
        """The drone's readings that are on the ground, in their order."""
        found = [entry for entry in self._answers.values() if entry["kind"] == "reading"]
        return sorted(found, key=lambda entry: entry["n"])

    @property
    def has_triggered(self) -> bool:
        """Whether a trigger was ever sent."""
        return any(entry["kind"] == "sent" for entry in self._journal.entries)

    @property
    def state(self) -> State:
        """As of the last word from the drone."""
        return State(self._link is not None, self._trouble, self._status, len(self.readings))

    def poll(self) -> State:
        """Ask how things are; a link that is down is tried again when it is time.

        Raises ``DroneError`` if there is no use in trying.
        """
        if self._connected():
            with self._noticing():
                assert self._link is not None
                self._status = self._link.ask("status")
                self._offset_s = self._status["clock_s"] - time.monotonic()
                if self._status["n"] > self._highest:
                    self._fetch()
        return self.state

    def flash(self, point: int, waiting: Callable[[State], None] = lambda _: None) -> Message:
        """Flash once, at hover point ``point``; the drone's answer, reading or refusal.

        Tries for as long as a flash makes sense; ``waiting`` hears of the attempts. Raises
        ``LinkLost`` if it is not known by then whether there was a flash; if there was, its
        reading will come when there is a link. Raises ``FlashFailed`` if the drone says so.
        """
        flash = uuid.uuid4().hex
        self._journal.append({"kind": "sent", "id": flash, "point": point, "unix_s": time.time()})
        deadline_s = time.monotonic() + self._patience_s
        while time.monotonic() < deadline_s:
            if self._connected():
                with self._noticing():
                    if flash not in self._answers:
                        self._trigger(flash, point, deadline_s)
                if flash in self._answers:
                    return self._answers[flash]
            waiting(self.state)
            time.sleep(0.05)
        raise LinkLost("the link was down for too long; what the drone did is fetched later")

    def _trigger(self, flash: str, point: int, deadline_s: float) -> None:
        assert self._link is not None
        answer = self._link.ask(
            "trigger",
            id=flash,
            point=point,
            not_after_s=deadline_s + self._offset_s,
            accept_float=self._accept_float,
        )
        if answer["type"] == "error":
            raise FlashFailed(str(answer["message"]).rstrip("."))
        self._keep(answer["entry"])

    def finish(self, limit_s: float) -> list[Message]:
        """Fetch what is missing and compare the journals; returns the drone's answers.

        Raises ``LinkLost`` if there is no link within ``limit_s``, ``DroneError`` if the
        journals contradict each other.
        """
        deadline_s = time.monotonic() + limit_s
        while time.monotonic() < deadline_s:
            if self._connected():
                with self._noticing():
                    theirs = self._all()
                    for entry in theirs:
                        self._keep(entry)
                    if len(theirs) != len(self._answers):
                        raise DroneError(
                            f"the ground has {len(self._answers)} answers of this flight, the "
                            f"drone's journal {len(theirs)}: was that one moved away, or damaged? "
                            f"The ground's is {self._journal.path}."
                        )
                    return theirs
            time.sleep(0.05)
        raise LinkLost(self._trouble or "no link")

    def close(self) -> None:
        """Hang up, and let go of the folder."""
        if self._link is not None:
            self._link.close()
        self._journal.close()

    @property
    def _highest(self) -> int:
        """The number up to which no answer is missing."""
        numbers = {entry["n"] for entry in self._answers.values()}
        return next(n for n in range(len(numbers) + 1) if n + 1 not in numbers)

    def _connected(self) -> bool:
        """Whether there is a link, after an attempt if it was time for one."""
        if self._link is not None:
            return True
        if time.monotonic() < self._retry_at_s:
            return False
        with self._noticing():
            self._link = Link(self._host, self.id)
            self._offset_s = self._link.hello["clock_s"] - time.monotonic()
            self._fetch()
            self._failures, self._trouble = 0, None
        return self._link is not None

    @contextlib.contextmanager
    def _noticing(self) -> Iterator[None]:
        """What is done with a link; if that breaks, the link is gone and the reason kept."""
        try:
            yield
        except LinkLost as error:
            self._trouble = str(error)
            self._status = None
            if self._link is not None:
                self._link.close()
                self._link = None
            wait_s = RETRY_S[min(self._failures, len(RETRY_S) - 1)]
            self._retry_at_s = time.monotonic() + wait_s
            self._failures += 1

    def _fetch(self) -> None:
        """Fetch what the drone did that is not known here."""
        for entry in self._after(self._highest):
            self._keep(entry)

    def _all(self) -> list[Message]:
        return list(self._after(0))

    def _after(self, number: int) -> Iterator[Message]:
        while True:
            assert self._link is not None
            reply = self._link.ask("readings", after=number)
            yield from reply["entries"]
            if not reply["more"]:
                return
            number = reply["entries"][-1]["n"]

    def _keep(self, entry: Message) -> None:
        """Write an answer down, once."""
        if not is_entry(entry):
            raise DroneError("the drone sends an answer that is none: install the same release on "
                "both.")  # fmt: skip
        known = self._answers.get(entry["id"])
        if known is None:
            self._journal.append(entry)
            self._answers[entry["id"]] = entry
        elif known != entry:
            raise DroneError(
                f"answer {entry['id']} is not the same on the ground and on the drone. Both "
                f"journals are kept; the ground's is {self._journal.path}."
            )


@contextlib.contextmanager
def opened_flight(folder: Path, host: Host, **options: Any) -> Iterator[Flight]:
    """The flight in ``folder``, begun or gone on with; for nobody else meanwhile."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DroneError(f"{folder} cannot be made a folder: {error.strerror}.") from None
    with locked(folder / LOCK, "another influx-calib drone trigger"):
        flight = Flight(folder, host, **options)
        try:
            yield flight
        finally:
            flight.close()


def _flight_id(folder: Path) -> str:
    """The flight's name for the drone, made when the folder is new."""
    path = folder / FLIGHT
    try:
        if path.exists():
            return str(json.loads(path.read_text())["flight"])
        name = uuid.uuid4().hex
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text(json.dumps({"flight": name}) + "\n")
        os.replace(temporary, path)
        return name
    except OSError as error:
        raise DroneError(f"{path} cannot be used: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise DroneError(f"{path} is damaged. Choose another --out.") from None
