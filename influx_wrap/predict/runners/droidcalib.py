"""DroidCalib: one camera for a whole video, from deep visual SLAM.

Its repository is no package, and its licence is the AGPL: its own demo program is run as a
user would, with its default settings and self-calibration switched on, and the camera it
prints is read. ``repository`` names a copy in which it was built. Its answer holds for all frames.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

INSTALL = (
    "DroidCalib needs a copy of https://github.com/boschresearch/DroidCalib, built there by "
    "python setup.py install; name the copy with --set repository=FOLDER."
)
SETTINGS = {"repository": "", "weights": "droidcalib.pth", "camera_model": "pinhole"}
WHOLE_VIDEO = True
TIMEOUT_S = 3600

_NUMBER = r"(-?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf))"
_CAMERA = re.compile(rf"fx = {_NUMBER}, fy = {_NUMBER}, ppx = {_NUMBER}, ppy = {_NUMBER}")


def load(settings: dict[str, Any]) -> Any:
    """See whether the program is there."""
    if settings["camera_model"] not in ("pinhole", "focal"):
        raise ValueError("camera_model is pinhole or focal")
    if not os.path.isfile(os.path.join(settings["repository"], "demo.py")):
        raise ImportError(f"there is no demo.py in repository={settings['repository']!r}")

    def predict(frames: dict[int, str]) -> dict[str, dict[str, float]]:
        done = subprocess.run(
            [
                *(sys.executable, "demo.py", "--opt_intr"),
                *("--imagedir", os.path.dirname(next(iter(frames.values())))),
                *("--weights", settings["weights"]),
                *("--camera_model", settings["camera_model"]),
            ],
            cwd=settings["repository"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        print(done.stdout)
        if done.returncode != 0:
            raise RuntimeError(f"demo.py ended with exit code {done.returncode}")
        _, _, estimated = done.stdout.rpartition("Estimated intrinsics")
        match = _CAMERA.search(estimated)
        if match is None:
            raise RuntimeError("demo.py printed no estimated intrinsics")
        fx, fy, cx, cy = (float(text) for text in match.groups())
        return {"all": {"fx": fx, "fy": fy, "cx": cx, "cy": cy}}

    return predict
