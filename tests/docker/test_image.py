"""The image, built and run by a real container engine: Debian's podman.

No registry is asked for a base: debootstrap makes one. It stays in podman's storage with the
libraries installed on it, so that the next run of these tests is a shorter one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import documented

ROOT = Path(__file__).parents[2]
SUITE = "bookworm"
BASE = f"localhost/influx_wrap-test-base:{SUITE}"
IMAGE = "localhost/influx_wrap:test"
CALIB = Path(sys.executable).parent / "influx-calib"
CELL = "z6f5"
NOBODY = 65534
COMMANDS = (
    "influx-calib",
    "kalibr_calibrate_cameras",
    "kalibr_detect_corners",
    "kalibr_create_target_pdf",
    "kalibr_bagcreater",
)

# Podman's own limits are above what small machines allow.
CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile=1000:1000", "nproc=500:500"]
[engine]
runtime = "runc"
"""

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(os.getuid() != 0, reason="debootstrap works for root only"),
]


def execute(*command: object, **environment: str) -> str:
    """The standard output of a command that must succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def contained(*command: object, options: tuple[str, ...] = ()) -> str:
    """What a command prints that runs as nobody, with no network and nothing to write but /tmp."""
    limits = ("--network=none", "--read-only", "--tmpfs=/tmp:mode=1777", "--cap-drop=all")
    user = f"--user={NOBODY}:{NOBODY}"
    return execute("podman", "run", "--rm", *limits, user, *options, IMAGE, *command)


@pytest.fixture(scope="module", autouse=True)
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = tmp_path_factory.mktemp("podman") / "containers.conf"
    path.write_text(CONTAINERS_CONF)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_CONF", str(path))
        yield


@pytest.fixture(scope="module", autouse=True)
def image(configuration: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Built by ``make image``."""
    if subprocess.run(["podman", "image", "exists", BASE]).returncode != 0:
        make_base(tmp_path_factory.mktemp("base"))
    flags = ["--network=host", f"--build-arg=BASE={BASE}", *pip_settings()]
    execute("make", "image", "ENGINE=podman", f"IMAGE={IMAGE}", f"IMAGE_FLAGS={' '.join(flags)}")
    yield
    # By force: a container that a killed run has left may still be on its way out.
    execute("podman", "image", "rm", "--force", IMAGE)


def make_base(folder: Path) -> None:
    """A Debian with Python, from where this machine's packages come."""
    fields = "$(REPO_URI) $(CODENAME) $(LABEL)"
    targets = execute("apt-get", "indextargets", "--format", fields, "Created-By: Packages")
    lines = [line.split() for line in targets.splitlines()]
    mirrors = [line[0] for line in lines if line[1:] == [SUITE, "Debian"]]
    if not mirrors:
        pytest.skip(f"this machine's packages do not come from Debian {SUITE}")
    root, archive = folder / "root", folder / "root.tar"
    packages = "--include=python3,python3-venv,ca-certificates"
    execute("debootstrap", "--variant=minbase", packages, SUITE, root, mirrors[0])
    for cache in ("var/cache/apt", "var/lib/apt/lists"):
        shutil.rmtree(root / cache)
    execute("tar", "--directory", root, "--create", "--file", archive, ".")
    shutil.rmtree(root)
    execute("podman", "import", archive, BASE)
    archive.unlink()


