"""DroidCalib: one camera for a whole video, from deep visual SLAM.

Its repository is no package, and its licence is the AGPL: its own demo program is run as a
user would, with its default settings and self-calibration switched on, and the camera it
prints is read. ``repository`` names a copy in which it was built. Its answer holds for all frames.

Its numbers are passed on as they are: it prints two decimals, three of xi, and takes the cutting
of a picture to multiples of 8 for scaling, so that fy, say, can be a per cent off.
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
KIND = {"pinhole": "rad-tan", "focal": "rad-tan", "mei": "mei"}
WHOLE_VIDEO = True
TIMEOUT_S = 3600

_NUMBER = r"-?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)"
_CAMERA = re.compile(
    rf"fx = (?P<fx>{_NUMBER}), fy = (?P<fy>{_NUMBER}), ppx = (?P<cx>{_NUMBER}), "
    rf"ppy = (?P<cy>{_NUMBER})(?:, xi = (?P<xi>{_NUMBER}))?"
)


def load(settings: dict[str, Any]) -> Any:
    """See whether the program is there, and was built for this interpreter."""
    import torch  # noqa: F401, I001 - before what was built with it
    import droid_backends  # noqa: F401

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
        found = {name: float(text) for name, text in match.groupdict().items() if text}
        return {"all": found}

    return predict
