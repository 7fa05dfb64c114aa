"""Files as an enemy, a bad disk or a hurried person leaves them, through every reader there is.

``python -m tests.mutate 10000`` changes whole files where their structure is (a node of a tree, a
cell of a table, a chunk of a picture with its checksum made right again) and hands each to a
command, or to the function that reads it. What must come of it is an answer or one sentence:
exit code 0 or 2, within ``MOST_SECONDS`` and ``MOST_MIB``. The same seed gives the same files.
``tests/test_mutate.py`` runs a few of them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import yaml
from click.testing import CliRunner

from influx_drone.errors import DroneError
from influx_wrap.cli.main import main as influx_calib
from influx_wrap.errors import InputError
from influx_wrap.formats import (
    arrays,
    experiment,
    flight,
    kalibr,
    kalibr_log,
    kalibr_results,
    manifest,
)
from influx_wrap.formats import recording_truth as truths
from influx_wrap.formats.detections import read_summary
from influx_wrap.formats.export.camchain import camchain_text
from influx_wrap.formats.flight_recording import read_flight_recording
from influx_wrap.formats.freshness import is_made_from
from influx_wrap.formats.influx import read_lens_settings
from influx_wrap.formats.kalibr import write_observations, write_target
from influx_wrap.formats.lut import write_table
from influx_wrap.formats.pairs import read_review
from influx_wrap.formats.ply import open_ply
from influx_wrap.formats.poses import read_poses, write_poses
from influx_wrap.formats.rosbag import image_topic, write_bag
from influx_wrap.formats.runner_answer import camera_of
from influx_wrap.formats.view_names import read_view_names
from influx_wrap.formats.yaml_text import parse_yaml_text
from influx_wrap.model.intrinsics import project
from influx_wrap.model.observations import Observations
from influx_wrap.model.pose import transform
from influx_wrap.model.truth import Noise
from influx_wrap.observe.sources import open_frames
from influx_wrap.predict.runner import read_runner
from influx_wrap.run.workspace import Workspace
from tests.clips import CAMERA, GRID, SIZE, pose
from tests.clips import picture as board_picture
from tests.formats.test_pairs import FLASHES, GOOD, READINGS
from tests.lut.lenses import breathing_table
from tests.model.records import make_record
from tests.mutated_json import CELLS

MOST_SECONDS, MOST_MIB = 10.0, 2048
GIVE_UP_S = 60.0
"""After so long a process is killed, whatever it is doing."""
ADDRESS_SPACE = 16 << 30


# --- what is done to a file -------------------------------------------------------------------

JSON_TOKENS = (
    "NaN", "Infinity", "-Infinity", "0", "-1", "-0.0", "1e-320", "1e308", "-1e308", "1e400",
    "1" + "0" * 29, "9" * 400, "7" * 1000, "7" * 10_000, "0." + "3" * 10_000, "1e99999999999",
    "0.5", "1000000", "4294967296", "1e16", "100000000000", "true", "null", '""', '" "', '"inf"',
    '"nan"', '"12mm"', "[]", "{}", "[1, 2]", '[null, "a"]', '{"a": 1}', "[[[]]]", '"\\u0000"',
    '"\\ud800"', '"\\udfff\\ud800"', '"../.."', '"/"', '"/etc/passwd"', '"板"', '"\\u202egpj"',
    '"<script>"', "undefined", "[" * 99 + "]" * 99, "[" * 200 + "]" * 200, "[" * 100_000,
    '{"a":' * 500 + "1" + "}" * 500, '"' + "x" * 100_000 + '"', "[" + "0," * 100_000 + "0]",
    "[" + "[0, 0, 0, 0]," * 20_000 + "[]]", '{"fx": 1}', '"canon17"', "2026", "-2147483649",
)  # fmt: skip
YAML_TOKENS = (
    ".nan", ".inf", "-.inf", "0x" + "f" * 5000, "1" + ":59" * 5000, "0b" + "1" * 5000, "1_000",
    "1,5", "1.2.3", "~", "!!binary aGk=", "!!python/object:os.system {}", "!!int ''", "!!float x",
    "!!timestamp x", "!!set {a}", "!!omap [a: 1]", "&x [*x]", "*unknown", "2026-13-45",
    "2026-11-18", "1:30", "'\\0'", '"\\0"', '"\\ud800"', "|\n  text", "=", "<<", "on", "yes",
    "&a [x, x, x, x, x, x, x, x, x]", "{<<: [1]}", "{<<: {a: 1}}", "? [a]", "'a\n\n b'", "---",
)  # fmt: skip
BOMB = "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" if before else f"a: &a [{'x, ' * 9}]\n"
    for before, name in zip(["", *"abcdefgh"], "abcdefghi", strict=True)
)
_MARK = "\ue000"
NAMES = ("x", "-1", "", "0" * 20, "format", "7", "\u202e", "a" * 1000, "<<", "constructor")


def _places(node: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = (
        list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    )
    for key in keys:
        yield (*way, key)
        yield from _places(node[key], (*way, key))


def change_tree(text: str, rng: np.random.Generator, tokens: tuple[str, ...]) -> str:
    """One to three nodes replaced, removed, renamed, repeated or moved; what is no JSON any more
    stays as it is."""
    for _ in range(rng.integers(1, 4)):
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError):
            return text
        places = list(_places(tree))
        if not places:
            return tokens[rng.integers(len(tokens))]
        *way, last = places[rng.integers(len(places))]
        parent = tree
        for key in way:
            parent = parent[key]
        token = tokens[rng.integers(len(tokens))]
        kind = rng.choice(["value"] * 5 + ["drop", "rename", "twice", "many", "swap"])
        if kind == "drop":
            del parent[last]
        elif kind == "rename" and isinstance(parent, dict):
            parent[NAMES[rng.integers(len(NAMES))]] = parent.pop(last)
        elif kind == "many" and isinstance(parent, list):
            parent.extend([parent[last]] * int(rng.choice([1, 2, 1000])))
        elif kind == "swap":
            other = places[rng.integers(len(places))]
            value = tree
            for key in other:
                value = value[key]
            parent[last] = json.loads(json.dumps(value))
        elif kind == "twice" and isinstance(parent, dict):
            parent[_MARK] = None
            mark = json.dumps(_MARK)
            text = json.dumps(tree).replace(f"{mark}: null", f"{json.dumps(last)}: {token}")
            continue
        else:
            parent[last] = _MARK
        text = json.dumps(tree).replace(json.dumps(_MARK), token)
    return text


def encoded(text: str, rng: np.random.Generator) -> bytes:
    """As text is saved, seldom in another encoding, or not to its end."""
    kind = rng.choice(["utf-8"] * 20 + ["utf-8-sig", "utf-16", "latin-1", "cut", "bytes"])
    if kind not in ("cut", "bytes"):
        return text.encode(kind, errors="replace")
    data = text.encode(errors="replace")
    return data[: int(rng.integers(len(data) + 1))] if kind == "cut" else change_bytes(data, rng)


def change_json(data: bytes, rng: np.random.Generator) -> bytes:
    return encoded(change_tree(data.decode(), rng, JSON_TOKENS), rng)


def change_yaml(data: bytes, rng: np.random.Generator) -> bytes:
    """JSON is YAML, so the tree is written as such, some of it with what only YAML has."""
    text = json.dumps(parse_yaml_text(data.decode(), "base"))
    text = change_tree(text, rng, YAML_TOKENS if rng.random() < 0.5 else JSON_TOKENS)
    if rng.random() < 0.03:
        return (BOMB + data.decode()).encode()
    return encoded(text, rng)


def change_lines(data: bytes, rng: np.random.Generator, separator: str = ",") -> bytes:
    """Cells replaced, lines repeated, cut or mixed up."""
    lines = [line.split(separator) for line in data.decode().split("\n")]
    for _ in range(rng.integers(1, 4)):
        row = lines[rng.integers(len(lines))]
        at = int(rng.integers(len(row)))
        kind = rng.choice(["cell"] * 5 + ["drop", "twice", "more", "swap", "gone", "long"])
        if kind == "drop" and len(row) > 1:
            del row[at]
        elif kind == "twice":
            lines.append(list(row))
        elif kind == "more":
            row.insert(at, CELLS[rng.integers(len(CELLS))])
        elif kind == "swap":
            other = int(rng.integers(len(lines)))
            lines[other], lines[0] = lines[0], lines[other]
        elif kind == "gone" and len(lines) > 1:
            del lines[int(rng.integers(len(lines)))]
        elif kind == "long":
            row[at] = str(rng.choice(['"', "x", "1", "\0", "["])) * 200_000
        else:
            row[at] = CELLS[rng.integers(len(CELLS))]
    return encoded("\n".join(map(separator.join, lines)), rng)


EXTREMES = tuple(
    value
    for order in "<>"
    for value in (
        *(struct.pack(f"{order}I", n) for n in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 65536)),
        *(struct.pack(f"{order}H", n) for n in (0, 1, 0x7FFF, 0x8000, 0xFFFF)),
        struct.pack(f"{order}Q", 2**63 - 1),
        struct.pack(f"{order}d", float("nan")),
    )
)


def change_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Bits flipped, numbers made extreme, parts cut out, repeated, or overwritten."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        if not changed:
            break
        # Half of the time where a file's headers are.
        reach = len(changed) if rng.random() < 0.5 else min(len(changed), 512)
        at = int(rng.integers(reach))
        kind = rng.choice(["bit", "bit", "number", "number", "cut", "part", "again", "zeros"])
        if kind == "bit":
            changed[at] ^= 1 << int(rng.integers(8))
        elif kind == "number":
            value = EXTREMES[rng.integers(len(EXTREMES))]
            changed[at : at + len(value)] = value
        elif kind == "cut":
            del changed[int(rng.integers(len(changed) + 1)) :]
        elif kind == "part":
            del changed[at : at + int(rng.integers(1, 200))]
        elif kind == "again":
            piece = bytes(changed[at : at + int(rng.integers(1, 2000))])
            changed[at:at] = piece * int(rng.integers(1, 5))
        else:
            n = min(int(rng.integers(1, 5000)), len(changed) - at)
            changed[at : at + n] = bytes(n)
    return bytes(changed)


def _png(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def change_png(data: bytes, rng: np.random.Generator) -> bytes:
    """Chunks with their checksums made right again."""
    if rng.random() < 0.3:
        return change_bytes(data, rng)
    chunks, at = [], 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    k = int(rng.integers(len(chunks)))
    name, content = chunks[k]
    match rng.choice(["content", "size", "drop", "twice", "bomb", "rows", "text"]):
        case "content":
            chunks[k] = (name, change_bytes(content, rng))
        case "size":
            sides = rng.choice([0, 1, 7, 12_000, 20_000, 2**16, 2**31 - 1, 2**32 - 1], 2)
            chunks[0] = (b"IHDR", struct.pack(">II", *sides.tolist()) + chunks[0][1][8:])
        case "drop":
            del chunks[k]
        case "twice":
            chunks.insert(k, chunks[k])
        case "bomb":
            bomb = zlib.compress(bytes(50_000_000), 1)
            chunks.insert(1, (b"zTXt", b"Comment\0\0" + bomb))
        case "rows":
            chunks[0] = (b"IHDR", struct.pack(">II", 12_000, 12_000) + chunks[0][1][8:])
            packer = zlib.compressobj(1)
            rows = b"".join(packer.compress(bytes(12_001)) for _ in range(12_000))
            chunks = [chunks[0], (b"IDAT", rows + packer.flush()), chunks[-1]]
        case _:
            header = bytearray(chunks[0][1])
            header[8:13] = bytes(rng.integers(0, 20, 5).tolist())
            chunks[0] = (b"IHDR", bytes(header))
    return data[:8] + b"".join(_png(*chunk) for chunk in chunks)


def change_jpeg(data: bytes, rng: np.random.Generator) -> bytes:
    """Segments changed, repeated and left out, the compressed part as bytes."""
    segments, at = [], 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:
        (length,) = struct.unpack(">H", data[at + 2 : at + 4])
        segments.append(data[at : at + 2 + length])
        at += 2 + length
    scan = data[at:]
    k = int(rng.integers(len(segments)))
    match rng.choice(["content", "size", "drop", "twice", "scan", "scans"]):
        case "content":
            segments[k] = segments[k][:4] + change_bytes(segments[k][4:], rng)
        case "size":
            for i, one in enumerate(segments):
                if one[1] in (0xC0, 0xC2):
                    sides = rng.choice([0, 1, 9000, 65_535], 2).tolist()
                    segments[i] = one[:5] + struct.pack(">HH", *sides) + one[9:]
        case "drop":
            del segments[k]
        case "twice":
            segments.insert(k, segments[k])
        case "scans":
            scan = scan[:-2] * 20 + scan[-2:]
        case _:
            scan = change_bytes(scan, rng)
    return data[:2] + b"".join(segments) + scan


def change_tiff(data: bytes, rng: np.random.Generator) -> bytes:
    """Entries of the directory: types, counts, values."""
    if rng.random() < 0.3:
        return change_bytes(data, rng)
    changed = bytearray(data)
    (start,) = struct.unpack_from("<I", data, 4)
    (n,) = struct.unpack_from("<H", data, start)
    for _ in range(rng.integers(1, 4)):
        at = start + 2 + 12 * int(rng.integers(n))
        value = int(rng.choice([0, 1, 2, 3, 8, 16, 9000, 65_535, 2**31 - 1, 2**32 - 1]))
        match rng.choice(["tag", "kind", "count", "value", "value", "value"]):
            case "tag":
                struct.pack_into("<H", changed, at, int(rng.integers(250, 340)))
            case "kind":
                struct.pack_into("<H", changed, at + 2, int(rng.integers(0, 20)))
            case "count":
                struct.pack_into("<I", changed, at + 4, value)
            case _:
                struct.pack_into("<I", changed, at + 8, value)
    return bytes(changed)


def change_npz(data: bytes, rng: np.random.Generator) -> bytes:
    """Members changed, as a zip file that is whole."""
    if rng.random() < 0.3:
        return change_bytes(data, rng)
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            content = old.read(name)
            match rng.choice(["same", "bytes", "shape", "kind", "bomb", "drop", "twice"]):
                case "bytes":
                    content = change_bytes(content, rng)
                case "shape":
                    shape = rng.choice(
                        ["(99999999999,)", "(-1,)", "(9**9**9,)", "()", "(2, 2**70)"]
                    )
                    content = content.replace(b"(64, 3)", str(shape).encode())
                case "kind":
                    kind = rng.choice(["|O", "<U9999999", "|V9", "<M8[s]", "('a', 'b')"])
                    content = content.replace(b"<f8", str(kind).encode())
                case "bomb":
                    content += bytes(300_000_000)
                case "drop":
                    continue
                case "twice":
                    with contextlib.suppress(UserWarning):
                        new.writestr(name + " ", content)
                case _:
                    pass
            new.writestr(name, content)
    return buffer.getvalue()


def change_ply(data: bytes, rng: np.random.Generator) -> bytes:
    """The header as lines of words, the rest as bytes."""
    header, end, rows = data.partition(b"end_header\n")
    if rng.random() < 0.7:
        header = change_lines(header, rng, " ")
        if rng.random() < 0.3:
            number = rng.choice([b"0", b"-1", b"1000000000", b"999999999999999", b"9" * 40])
            header = header.replace(b"vertex 5", b"vertex " + bytes(number))
        if rng.random() < 0.2:
            faces = b"element face 1000000000\nproperty list uchar int index\nelement"
            header = header.replace(b"element", faces, 1)
    else:
        rows = change_bytes(rows, rng)
    return header + end + rows


# --- the files and who reads them -------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A file, what may happen to it, and who reads it.

    files  in which folder and file the base is
    read   takes the folder of all files; returns, or raises as the reader does
    share  how many of the mutated files are of this case, relative to others
    """

    name: str
    file: str
    change: Callable[[bytes, np.random.Generator], bytes]
    read: Callable[[Path], object]
    share: float = 1.0