def pip_settings() -> list[str]:
    """Options that let pip reach its packages from a build as it does from here."""
    pip = (sys.executable, "-m", "pip", "config")
    files = re.findall(r"^ *(/.*), exists: True$", execute(*pip, "debug"), re.MULTILINE)
    listed = execute(*pip, "list")
    named = re.findall(r"['\s](/[^'\s]*)", listed)
    # An index on disk names files that lie beside it.
    indices = [str(Path(path).parent) for path in re.findall(r"file://(/[^'\s]*)", listed)]
    paths = [path for path in dict.fromkeys([*files, *named, *indices]) if Path(path).exists()]
    return [f"--volume={path}:{path}:ro" for path in paths]


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder that others may look into; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory(prefix="influx-image-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="module")
def data(open_folder: Path) -> Path:
    """A folder with one simulated experiment."""
    execute(CALIB, "simulate", "canon17", "--cells", CELL, "--out", open_folder / "data")
    return open_folder / "data"


def calibrate_arguments(experiment: Path, out: Path) -> list[object]:
    return [
        *("calibrate", "--target", experiment / "target.yaml"),
        *("--coords", experiment / "coords_2d.csv", "--successes", experiment / "successes.csv"),
        *("--size", "3424x2202", "--lfl-mm", 80, "--fd-m", 2.7, "--pixel-um", 8.25),
        *("--rollouts", 4, "--seed", 7, "--out", out / "result.json"),
    ]


@pytest.fixture(scope="module")
def inside(open_folder: Path, data: Path) -> Path:
    """The folder of a result that nobody made in a container, beside what it left in /tmp."""
    out = open_folder / "inside"
    out.mkdir()
    os.chown(out, NOBODY, NOBODY)
    arguments = calibrate_arguments(Path("/data") / CELL, Path("/out"))
    script = 'influx-calib "$@" && find /tmp/cache -type f >/out/compiled.txt'
    mounts = (f"--volume={data}:/data:ro", f"--volume={out}:/out")
    contained("sh", "-c", script, "sh", *arguments, options=mounts)
    return out


def test_the_result_is_the_same_outside_byte_for_byte(
    inside: Path, data: Path, tmp_path: Path
) -> None:
    version = contained("python", "-c", "import platform; print(platform.python_version())")
    # Results name the Python they were made with, to the last digit.
    python = shutil.which("python3.11", path="/usr/bin")
    if python is None or execute(python, "--version").split()[1] != version.strip():
        pytest.skip(f"there is no Python {version.strip()} outside")
    execute(python, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = str(tmp_path / "venv" / "bin" / "python")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    lock = ROOT / "docker" / "requirements.txt"
    execute(*pip, "--require-hashes", "--only-binary", ":all:", "--requirement", lock)
    main = "from influx_wrap.cli.main import main; main()"
    arguments = calibrate_arguments(data / CELL, tmp_path)
    execute(python, "-c", main, *arguments, PYTHONPATH=f"{ROOT}:{ROOT / 'drone'}")
    assert (tmp_path / "result.json").read_bytes() == (inside / "result.json").read_bytes()


def test_files_belong_to_the_caller(inside: Path) -> None:
    status = (inside / "result.json").stat()
    assert (status.st_uid, status.st_gid) == (NOBODY, NOBODY)


def test_no_kernel_is_compiled_at_run_time(inside: Path) -> None:
    # The image's own are links.
    assert (inside / "compiled.txt").read_text() == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_on_the_path(command: str) -> None:
    assert "usage" in contained(command, "--help").lower()


def test_the_root_cannot_be_written_and_the_user_is_not_root() -> None:
    script = "id -u; touch /opt/influx/x 2>/dev/null || echo read-only; ls /sys/class/net"
    assert contained("sh", "-c", script).split() == [str(NOBODY), "read-only", "lo"]
    configured = execute("podman", "image", "inspect", "--format", "{{.Config.User}}", IMAGE)
    assert configured.strip() not in ("", "0", "root", "0:0")


def test_make_calibrate_in_the_image(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    engine = ("IN=docker", "ENGINE=podman", f"IMAGE={IMAGE}")
    execute("make", "calibrate", *engine, f"DATA={data}", f"OUT={run}", "RECIPE=batch")
    result = json.loads((run / "cells" / CELL / "result.json").read_text())
    truth = result["truth"]["intrinsics"]
    for name in ("fx", "fy"):
        assert abs(result["intrinsics"][name] - truth[name]) < 4 * result["sigma"][name]
    assert {path.stat().st_uid for path in run.rglob("*")} == {os.getuid()}


def test_the_documented_command(data: Path, tmp_path: Path) -> None:
    (tmp_path / "film").symlink_to(data)
    shim = tmp_path / "bin" / "docker"
    shim.parent.mkdir()
    shim.write_text('#!/bin/sh\nexec podman "$@"\n')
    shim.chmod(0o755)
    [script] = documented("container.md", "tests/docker/test_image.py")
    execute("podman", "tag", IMAGE, "influx_wrap")
    try:
        path = f"{shim.parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "PATH": path},
        )  # fmt: skip
    finally:
        execute("podman", "untag", IMAGE, "localhost/influx_wrap:latest")
    assert done.returncode == 0, done.stderr
    assert "1 cell ok, 0 failed" in done.stdout
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["IN=moon"], "IN=moon is not known"),
        (["IN=docker", "ENGINE="], "Neither docker nor podman answers"),
        (["IN=docker", "ENGINE=podman", "DATA=no/such"], "DATA=no/such is not a folder"),
    ],
)
def test_mistakes(arguments: list[str], sentence: str) -> None:
    done = subprocess.run(
        ["make", "calibrate", f"IMAGE={IMAGE}", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode != 0
    assert sentence in done.stdout + done.stderr


@pytest.fixture
def socket(configuration: None, tmp_path: Path) -> Iterator[str]:
    """The address at which podman speaks as Docker does."""
    path = tmp_path / "engine.sock"
    command = ["podman", "system", "service", "--time", "0", f"unix://{path}"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            if path.exists():
                break
            time.sleep(0.05)
        yield f"unix://{path}"
    finally:
        process.terminate()
        process.wait()


# Our own command without the sentence by which it says that it is no Kalibr.
SECRETIVE = f"""
FROM {IMAGE}
USER 0
RUN own=$(command -v kalibr_calibrate_cameras) && mv "$own" "$own.own" && \\
    printf '#!/bin/sh\\n"%s.own" "$@" | grep -v "own command of that name"\\n' "$own" > "$own" && \\
    chmod 755 "$own"
"""


@pytest.fixture
def kalibr_image(configuration: None, tmp_path: Path) -> Iterator[str]:
    """The name of an image that passes for one with a Kalibr."""
    name = "localhost/influx_wrap:kalibr"
    file = tmp_path / "Dockerfile"
    file.write_text(SECRETIVE)
    execute("podman", "build", "--network", "none", "--file", file, "--tag", name, tmp_path)
    yield name
    execute("podman", "rmi", "--force", name)


def test_it_is_no_kalibr(socket: str, data: Path, tmp_path: Path) -> None:
    arguments = [str(word) for word in calibrate_arguments(data / CELL, tmp_path)]
    done = subprocess.run(
        [CALIB, *arguments, "--engine", "kalibr", "--image", IMAGE],
        env={**os.environ, "DOCKER_HOST": socket},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "is influx_wrap's own imitation, not a Kalibr" in done.stderr


def test_it_is_driven_as_a_kalibr_is_and_one_run_is_killed(
    socket: str, kalibr_image: str, data: Path, tmp_path: Path
) -> None:
    ours = ["podman", "ps", "--quiet", "--filter", "label=influx_wrap.folder"]
    arguments = [str(word) for word in calibrate_arguments(data / CELL, tmp_path)]
    command = [CALIB, *arguments, "--engine", "kalibr", "--image", kalibr_image]
    process = subprocess.Popen(
        [*command, "--rollouts", "8", "--jobs", "2"],
        env={**os.environ, "DOCKER_HOST": socket},
        stderr=subprocess.PIPE,
        text=True,
    )
    # The first of them is --help, which has no report to write.
    while process.poll() is None:
        started = sorted(tmp_path.glob("**/rollout-*/"))
        running = execute(*ours).split()
        if len(started) >= 2 and len(running) == 2:
            execute("podman", "kill", running[0])
            break
        time.sleep(0.1)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    runs = json.loads((tmp_path / "result.json").read_text())["engine"]["runs"]
    failures = [run["failure"] for run in runs if run["failure"]]
    assert len(runs) == 8
    assert len(failures) == 1
    assert "was killed" in failures[0]
    assert execute(*ours, "--all").split() == []
