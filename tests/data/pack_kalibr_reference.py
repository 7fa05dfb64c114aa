"""Pack the reference experiments and a real Kalibr's answers to them into two small files.

    python tests/data/pack_kalibr_reference.py FOLDER

FOLDER holds ``reference.json`` and a folder per experiment with ``target.yaml``,
``coords_2d.csv`` and ``successes.csv``. Written next to this script: the pixels in
``kalibr_reference.npz``, whole micro-pixels as the files have them, and everything else
in ``kalibr_reference.json``.
"""

import json
import sys
from pathlib import Path

import numpy as np

from influx_wrap.formats.kalibr import read_observations, read_target
from influx_wrap.model.target import AprilGrid

IMAGE_SIZE = (3424, 2202)
MICRO = 1e6


def main(source: Path) -> None:
    """Read FOLDER, write the two files."""
    reference = json.loads((source / "reference.json").read_text())
    arrays = {}
    for name, entry in reference.items():
        folder = source / name
        target = read_target(folder / "target.yaml")
        observations = read_observations(
            folder / "coords_2d.csv", folder / "successes.csv", target, IMAGE_SIZE
        )
        if isinstance(target, AprilGrid):
            shape = {"tag_cols": target.tag_cols, "tag_rows": target.tag_rows}
            sizes = {"tag_size_m": target.tag_size_m, "tag_spacing": target.tag_spacing}
            entry["target"] = shape | sizes
        else:
            entry["target"] = {"points": target.points.tolist()}
        entry["image_size"] = list(IMAGE_SIZE)
        micropixels = np.rint(MICRO * observations.uv[observations.valid])
        arrays[f"{name}_micropixels"] = micropixels.astype(np.uint32)
        arrays[f"{name}_valid"] = observations.valid
    here = Path(__file__).parent
    np.savez_compressed(here / "kalibr_reference.npz", **arrays)
    (here / "kalibr_reference.json").write_text(json.dumps(reference, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