class _Exit(Exception):
    """A command's own end."""


def command(*arguments: str) -> Callable[[Path], None]:
    """``{}`` in an argument is the folder of the files."""

    def run(folder: Path) -> None:
        texts = [one.replace("{}", str(folder)) for one in arguments]
        result = CliRunner().invoke(influx_calib, texts)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if result.exit_code == 2:
            last = result.stderr.strip().splitlines()[-1]
            assert "Error: " in result.stderr, result.stderr
            assert len(last) < 5000, last[:3000]
            last.encode()
            raise _Exit(last)
        assert result.exit_code == 0, (result.exit_code, result.output)

    return run


def all_frames(path: Path, *, colour: bool = False) -> None:
    source = open_frames(path, colour=colour)
    for index, picture in source.photographs():
        if picture is None:
            source.fault(index)


def all_points(path: Path) -> None:
    for points, _ in open_ply(path).chunks():
        assert np.isfinite(points).all()


def all_messages(path: Path) -> None:
    for picture in image_topic(path, "/cam0/image_raw").pictures():
        _ = picture.grey, picture.stamp_ns


def answers(path: Path) -> None:
    from influx_wrap.formats.files import read_json

    camera_of(read_json(path, bare_nan=True).values, "rad-tan")


def record_of(folder: Path) -> None:
    workspace = Workspace(folder / "run")
    for cell in workspace.records():
        workspace.finished(cell, {"seed": 0, "inputs": {}})


