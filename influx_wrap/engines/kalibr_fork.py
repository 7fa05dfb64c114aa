"""Our fork of Kalibr: a checkout of one upstream commit, with the lines of ``patches/`` added.

Nothing of Kalibr is in this repository: the patches have neither context nor removed lines, and
find their places by line numbers alone. So the files that they touch are compared with the hashes
in ``third_party/kalibr/UPSTREAM`` first, and another version is refused before a line is changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.engines.kalibr_kind import RecognisedKalibr
from influx_wrap.errors import InputError
from influx_wrap.formats.files import file_hash, make_folder, read_text, read_yaml

SOURCE = Path(__file__).parents[2]
"""The clone of influx_wrap that this is part of; an installed package has no patches."""
UPSTREAM_FILE = Path("third_party/kalibr/UPSTREAM")
COMMAND_FILE = "aslam_offline_calibration/kalibr/python/kalibr_calibrate_cameras"
VERSION_FILE = "aslam_offline_calibration/kalibr/python/kalibr_camera_calibration/influx_run.py"
"""What only our fork has."""


@dataclass(frozen=True)
class PatchSeries:
    """The patches, and what they are for.

    patches  files in their order
    files    sha256 of each file that they add lines to, by its path in a checkout
    """

    patches: tuple[Path, ...]
    repository: str
    commit: str
    files: Mapping[str, str]


def read_series(source: Path = SOURCE) -> PatchSeries:
    """The series of a clone of influx_wrap."""
    path = source / UPSTREAM_FILE
    patches = tuple(sorted((source / "patches").glob("*.patch")))
    if not path.is_file() or not patches:
        raise InputError(
            "the patches for Kalibr are not part of the installed package: clone influx_wrap and "
            "run make kalibr there."
        )
    record = read_yaml(path)
    record.check_keys(("repository", "commit", "files"))
    files = record.record("files")
    hashes = {name: files.text(name) for name in files.values}
    return PatchSeries(patches, record.text("repository"), record.text("commit"), hashes)


def make_fork(checkout: Path, series: PatchSeries, repository: str | None = None) -> bool:
    """Clone upstream into ``checkout`` unless it is there, and apply the series.

    ``repository`` is cloned in place of upstream's own. False if it was our fork already.
    """
    if not checkout.exists():
        _clone(checkout, series, repository or series.repository)
    elif not checkout.is_dir():
        raise InputError(f"{checkout} is not a folder: name a checkout of Kalibr, or a new one.")
    elif repository is not None:
        raise InputError(f"{checkout} is there already: leave --from out, or name another folder.")
    if (checkout / VERSION_FILE).exists():
        _check_patched(checkout, series)
        return False
    different = _different_file(checkout, series)
    if different is not None:
        raise InputError(
            f"{checkout / different} is not that of Kalibr {series.commit[:12]}, which the patches "
            f"are for: git -C {checkout} checkout {series.commit}."
        )
    _git(checkout, "apply", "--unidiff-zero", *(str(path.resolve()) for path in series.patches))
    return True


def recognise_checkout(checkout: Path, series: PatchSeries) -> RecognisedKalibr:
    """Which Kalibr the sources in a folder are."""
    command = checkout / COMMAND_FILE
    if not command.is_file():
        raise InputError(f"{checkout} is no checkout of Kalibr: it has no {COMMAND_FILE}.")
    if (checkout / VERSION_FILE).exists():
        _check_patched(checkout, series)
        return RecognisedKalibr("fork", f"for Kalibr {series.commit[:12]}, with all patches")
    if "--detection-coords" in read_text(command):
        return RecognisedKalibr("influx")
    different = _different_file(checkout, series)
    if different is None:
        return RecognisedKalibr("upstream", f"{series.commit[:12]}, which the patches are for")
    return RecognisedKalibr("upstream", f"not {series.commit[:12]}: another {different}")


def _different_file(checkout: Path, series: PatchSeries) -> str | None:
    """The first file that is not the one the patches are for."""
    for name, expected in series.files.items():
        path = checkout / name
        if not path.is_file() or file_hash(path) != expected:
            return name
    return None


def _check_patched(checkout: Path, series: PatchSeries) -> None:
    """Refuse a fork that the series of today did not make: without it, upstream is left."""
    with tempfile.TemporaryDirectory(prefix="influx-kalibr-") as place:
        bare = Path(place)
        for name in sorted(patched_files(series)):
            if (checkout / name).is_file():
                (bare / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(checkout / name, bare / name)
        try:
            for path in reversed(series.patches):
                _git(bare, "apply", "--reverse", "--unidiff-zero", str(path.resolve()))
            is_ours = _different_file(bare, series) is None
        except InputError:
            is_ours = False
    if not is_ours:
        raise InputError(
            f"{checkout} has been patched, but not by these patches alone: git -C {checkout} "
            f"checkout --force {series.commit}, then git -C {checkout} clean -d --force, and again."
        )


def patched_files(series: PatchSeries) -> set[str]:
    """The files of a checkout that the series changes or adds."""
    texts = (read_text(path) for path in series.patches)
    return {name for text in texts for name in re.findall(r"^\+\+\+ b/(.+)$", text, re.MULTILINE)}


def _clone(checkout: Path, series: PatchSeries, repository: str) -> None:
    """A clone at the commit, whole or not at all."""
    part = checkout.with_name(f".{checkout.name}.part")
    make_folder(checkout.parent)
    shutil.rmtree(part, ignore_errors=True)
    try:
        _git(checkout.parent, "clone", "--quiet", "--no-checkout", repository, str(part.resolve()))
        _git(part, "-c", "advice.detachedHead=false", "checkout", "--quiet", series.commit)
        part.rename(checkout)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _git(folder: Path, *arguments: str) -> None:
    # A folder of ours is no checkout: without a .git of its own, that of ours must not be found.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.resolve().parent)}
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    except FileNotFoundError:
        raise InputError("git is not on the PATH: install it, the fork is made with it.") from None
    if done.returncode != 0:
        said = re.sub(r"^(fatal|error): ", "", (done.stderr.strip().splitlines() or ["?"])[-1])
        step = next(word for word in arguments if word in ("clone", "checkout", "apply"))
        raise InputError(f"git {step} failed in {folder}: {said.rstrip('.')}.")
