"""Where a real Kalibr runs: installed locally, or in a container.

A run is one call of ``kalibr_calibrate_cameras``. It reads the experiment's folder, writes into
a folder of its own, and ends by itself, at its time limit, or when it is told to stop; what it
prints is kept. A container sees these two folders and nothing else of the machine, has no
network, cannot write anywhere else and is removed however the run ends. Containers carry labels,
so that those of a command that was killed are found by the next.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from influx_wrap.errors import InputError, install_line
from influx_wrap.formats.files import file_hash

log = logging.getLogger(__name__)

COMMAND = "kalibr_calibrate_cameras"
FOCAL_LENGTH = "FOCAL_LENGTH_GUESS"
MANUAL_FOCAL_LENGTH = "KALIBR_MANUAL_FOCAL_LENGTH_INIT"
SEED = "INFLUX_SEED"
NEEDED = re.compile(
    r"PATH|HOME|TMPDIR|TZ|LANG|LANGUAGE|LC_[A-Z]+"
    r"|PYTHONPATH|PYTHONHOME|VIRTUAL_ENV|CONDA_PREFIX|LD_LIBRARY_PATH"
    r"|ROS_[A-Z_]+|ROSLISP_PACKAGE_DIRECTORIES|CMAKE_PREFIX_PATH|AMENT_PREFIX_PATH"
    r"|COLCON_PREFIX_PATH|PKG_CONFIG_PATH"
    r"|[A-Z]+_NUM_THREADS|OPENBLAS_CORETYPE"
)
"""Names in the caller's environment that a program in a ROS workspace goes by. Kalibr is somebody
else's program: the caller's tokens, agents and passwords are none of its business."""
LABEL = "influx_wrap.folder"
"""The label of our containers; its value says for which experiment's folder."""
POLL_S = 0.1
REMOVAL_ATTEMPTS = 3

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LOG_PREFIX = re.compile(r"\[ *[A-Z]+\] \[\d+\.\d+\]: ")

# Kalibr's own image has the command only in its ROS workspace, whose set-up would take our
# arguments for its own, but for the function around it.
_IN_IMAGE = f"""
workspace="${{WORKSPACE:-/catkin_ws}}"
set_up() {{ . "$workspace/devel/setup.sh"; PATH="$workspace/devel/lib/kalibr:$PATH"; }}
command -v {COMMAND} >/dev/null || [ ! -f "$workspace/devel/setup.sh" ] || set_up
command -v {COMMAND} >/dev/null || {{ echo "{COMMAND} is not in this image"; exit 127; }}
if [ -n "$INFLUX_TYPED" ]; then
  echo "$INFLUX_TYPED" | {COMMAND} "$@"
else
  exec {COMMAND} "$@" </dev/null
fi
"""


class RunFailed(Exception):
    """A run without a result; the message goes on where "the run ..." began."""


@dataclass(frozen=True)
class KalibrRun:
    """One call of the command.

    experiment   folder it may read
    report       folder it may write
    log          file for what it prints
    typed        what is typed at its prompts
    """

    arguments: tuple[str, ...]
    log: Path
    experiment: Path | None = None
    report: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    typed: str = ""


class Place(Protocol):
    """Where runs take place."""

    def seen_as(self, experiment: Path, report: Path) -> tuple[Path, Path]:
        """The names that an experiment's folder and a run's folder have for Kalibr."""

    def run(self, run: KalibrRun, timeout_s: float, stop: threading.Event) -> None:
        """Wait for the end of a run; raises ``RunFailed`` unless it was a good one."""

    def sweep(self, experiment: Path) -> None:
        """Remove what a killed command left of an experiment's runs."""

    def identity(self) -> dict[str, Any]:
        """Which Kalibr this is, for provenance."""