def base(folder: Path) -> None:
    """All files as they should be."""
    rng = np.random.default_rng(0)
    pictures = [f"pics/{kind}" for kind in ("png", "jpg", "tif", "board", "colour")]
    for name in ("exp", "cat", *pictures, "flight", "det", "misc"):
        (folder / name).mkdir(parents=True)
    # An experiment.
    exp = folder / "exp"
    poses = [
        pose((20.0 * x, 20.0 * y, 5.0), (0.02 * y, 0.02 * x, 0.36))
        for x in (-1, 1)
        for y in (-1, 0, 1)
    ]
    rotations, translations = (np.array(one) for one in zip(*poses, strict=True))
    uv, valid = project(CAMERA, transform(rotations, translations, GRID.points))
    uv = uv + 0.05 * rng.standard_normal(uv.shape)
    inside = valid & (uv > 0).all(-1) & (uv < np.array(SIZE) - 1).all(-1)
    names = tuple(f"{k}.png" for k in range(6))
    seen = Observations(GRID, np.where(inside[..., None], uv, 0), inside, SIZE, np.arange(6), names)
    write_target(exp / "target.yaml", GRID)
    write_observations(exp / "coords_2d.csv", exp / "successes.csv", seen)
    about = {
        "lens": "canon17", "camera": "arri-alexa-mini", "cell": "z0f0", "target": "x",
        "lfl_mm": 17.0, "fd_m": 2.0, "image_size": list(SIZE), "pixel_um": 8.25,
        "pixel_origin": "center", "trust": True,
    }  # fmt: skip
    (exp / "experiment.yaml").write_text(yaml.safe_dump(about))
    camera = CAMERA.as_dict()
    noise = asdict(Noise())
    truth = {
        "pixel_origin": "center", "intrinsics": camera, "corner_sigma_px": 0.1,
        "bow_m": [0.0, 0.0, 0.0], "noise": noise, "rotations": rotations.reshape(-1, 9).tolist(),
        "translations": translations.tolist(), "target_points": GRID.points.tolist(),
        "outliers": [[0, 1]],
    }  # fmt: skip
    (exp / "truth.json").write_text(json.dumps(truth))
    (folder / "cloud.yaml").write_text(
        yaml.safe_dump(
            {"target_type": "pointcloud", "points": [[0, 0, 1], [1, 0, 2], [0, 1, 3], [1, 1, 1.5]]}
        )
    )
    # Our own catalogue.
    from tests.cli.test_mutations import BOARD, LENS
    from tests.cli.test_mutations import CAMERA as CATALOGUE_CAMERA

    for name, entry in (("camera", CATALOGUE_CAMERA), ("lens", LENS), ("board", BOARD)):
        (folder / "cat" / f"{name}.yaml").write_text(yaml.safe_dump(entry))
    # A lens, a clip and its truth, a submission.
    from tests.cli.test_metadata_mutations import ART, CLIP, EXTRACT, INFLUX

    write_table(folder / "lut.json", breathing_table("canon17"))
    (folder / "clip.csv").write_text(CLIP)
    (folder / "extract.csv").write_text("\n".join(EXTRACT))
    (folder / "art.json").write_text(json.dumps(ART))
    (folder / "influx.json").write_text(json.dumps(INFLUX))
    command("annotate", "{}/clip.csv", "--lut", "{}/lut.json", "--out", "{}/gt.json", "--scheme",
            "paper")(folder)  # fmt: skip
    frames = json.loads((folder / "gt.json").read_text())
    film = {k: frames[k]["intrinsics_gt_extrapolated"] for k in "012"}
    said = {"method_name": "m", "intrinsics_type": "rad-tan", "version": "influx"}
    (folder / "sub.json").write_text(json.dumps({"submission_metadata": said, "film": film}))
    manifest.write_manifest(folder / "manifest.json", {"film": manifest.Video(3, "test")})
    (folder / "groups.csv").write_text("video,motion,lens\nfilm,pan,canon17\n")
    # A run.
    run = folder / "run"
    (run / "cells" / "z0f1").mkdir(parents=True)
    Workspace(run).save(make_record())
    (run / "run.log").touch()
    details = {
        f"zoom_{i}_focus_distance_{j}": {
            "zoom": 17.0 + 10 * i, "focus_distance": 900.0 + 900 * j, "board_size": 0.4,
            "selected_trial": 1, **camera,
        } for i in range(2) for j in range(2)
    }  # fmt: skip
    (folder / "selected.json").write_text(json.dumps({"exp_details": details}))
    plan = {
        "zooms": [17.0, 27.0], "focus_distances": [900.0, 1800.0],
        "exp_details": {
            key: {name: one[name] for name in ("zoom", "focus_distance", "board_size")}
            for key, one in details.items()
        },
    }  # fmt: skip
    (folder / "plan.json").write_text(json.dumps(plan))
    # Pictures, in every kind of file.
    picture = (rng.random((48, 64)) * 255).astype(np.uint8)
    for kind in ("png", "jpg", "tif"):
        for k in range(2):
            cv2.imwrite(str(folder / "pics" / kind / f"{k}.{kind}"), picture)
    colours = (rng.random((48, 64, 3)) * 255).astype(np.uint8)
    cv2.imwrite(str(folder / "pics" / "colour" / "0.jpg"), colours)
    for name, codec, pixels in (
        ("clip.mp4", "libx264", "yuv420p"),
        ("clip.mkv", "ffv1", "gray"),
        ("clip.avi", "mjpeg", "yuvj420p"),
        ("clip.mov", "prores_ks", "yuv422p10le"),
    ):
        with av.open(str(folder / name), "w") as container:
            stream = container.add_stream(codec, rate=25)
            stream.width, stream.height, stream.pix_fmt = 64, 48, pixels
            for _ in range(4):
                frame = av.VideoFrame.from_ndarray(picture, "gray").reformat(format=pixels)
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
    for kind, name in (("ros1", "a.bag"), ("mcap", "b"), ("sqlite3", "c")):
        write_bag(
            folder / name, kind, [("/cam0/image_raw", 10**9 * k, picture) for k in range(1, 4)]
        )  # type: ignore[arg-type]
    np.savez_compressed(folder / "chunk.npz", uv=rng.random((64, 3)), n=np.arange(64))
    # A scan of a room.
    points = rng.random((5, 3)).astype("<f4")
    axes = "".join(f"property float {axis}\n" for axis in "xyz")
    header = f"ply\nformat binary_little_endian 1.0\nelement vertex 5\n{axes}end_header\n"
    (folder / "scan.ply").write_bytes(header.encode() + points.tobytes())
    text = header.replace("binary_little_endian", "ascii") + "1 2 3\n" * 5
    (folder / "text.ply").write_text(text)
    # A flight.
    fly = folder / "flight"
    rows = [{"x": 1.0 * k, "y": -2.0, "alt": 30.0 + k, "timestamp": 1.7e9 + k, "id": f"r{k}",
             "covariance_m2": np.eye(3).tolist()} for k in range(4)]  # fmt: skip
    flight.write_flash_rtk(fly / "flash_rtk.json", rows)
    stored = flight.StoredFlashes(FLASHES, fly / "clip.mp4", None, {"footage": "x"})
    flight.write_flashes(fly / "flashes.json", stored)
    flight.write_other_lights(fly / "lights.json", [flight.OtherLight(1, 2, (3.0, 4.0), "a car")])
    (fly / "review.csv").write_text(GOOD)
    shutil.copy(folder / "clip.mp4", fly / "clip.mp4")
    (fly / "recording.yaml").write_text(
        yaml.safe_dump({"rtk": "flash_rtk.json", "footage": "clip.mp4", "lfl_mm": 20, "fd_m": 10.5})
    )
    # What others and we leave beside.
    misc = folder / "misc"
    (misc / "camchain.yaml").write_text(camchain_text(CAMERA.array, SIZE, "/cam0/image_raw"))
    (misc / "results.txt").write_text(
        "cam0 (/cam0/image_raw):\n    distortion: [-0.1 0.0 0.0 0.0] +- [0.1 0.2 0.3 0.4]\n"
        "    projection: [320. 320. 160. 120.] +- [0.1 0.2 0.3 0.4]\n"
    )
    (misc / "poses.csv").write_text("#timestamp,x\n1000,1,2\n2000,3,4\n")
    rollout = {"seed": 1, "camera": CAMERA.array.tolist(), "views": [0, 1], "corners_removed": 2}
    fork = {
        "version": "1",
        "initialization": CAMERA.array.tolist(),
        "chosen": 0,
        "rollouts": [rollout],
    }
    (misc / "fork-rollouts.json").write_text(json.dumps(fork))
    (misc / "kalibr.log").write_text("initializing... Projection initialized to: [1 2 3 4]\n" * 3)
    write_poses(misc / "views.csv", [0, 1], np.arange(24.0).reshape(2, 12))
    (misc / "made_from.json").write_text(json.dumps({"footage": "1"}))
    (misc / "runner.py").write_text(
        'INSTALL = "x"\nSETTINGS = {"a": 1}\nSTRIDE = 2\ndef load(settings):\n    return None\n'
    )
    (misc / "answer.json").write_text(json.dumps({"camera": CAMERA.as_dict(), "f_px": 320.0}))
    (misc / "view_names.json").write_text(json.dumps({"0": "a.png", "1": "b.png"}))
    truth = {
        "pixel_origin": "center", "intrinsics": camera, "bow_m": [0.0, 0.0, 0.0], "pose": [0, 1],
        "rotations": rotations[:2].reshape(-1, 9).tolist(),
        "translations": translations[:2].tolist(),
    }  # fmt: skip
    (folder / "det" / "truth.json").write_text(json.dumps(truth))
    for k in range(2):
        cv2.imwrite(str(folder / "pics" / "board" / f"{k}.png"), board_picture(k))
    command("detect", "{}/pics/board", "--target", "{}/exp/target.yaml", "--out", "{}/det/found",
            "--jobs", "1")(folder)  # fmt: skip


