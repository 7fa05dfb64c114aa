"""``influx-calib split``: videos for validation and for test."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.markup import escape

from influx_wrap.annotate.split import split_videos
from influx_wrap.cli.options import PATH, number, seed_option
from influx_wrap.cli.tables import answers
from influx_wrap.formats.manifest import TEST, VALIDATION, read_manifest, write_manifest


@click.command("split")
@click.argument("manifest", type=PATH)
@click.option("--out", type=PATH, required=True, help="File for the manifest with the split.")
@click.option(
    "--val",
    "share",
    type=number(above=0),
    metavar="NUMBER",
    default=0.15,
    show_default=True,
    help="Share of all frames that goes to validation.",
)
@seed_option
def command(manifest: Path, out: Path, share: float, seed: int) -> None:
    """Split the videos of MANIFEST into validation and test.

    MANIFEST is a JSON file {"<video>": {"frame_count": n}, ...}; a split that is there already
    is replaced. Every video goes to one side as a whole, and validation gets as nearly its
    share of the frames as whole videos can make up.

    \b
    Example:
      influx-calib split videos.json --out manifest.json --val 0.15
    """
    videos = split_videos(read_manifest(manifest), share, np.random.default_rng(seed))
    write_manifest(out, videos)
    total = sum(video.frame_count for video in videos.values())
    lines = []
    for split in (VALIDATION, TEST):
        counts = [video.frame_count for video in videos.values() if video.split == split]
        lines.append(
            f"{split}: {len(counts)} of {len(videos)} videos, {sum(counts)} of {total} frames "
            f"({100 * sum(counts) / total:.2f} %)"
        )
    answers().print(*lines, f"written: {escape(str(out))}", sep="\n", soft_wrap=True)