class LocalKalibr:
    """A Kalibr on the PATH, or the one that is named."""

    def __init__(self, command: Path | None = None) -> None:
        found = shutil.which(COMMAND if command is None else command.absolute())
        if found is None and command is not None:
            raise InputError(f"{command} is neither a command nor a folder.")
        if found is None:
            raise InputError(
                f"{COMMAND} is not on the PATH: source Kalibr's workspace and put its folder "
                "devel/lib/kalibr on the PATH, or name a container image with --image."
            )
        self._command = Path(found)
        self._name = f"the {COMMAND} on the PATH" if command is None else str(command)

    def __str__(self) -> str:
        return self._name

    def seen_as(self, experiment: Path, report: Path) -> tuple[Path, Path]:
        """The names they have."""
        return experiment.resolve(), report.resolve()

    def run(self, run: KalibrRun, timeout_s: float, stop: threading.Event) -> None:
        """As a process with a session of its own: it must not hear of our Ctrl-C.

        Of our environment it gets what is ``NEEDED``, and its own settings.
        """
        inherited = {name: text for name, text in os.environ.items() if NEEDED.fullmatch(name)}
        deadline = time.monotonic() + timeout_s
        try:
            with run.log.open("wb") as output:
                process = subprocess.Popen(
                    [self._command, *run.arguments],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=run.report,
                    env={**inherited, **run.environment},
                    start_new_session=True,
                )
        except OSError as error:
            raise RunFailed(f"could not be started: {error.strerror}") from None
        try:
            assert process.stdin is not None
            with suppress(BrokenPipeError), process.stdin as prompt:
                prompt.write(run.typed.encode())
            while process.poll() is None:
                _check_time(deadline, timeout_s, stop)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
        finally:
            if process.poll() is None:
                # With all it has started: a shell or rosrun is not Kalibr itself.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        _check_ending(process.returncode, out_of_memory=False)

    def sweep(self, experiment: Path) -> None:
        """Processes carry no labels; there is nothing to find them by."""

    def identity(self) -> dict[str, Any]:
        """The hash of the command; of a workspace's, which only names a script, of its sources."""
        hashes = [file_hash(self._command)]
        named = re.search(rf"[\"'](/[^\"']+/{COMMAND})[\"']", self._command.read_text("latin-1"))
        if named is not None and Path(named[1]).is_file():
            sources = sorted(Path(named[1]).parent.glob("kalibr_c*/*.py"))
            hashes += [file_hash(path) for path in (Path(named[1]), *sources)]
        if len(hashes) == 1:
            return {"command": hashes[0]}
        return {"command": hashlib.sha256("".join(hashes).encode()).hexdigest()}


class KalibrContainer:
    """A Kalibr in the container image ``image``; ``client`` is a ``docker.DockerClient``."""

    EXPERIMENT = Path("/experiment")
    REPORT = Path("/report")

    def __init__(self, image: str, client: Any) -> None:
        import docker

        self._image = image
        self._client = client
        # The engine going away shows as the transport's errors, which are all OSErrors.
        self._faults = (docker.errors.DockerException, OSError)
        self._gone = docker.errors.NotFound
        try:
            found = client.images.get(image)
        except docker.errors.ImageNotFound:
            raise InputError(
                f"there is no container image {image} on this machine: pull or build it first "
                "(our own: make image)."
            ) from None
        except self._faults as error:
            raise InputError(
                f"the container engine does not answer for image {image}: {_brief(error)}."
            ) from None
        self._id = str(found.id)
        entry = found.attrs["Config"].get("Entrypoint") or []
        # One that is a line for a shell, as Kalibr's own, would not pass a command on.
        self._entry = [] if entry[:1] == ["/bin/sh"] else list(entry)

    def __str__(self) -> str:
        return f"the image {self._image}"

    def seen_as(self, experiment: Path, report: Path) -> tuple[Path, Path]:
        """Where they are mounted, which is the same for every run."""
        return self.EXPERIMENT, self.REPORT

    def run(self, run: KalibrRun, timeout_s: float, stop: threading.Event) -> None:
        """In a container of its own, which is removed afterwards."""
        deadline = time.monotonic() + timeout_s
        try:
            container = self._create(run)
        except self._faults as error:
            raise RunFailed(f"got no container: {_brief(error)}") from None
        try:
            state = self._wait(container, deadline, timeout_s, stop)
        finally:
            self._dispose(container, run.log)
        _check_ending(int(state["ExitCode"]), out_of_memory=bool(state.get("OOMKilled")))

    def sweep(self, experiment: Path) -> None:
        """Remove containers with this experiment's label."""
        wanted = {"label": f"{LABEL}={_label(experiment)}"}
        try:
            for container in self._client.containers.list(all=True, filters=wanted):
                log.info("removing the container %s of an earlier command", container.id[:12])
                self._remove(container)
        except self._faults as error:
            log.info("leftover containers could not be looked for: %s", _brief(error))

    def identity(self) -> dict[str, Any]:
        """The image's own id: its name may mean another one tomorrow."""
        return {"image": self._id}

    def _create(self, run: KalibrRun) -> Any:
        from docker.types import Mount

        mounts = [
            Mount(str(target), str(source.resolve()), type="bind", read_only=read_only)
            for source, target, read_only in (
                (run.experiment, self.EXPERIMENT, True),
                (run.report, self.REPORT, False),
            )
            if source is not None
        ]
        # A home folder that can be written: ROS and matplotlib want one.
        environment = {"HOME": "/tmp", **run.environment, "INFLUX_TYPED": run.typed.strip()}
        return self._client.containers.create(
            self._image,
            list(run.arguments),
            entrypoint=[*self._entry, "/bin/sh", "-c", _IN_IMAGE, COMMAND],
            environment=environment,
            labels={LABEL: _label(run.experiment)},
            mounts=mounts,
            network_mode="none",
            read_only=True,
            tmpfs={"/tmp": "mode=1777"},
            user=f"{os.getuid()}:{os.getgid()}",
            working_dir=str(self.REPORT if run.report else "/tmp"),
        )

    def _wait(
        self, container: Any, deadline: float, timeout_s: float, stop: threading.Event
    ) -> dict[str, Any]:
        """Start a container; what the engine says of it when it has ended."""
        try:
            container.start()
        except self._faults as error:
            raise RunFailed(f"could not be started: {_brief(error)}") from None
        while True:
            try:
                container.reload()
            except self._faults as error:
                # Podman has another code for a container that is gone while it looks.
                if isinstance(error, self._gone) or "no such container" in str(error):
                    raise RunFailed("lost its container, which was removed from outside") from None
                raise RunFailed(f"lost the container engine: {_brief(error)}") from None
            state: dict[str, Any] = container.attrs["State"]
            if state["Status"] in ("exited", "stopped", "dead"):
                return state
            _check_time(deadline, timeout_s, stop)
            time.sleep(POLL_S)

    def _dispose(self, container: Any, log_path: Path) -> None:
        """Stop a container that still runs, keep what it printed, remove it."""
        # Killing one that has ended is refused, which is just as well.
        with suppress(*self._faults):
            container.kill()
        try:
            with log_path.open("wb") as file:
                for part in container.logs(stdout=True, stderr=True, stream=True):
                    file.write(part)
        except self._faults as error:
            log.info("the log of container %s is incomplete: %s", container.id[:12], error)
        self._remove(container)

    def _remove(self, container: Any) -> None:
        for attempt in range(REMOVAL_ATTEMPTS):
            try:
                container.remove(force=True, v=True)
            except self._gone:
                return
            except self._faults as error:
                problem = _brief(error)
                time.sleep(POLL_S * (attempt + 1))
            else:
                return
        log.warning(
            "container %s could not be removed (%s): docker rm --force %s",
            *(container.id[:12], problem, container.id[:12]),
        )