def _text(read: Callable[[str], object], file: str) -> Callable[[Path], object]:
    from influx_wrap.formats.files import read_text

    return lambda folder: read(read_text(folder / file))


def _of(read: Callable[[Path], object], file: str) -> Callable[[Path], object]:
    return lambda folder: read(folder / file)


words = partial(change_lines, separator=" ")
tabs = partial(change_lines, separator="\t")
calibrated = command(
    "calibrate", "--target", "{}/exp/target.yaml", "--coords", "{}/exp/coords_2d.csv",
    "--successes", "{}/exp/successes.csv", "--size", "320x240", "--recipe", "batch",
    "--jobs", "1", "--out", "{}/out.json",
)  # fmt: skip
planned = command(
    "plan", "zoom", "--camera", "mine", "--catalogue", "{}/cat", "--out", "{}/out.json"
)
scored = command(
    "evaluate", "{}/sub.json", "--truth", "{}/gt.json", "--jobs", "1", "--out", "{}/out"
)


def annotated(file: str) -> Callable[[Path], None]:
    return command("annotate", f"{{}}/{file}", "--lut", "{}/lut.json", "--scheme", "paper",
                   "--out", "{}/out.json")  # fmt: skip


def exported(to: str) -> Callable[[Path], None]:
    return command("export", "{}/gt.json", "--to", to, "--out", "{}/out")


