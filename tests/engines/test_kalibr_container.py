"""Containers, against a client that only pretends: how they are made, and that none is left."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from docker import errors

from influx_wrap.engines import kalibr
from influx_wrap.engines.kalibr import COMMAND, KalibrContainer, KalibrRun, RunFailed, docker_client
from influx_wrap.errors import InputError

EXITED = {"Status": "exited", "ExitCode": 0, "OOMKilled": False}
RUNNING = {"Status": "running", "ExitCode": 0, "OOMKilled": False}


class FakeContainer:
    """Goes through the states it is given; an exception among them is raised."""

    def __init__(self, client: "FakeClient", settings: dict[str, Any]) -> None:
        self.id = f"{len(client.made):064d}"
        self.settings = settings
        self.client = client
        self.killed = False
        self.attrs: dict[str, Any] = {}

    def start(self) -> None:
        if self.client.start_error is not None:
            raise self.client.start_error

    def reload(self) -> None:
        states = self.client.states
        state = states.pop(0) if len(states) > 1 else states[0]
        if isinstance(state, Exception):
            raise state
        self.attrs = {"State": state}

    def kill(self) -> None:
        if self.attrs.get("State") == EXITED:
            raise errors.APIError("is not running")
        self.killed = True

    def logs(self, *, stdout: bool, stderr: bool, stream: bool) -> Iterator[bytes]:
        yield from (b"first\n", b"last words\n")

    def remove(self, *, force: bool, v: bool) -> None:
        if self.client.busy_removals:
            self.client.busy_removals -= 1
            raise errors.APIError("removal is in progress")
        self.client.present.remove(self)


class FakeClient:
    def __init__(self, *states: Any, entrypoint: list[str] | None = None) -> None:
        self.states = list(states)
        self.entrypoint = entrypoint
        self.made: list[FakeContainer] = []
        self.present: list[FakeContainer] = []
        self.start_error: Exception | None = None
        self.create_error: Exception | None = None
        self.busy_removals = 0
        self.images = SimpleNamespace(get=self._image)
        self.containers = SimpleNamespace(create=self._create, list=self._list)

    def _image(self, name: str) -> Any:
        if name != "kalibr:1":
            raise errors.ImageNotFound("no such image")
        return SimpleNamespace(id="sha256:abc", attrs={"Config": {"Entrypoint": self.entrypoint}})

    def _create(self, image: str, command: list[str], **settings: Any) -> FakeContainer:
        if self.create_error is not None:
            raise self.create_error
        container = FakeContainer(self, {"image": image, "command": command, **settings})
        self.made.append(container)
        self.present.append(container)
        return container

    def _list(self, *, all: bool, filters: dict[str, str]) -> list[FakeContainer]:
        assert all
        name, _, value = filters["label"].partition("=")
        return [c for c in self.present if c.settings["labels"].get(name) == value]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kalibr, "POLL_S", 0.001)


@pytest.fixture
def asked(tmp_path: Path) -> KalibrRun:
    report = tmp_path / "rollout-000"
    report.mkdir()
    return KalibrRun(
        ("--a", "b c"), report / "kalibr.log", tmp_path, report, {"INFLUX_SEED": "5"}, "7\n"
    )


def drive(client: FakeClient, run: KalibrRun, timeout_s: float = 60.0) -> None:
    KalibrContainer("kalibr:1", client).run(run, timeout_s, threading.Event())


def test_how_it_is_made(asked: KalibrRun, tmp_path: Path) -> None:
    client = FakeClient(RUNNING, RUNNING, EXITED)
    drive(client, asked)
    (container,) = client.made
    made = container.settings
    assert made["network_mode"] == "none"
    assert made["read_only"] is True
    assert set(made["tmpfs"]) == {"/tmp"}
    user, group = (int(number) for number in made["user"].split(":"))
    assert (user, group) == (tmp_path.stat().st_uid, tmp_path.stat().st_gid)
    mounted = {m["Target"]: (m["Source"], m["Type"], m["ReadOnly"]) for m in made["mounts"]}
    assert mounted == {
        "/experiment": (str(tmp_path), "bind", True),
        "/report": (str(tmp_path / "rollout-000"), "bind", False),
    }
    assert made["environment"]["INFLUX_SEED"] == "5"
    assert made["environment"]["INFLUX_TYPED"] == "7"
    assert made["command"] == ["--a", "b c"]
    assert asked.log.read_text() == "first\nlast words\n"
    assert client.present == []


@pytest.mark.parametrize(
    ("entrypoint", "kept"),
    [(None, []), (["start-up"], ["start-up"]), (["/bin/sh", "-c", "exec bash"], [])],
)
def test_entry_points(asked: KalibrRun, entrypoint: list[str] | None, kept: list[str]) -> None:
    client = FakeClient(EXITED, entrypoint=entrypoint)
    drive(client, asked)
    made = client.made[0].settings["entrypoint"]
    assert made[: len(kept)] == kept
    assert made[len(kept) :][:2] == ["/bin/sh", "-c"]
    assert made[-1] == COMMAND


@pytest.mark.parametrize(
    ("states", "reason"),
    [
        ([RUNNING, {**EXITED, "ExitCode": 137, "OOMKilled": True}], "ran out of memory"),
        ([RUNNING, {**EXITED, "ExitCode": 137}], "was killed, from outside"),
        ([RUNNING, {**EXITED, "ExitCode": 143}], "was ended by signal 15"),
        ([{**EXITED, "ExitCode": 1}], "ended with exit code 1"),
        ([{**EXITED, "ExitCode": 255}], "ended with exit code 255"),
        ([RUNNING, errors.NotFound("gone")], "removed from outside"),
        ([RUNNING, errors.APIError("no such container")], "removed from outside"),
        ([RUNNING, requests.exceptions.ConnectionError("refused")], "lost the container engine"),
    ],
)
def test_bad_endings(asked: KalibrRun, states: list[Any], reason: str) -> None:
    client = FakeClient(*states)
    with pytest.raises(RunFailed, match=reason):
        drive(client, asked)
    assert client.present == []


def test_hang(asked: KalibrRun) -> None:
    client = FakeClient(RUNNING)
    with pytest.raises(RunFailed, match=r"did not end within 0\.05 s"):
        drive(client, asked, timeout_s=0.05)
    assert client.made[0].killed
    assert client.present == []
    assert "last words" in asked.log.read_text()


def test_stopped_in_the_middle(asked: KalibrRun) -> None:
    client = FakeClient(RUNNING)
    stop = threading.Event()
    failures: list[str] = []

    def work() -> None:
        try:
            KalibrContainer("kalibr:1", client).run(asked, 60, stop)
        except RunFailed as error:
            failures.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    while not client.made:
        time.sleep(0.001)
    stop.set()
    thread.join(timeout=10)
    assert failures == ["was stopped"]
    assert client.made[0].killed
    assert client.present == []


def test_not_started(asked: KalibrRun) -> None:
    client = FakeClient(EXITED)
    client.start_error = errors.NotFound("exec: /bin/sh: no such file")
    with pytest.raises(RunFailed, match="could not be started: exec"):
        drive(client, asked)
    assert client.present == []
    client.create_error = errors.APIError("no space left on device")
    with pytest.raises(RunFailed, match="got no container: no space left"):
        drive(client, asked)


def test_removal_is_tried_again(asked: KalibrRun, caplog: pytest.LogCaptureFixture) -> None:
    client = FakeClient(EXITED)
    client.busy_removals = 2
    drive(client, asked)
    assert client.present == []
    client.busy_removals = 99
    with caplog.at_level("WARNING"):
        drive(client, asked)
    assert "docker rm --force 0000" in caplog.text


def test_leftovers(asked: KalibrRun, tmp_path: Path) -> None:
    client = FakeClient(EXITED)
    client.busy_removals = 6
    drive(client, asked)
    other = tmp_path / "other"
    other.mkdir()
    drive(client, KalibrRun((), tmp_path / "log", other))
    assert len(client.present) == 2
    KalibrContainer("kalibr:1", client).sweep(tmp_path)
    assert [c.settings["mounts"][0]["Source"] for c in client.present] == [str(other)]


def test_no_image() -> None:
    with pytest.raises(InputError, match="no container image kalibr:2"):
        KalibrContainer("kalibr:2", FakeClient())
    assert KalibrContainer("kalibr:1", FakeClient()).identity() == {"image": "sha256:abc"}


def test_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(InputError, match="no container engine answers"):
        docker_client()


def test_no_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise errors.DockerException("Error: PermissionError(13, 'Permission denied')")

    monkeypatch.setattr("docker.DockerClient.from_env", refuse)
    with pytest.raises(InputError, match="may not be opened by this user"):
        docker_client()
