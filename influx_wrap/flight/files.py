"""The match of a flight as files: ``pairs.csv`` for people, ``match.json`` for programs."""

from __future__ import annotations

import math
from pathlib import Path

from influx_wrap.flight.matched import MatchedFlight
from influx_wrap.formats.files import make_folder, write_json
from influx_wrap.formats.pairs import PAIRS, write_pairs
from influx_wrap.model.flashes import Readings

MATCH = "match.json"


def write_match(folder: Path, matched: MatchedFlight) -> None:
    """Write ``pairs.csv`` and ``match.json``: what goes with what, and how sure that is."""
    make_folder(folder)
    write_pairs(folder / PAIRS, _pair_rows(matched))
    clock = matched.clock
    ids = matched.readings.ids
    write_json(
        folder / MATCH,
        {
            "verdict": matched.verdict,
            "questions": matched.questions,
            "flashes": len(matched.flashes.frames),
            "readings": len(ids),
            "pairs": len(matched.usable),
            "flashes_without_reading": [
                int(matched.flashes.frames[i]) for i in matched.lone_flashes
            ],
            "readings_without_flash": [ids[j] for j in matched.lone_readings],
            "outlying_readings": [
                ids[j] for j in matched.pairs.readings[matched.outlying].tolist()
            ],
            "clock_offset_s": None if clock is None else clock.offset_s,
            "clock_drift_ppm": None if clock is None else 1e6 * clock.drift,
            "time_rms_s": matched.time_rms_s,
            "rms_px": matched.rms_px,
            "rivals": [
                {"clock_offset_s": offset, "pairs": n, "rms_px": rms}
                for offset, n, rms in matched.rivals
            ],
        },
    )


def _pair_rows(matched: MatchedFlight) -> list[dict[str, object]]:
    readings, pairs = matched.readings, matched.pairs
    rows: list[tuple[float, dict[str, object]]] = []
    for k in range(len(pairs)):
        residual = float(matched.residual_px[k])
        remarks = [
            text
            for flags, text in (
                (matched.outlying, "outlying"),
                (matched.poor, "poor position"),
                (matched.disputed, "disputed"),
            )
            if flags[k]
        ]
        row = _reading_fields(readings, int(pairs.readings[k])) | {
            "frame": int(pairs.frames[k]),
            "u": f"{pairs.uv[k, 0]:.3f}",
            "v": f"{pairs.uv[k, 1]:.3f}",
            "rule": int(pairs.rule[k]),
            "time_error_ms": f"{1e3 * matched.time_error_s[k]:.1f}",
            "residual_px": f"{residual:.3f}" if math.isfinite(residual) else None,
            "remark": "; ".join(remarks),
        }
        rows.append((float(pairs.frames[k]), row))
    for i in matched.lone_flashes:
        flashes = matched.flashes
        row = {
            "frame": int(flashes.frames[i]),
            "u": f"{flashes.uv[i, 0]:.3f}",
            "v": f"{flashes.uv[i, 1]:.3f}",
            "rule": int(flashes.rule[i]),
            "remark": "no reading",
        }
        rows.append((float(flashes.frames[i]), row))
    for j in matched.lone_readings:
        video_s = 0.0 if matched.clock is None else float(matched.clock.video_s(readings.time_s[j]))
        remark = {"remark": "no flash"}
        rows.append((video_s * matched.flashes.fps, _reading_fields(readings, j) | remark))
    return [row for _, row in sorted(rows, key=lambda one: one[0])]


def _reading_fields(readings: Readings, j: int) -> dict[str, object]:
    x, y, z = (f"{value:.4f}" for value in readings.xyz_m[j].tolist())
    time_s = f"{readings.time_s[j]:.3f}"
    return {"reading": readings.ids[j], "time_s": time_s, "x_m": x, "y_m": y, "z_m": z}