CASES = (
    Case("target", "exp/target.yaml", change_yaml, calibrated, 2),
    Case("coords", "exp/coords_2d.csv", change_lines, calibrated),
    Case("successes", "exp/successes.csv", change_lines, calibrated),
    Case("view names", "exp/view_names.json", change_json, calibrated, 0.5),
    Case("cloud", "cloud.yaml", change_yaml, lambda f: kalibr.read_target(f / "cloud.yaml")),
    Case("experiment", "exp/experiment.yaml", change_yaml, _of(experiment.read_experiment, "exp")),
    Case("truth", "exp/truth.json", change_json, _of(experiment.read_experiment, "exp")),
    Case("camera", "cat/camera.yaml", change_yaml, planned, 2),
    Case("lens", "cat/lens.yaml", change_yaml, planned, 2),
    Case("board", "cat/board.yaml", change_yaml, planned, 2),
    Case("table", "lut.json", change_json,
         command("lut", "query", "{}/lut.json", "--lfl-mm", "35", "--fd-m", "2", "--scheme",
                 "paper")),
    Case("table as a page", "lut.json", change_json,
         command("export", "{}/lut.json", "--to", "ulens", "--scheme", "paper", "--out", "{}/out"),
         0.3),
    Case("clip", "clip.csv", change_lines, annotated("clip.csv")),
    Case("meta extract", "extract.csv", tabs, annotated("extract.csv")),
    Case("reference tool", "art.json", change_json, annotated("art.json")),
    Case("per-frame metadata", "influx.json", change_json, annotated("influx.json")),
    Case("truth in scores", "gt.json", change_json, scored, 0.5),
    Case("truth in colmap", "gt.json", change_json, exported("colmap")),
    Case("truth in nerfstudio", "gt.json", change_json, exported("nerfstudio")),
    Case("truth in opentrackio", "gt.json", change_json, exported("opentrackio")),
    Case("predictions in scores", "sub.json", change_json, scored, 0.5),
    Case("submission", "sub.json", change_json,
         command("submission", "validate", "{}/sub.json", "--manifest", "{}/manifest.json"), 2),
    Case("manifest", "manifest.json", change_json,
         command("submission", "validate", "{}/sub.json", "--manifest", "{}/manifest.json"), 2),
    Case("groups", "groups.csv", change_lines,
         lambda f: manifest.read_video_groups(f / "groups.csv", {"film"})),
    Case("result", "run/cells/z0f1/result.json", change_json,
         command("lut", "build", "{}/run", "--out", "{}/out.json")),
    Case("result in a run", "run/cells/z0f1/result.json", change_json, record_of),
    Case("result in a page", "run/cells/z0f1/result.json", change_json,
         command("report", "{}/run", "--jobs", "1"), 0.5),
    Case("selection", "selected.json", change_json,
         command("lut", "build", "{}/selected.json", "--out", "{}/out.json")),
    Case("lens settings", "plan.json", change_json, _of(read_lens_settings, "plan.json"), 2),
    Case("png", "pics/png/0.png", change_png, _of(all_frames, "pics/png"), 3),
    Case("jpeg", "pics/jpg/1.jpg", change_jpeg, _of(all_frames, "pics/jpg"), 3),
    Case("tiff", "pics/tif/0.tif", change_tiff, _of(all_frames, "pics/tif"), 3),
    Case("jpeg in colour", "pics/colour/0.jpg", change_jpeg,
         lambda f: all_frames(f / "pics/colour", colour=True), 0.5),
    Case("mp4", "clip.mp4", change_bytes, _of(all_frames, "clip.mp4"), 2),
    Case("mkv", "clip.mkv", change_bytes, _of(all_frames, "clip.mkv"), 2),
    Case("avi", "clip.avi", change_bytes, _of(all_frames, "clip.avi"), 2),
    Case("mov", "clip.mov", change_bytes, _of(all_frames, "clip.mov"), 2),
    Case("bag of ROS 1", "a.bag", change_bytes, _of(all_messages, "a.bag"), 2),
    Case("mcap", "b/b.mcap", change_bytes, _of(all_messages, "b"), 2),
    Case("mcap's description", "b/metadata.yaml", change_yaml, _of(all_messages, "b")),
    Case("sqlite", "c/c.db3", change_bytes, _of(all_messages, "c"), 2),
    Case("sqlite's description", "c/metadata.yaml", change_yaml, _of(all_messages, "c"), 0.5),
    Case("arrays", "chunk.npz", change_npz,
         lambda f: arrays.read_arrays(f / "chunk.npz", ("uv", "n")), 2),
    Case("scan", "scan.ply", change_ply, _of(all_points, "scan.ply"), 3),
    Case("scan as text", "text.ply", change_ply, _of(all_points, "text.ply"), 2),
    Case("readings", "flight/flash_rtk.json", change_json,
         _of(flight.read_flash_rtk, "flight/flash_rtk.json"), 3),
    Case("flashes", "flight/flashes.json", change_json,
         _of(flight.read_flashes, "flight/flashes.json"), 3),
    Case("other lights", "flight/lights.json", change_json,
         _of(flight.read_other_lights, "flight/lights.json")),
    Case("review", "flight/review.csv", change_lines,
         lambda f: read_review(f / "flight/review.csv", FLASHES, READINGS), 3),
    Case("flight", "flight/recording.yaml", change_yaml, _of(read_flight_recording, "flight"), 2),
    Case("summary", "det/found/detection.json", change_json, _of(read_summary, "det/found"), 2),
    Case("counts", "det/found/detections_per_frame.json", change_json,
         _of(read_summary, "det/found")),
    Case("recording's truth", "det/truth.json", change_json,
         _of(truths.read_recording_truth, "det"), 2),
    Case("camchain", "misc/camchain.yaml", change_yaml,
         lambda f: kalibr_results.read_camchain(f / "misc/camchain.yaml", SIZE), 2),
    Case("results", "misc/results.txt", words,
         _of(kalibr_results.read_sigma, "misc/results.txt"), 2),
    Case("pose times", "misc/poses.csv", change_lines,
         _of(kalibr_log.read_pose_times, "misc/poses.csv")),
    Case("fork", "misc/fork-rollouts.json", change_json,
         _of(kalibr_log.read_fork_rollouts, "misc/fork-rollouts.json"), 2),
    Case("Kalibr's log", "misc/kalibr.log", words, _text(kalibr_log.read_log, "misc/kalibr.log")),
    Case("poses", "misc/views.csv", change_lines,
         lambda f: read_poses(f / "misc/views.csv", [0, 1])),
    Case("made from", "misc/made_from.json", change_json,
         lambda f: is_made_from(f / "misc/made_from.json", {"footage": "1"})),
    Case("runner", "misc/runner.py", words, _of(read_runner, "misc/runner.py")),
    Case("answer", "misc/answer.json", change_json, _of(answers, "misc/answer.json")),
    Case("names", "misc/view_names.json", change_json,
         lambda f: read_view_names(f / "misc", np.arange(2))),
)  # fmt: skip