def docker_client() -> Any:
    """A connection to the container engine, as the environment names it (DOCKER_HOST)."""
    try:
        # By name: a folder called docker is a package of that name, too, without any content.
        from docker import DockerClient, errors
    except ImportError:
        raise InputError(f"--image needs the docker package: {install_line('docker')}.") from None
    try:
        return DockerClient.from_env()
    except (errors.DockerException, OSError) as error:
        if "Permission denied" in str(error):
            raise InputError(
                "the container engine's socket may not be opened by this user: join the group "
                "docker, or set DOCKER_HOST to an engine of your own."
            ) from None
        raise InputError(
            f"no container engine answers ({_brief(error)}): start Docker, or podman system "
            "service with DOCKER_HOST set to its socket."
        ) from None


def _check_time(deadline: float, timeout_s: float, stop: threading.Event) -> None:
    if stop.is_set():
        raise RunFailed("was stopped")
    if time.monotonic() > deadline:
        raise RunFailed(f"did not end within {timeout_s:g} s")


def _check_ending(code: int, *, out_of_memory: bool) -> None:
    """``code`` is that of a process (minus a signal) or of a shell (128 plus a signal)."""
    if code == 0:
        return
    if out_of_memory:
        raise RunFailed("ran out of memory")
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        raise RunFailed("was killed, from outside or because memory ran out")
    if code < 0 or (code > 128 and code - 128 in set(signal.Signals)):
        number = -code if code < 0 else code - 128
        raise RunFailed(f"was ended by signal {number}")
    raise RunFailed(f"ended with exit code {code}")


def _label(experiment: Path | None) -> str:
    """Labels are seen by all users of an engine: a folder's hash will do."""
    folder = "" if experiment is None else str(experiment.resolve())
    return hashlib.sha256(folder.encode()).hexdigest()[:16]


def _brief(error: Exception) -> str:
    explanation = getattr(error, "explanation", None) or str(error)
    return " ".join(str(explanation).split())[:200].rstrip(".")


def printed(log: Path) -> str:
    """What a run has printed; nothing if it was never started."""
    try:
        return log.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def last_words(log: Path) -> str:
    """The last line of a log, in brackets, without the machine's folders."""
    lines = [line.strip() for line in printed(log).splitlines() if line.strip()]
    if not lines:
        return ""
    folder = str(log.parent.parent.resolve())
    return f" ({plain_words(lines[-1]).replace(folder, '')[:200].rstrip('.')})"


def plain_words(line: str) -> str:
    """A line of Kalibr's log without the terminal's colours, the level and the time."""
    return _LOG_PREFIX.sub("", _COLOUR.sub("", line))