# --- what came of it --------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """Of one mutated file: ``code`` is 0 or 2 unless something is wrong, which ``told`` says."""

    index: int
    case: str
    code: int
    seconds: float
    mib: int
    told: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it is what has to come of it."""
        return self.code in (0, 2) and self.seconds <= MOST_SECONDS and self.mib <= MOST_MIB


def case_of(index: int, seed: int) -> tuple[Case, np.random.Generator]:
    """The case of a file, and what its changes are drawn from."""
    rng = np.random.default_rng([seed, index])
    shares = np.array([case.share for case in CASES])
    return CASES[rng.choice(len(CASES), p=shares / shares.sum())], rng


def try_file(index: int, seed: int, folder: Path, keep: Path | None = None) -> Outcome:
    """Change a file in the folder, have it read, and put the good one back."""
    case, rng = case_of(index, seed)
    path = folder / case.file
    good = path.read_bytes()
    spoiled = case.change(good, rng)
    if keep is not None:
        keep.write_bytes(spoiled)
    path.write_bytes(spoiled)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    start, code, told = time.monotonic(), 0, ""
    try:
        case.read(folder)
    except (InputError, DroneError, _Exit) as error:
        code, told = 2, str(error)
        if isinstance(error, InputError) and not told.rstrip().endswith((".", "?")):
            code, told = 3, f"no sentence: {told[:300]}"
        elif len(told) > 5000 or not told.isprintable():
            code, told = 3, f"not to be printed: {told[:300]!r}"
    except BaseException:
        code, told = 1, traceback.format_exc()[-3000:]
    seconds = time.monotonic() - start
    path.write_bytes(good)
    clear(folder)
    return Outcome(index, case.name, code, seconds, _peak_mib(), told)


def clear(folder: Path) -> None:
    """Remove what commands have written."""
    for left in ("out.json", "out"):
        if (folder / left).is_dir():
            shutil.rmtree(folder / left)
        (folder / left).unlink(missing_ok=True)


def _peak_mib() -> int:
    """The most memory since ``clear_refs``."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) >> 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _work(seed: int, indices: range) -> None:
    """In a process of its own: a line of JSON for every file."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    stdout, sys.stdout = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "files"
        base(folder)
        for case in CASES:
            # The good files are read, and what is compiled is compiled.
            case.read(folder)
            clear(folder)
        for index in indices:
            print(json.dumps([index, case_of(index, seed)[0].name]), file=stdout, flush=True)
            print(json.dumps(asdict(try_file(index, seed, folder))), file=stdout, flush=True)


def outcomes(seed: int, indices: range) -> Iterator[Outcome]:
    """Of all files of a range; a process that dies or hangs is an outcome, too."""
    import select

    at = indices.start
    while at < indices.stop:
        span = ["--work", str(at), str(indices.stop), str(indices.step)]
        command_line = [sys.executable, "-m", "tests.mutate", "--seed", str(seed), *span]
        with subprocess.Popen(
            command_line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        ) as process:
            assert process.stdout is not None
            name, received, is_ready = "the good files", b"", False
            try:
                while at < indices.stop:
                    patience = GIVE_UP_S if is_ready else 600
                    if not select.select([process.stdout], [], [], patience)[0]:
                        yield Outcome(at, name, -1, GIVE_UP_S, 0, "it did not end")
                        break
                    data = os.read(process.stdout.fileno(), 1 << 16)
                    if not data:
                        code = process.wait()
                        if not is_ready:
                            raise RuntimeError("the good files cannot be read")
                        yield Outcome(
                            at, name, code or -1, 0.0, 0, f"the process ended with {code}"
                        )
                        break
                    received += data
                    while b"\n" in received:
                        line, _, received = received.partition(b"\n")
                        said = json.loads(line)
                        is_ready = True
                        if isinstance(said, list):
                            name = said[1]
                        else:
                            yield Outcome(**said)
                            at += indices.step
                else:
                    return
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        at += indices.step


def _run(n: int, seed: int, jobs: int) -> int:
    from concurrent.futures import ThreadPoolExecutor
    from queue import SimpleQueue

    done: SimpleQueue[Outcome | None] = SimpleQueue()

    def work(k: int) -> None:
        for outcome in outcomes(seed, range(k, n, jobs)):
            done.put(outcome)
        done.put(None)

    counts: Counter[str] = Counter()
    worst = Outcome(0, "", 0, 0.0, 0)
    largest, bad, running = worst, [], jobs
    with ThreadPoolExecutor(jobs) as threads:
        for k in range(jobs):
            threads.submit(work, k)
        while running:
            outcome = done.get()
            if outcome is None:
                running -= 1
                continue
            counts[str(outcome.code)] += 1
            worst = max(worst, outcome, key=lambda one: one.seconds)
            largest = max(largest, outcome, key=lambda one: one.mib)
            if not outcome.is_good:
                bad.append(outcome)
                print(f"{outcome.index} {outcome.case}: code {outcome.code}, "
                      f"{outcome.seconds:.1f} s, {outcome.mib} MiB\n{outcome.told}",
                      flush=True)  # fmt: skip
            if sum(counts.values()) % 500 == 0:
                print(f"{sum(counts.values())} of {n}: {dict(counts)}", file=sys.stderr, flush=True)
    print(f"{sum(counts.values())} files of {len(CASES)} kinds: exit code 0 {counts['0']}, 2 "
          f"{counts['2']}, anything else {len(bad)}")  # fmt: skip
    print(f"longest {worst.seconds:.1f} s ({worst.case}), most memory {largest.mib} MiB "
          f"({largest.case})")  # fmt: skip
    return 1 if bad else 0


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("n", type=int, nargs="?", default=1000, help="how many files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", type=int, metavar="INDEX", help="write one file, and read it")
    parser.add_argument("--work", type=int, nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        _work(chosen.seed, range(*chosen.work))
        return 0
    if chosen.show is not None:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "files"
            base(folder)
            outcome = try_file(chosen.show, chosen.seed, folder, Path("mutated"))
        print(f"{outcome}\nthe file is in ./mutated".replace("\\n", "\n"))
        return 0
    return _run(chosen.n, chosen.seed, chosen.jobs)


if __name__ == "__main__":
    sys.exit(_main())
