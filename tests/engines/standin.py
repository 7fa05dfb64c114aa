"""A stand-in for Kalibr's command: answers at once, or misbehaves as it is told.

``behaviour.json`` beside it says what a run with a given INFLUX_SEED does; the others answer
with the camera they are told, moved a little by their seed.
"""

import json
import sys
from pathlib import Path
from typing import Any

from influx_wrap.model.arrays import FloatArray

SCRIPT = """#!{python} -SE
import json, os, random, signal, sys, time

here = os.path.dirname(os.path.abspath(__file__))
facts = json.load(open(os.path.join(here, "behaviour.json")))
if "--help" in sys.argv:
    print(facts["help"])
    sys.exit(facts.get("help_code", 0))
words = sys.argv[1:]
options = {{w: words[i + 1] for i, w in enumerate(words[:-1]) if w.startswith("--")}}
seed = os.environ["INFLUX_SEED"]
if "--bag" in options:
    stem = os.path.splitext(options["--bag"])[0]
    assert open(options["--bag"]).read() == "pictures"
else:
    stem = os.path.join(options["--report-dir"], "cam")
kept = ("FOCAL_LENGTH_GUESS", "KALIBR_MANUAL_FOCAL_LENGTH_INIT", "INFLUX_SEED", "MPLBACKEND")
asked = {{"arguments": words, "environment": {{k: os.environ.get(k) for k in kept}}}}
asked["typed"] = sys.stdin.read()
asked["pid"] = os.getpid()
with open(os.path.join(os.path.dirname(stem), "asked.json"), "w") as file:
    json.dump(asked, file)
behaviour = facts["by_seed"].get(seed, "answer")
print("seed", seed, flush=True)
if behaviour == "crash":
    print("Initialization of focal length failed.", flush=True)
    sys.exit(1)
if behaviour == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if behaviour == "abort":
    os.kill(os.getpid(), signal.SIGABRT)
if behaviour == "hang":
    time.sleep(600)
if behaviour == "nothing":
    sys.exit(0)
values = list(facts["camera"])
jitter = random.Random(seed)
values[:4] = [v * (1 + 1e-5 * jitter.gauss(0, 1)) for v in values[:4]]
if isinstance(behaviour, list):
    values = behaviour
with open(stem + "-camchain.yaml", "w") as file:
    if behaviour == "rubbish":
        file.write("cam0: [")
        sys.exit(0)
    file.write("cam0:\\n  camera_model: pinhole\\n  distortion_model: radtan\\n")
    file.write("  intrinsics: %r\\n  distortion_coeffs: %r\\n" % (values[:4], values[4:]))
    file.write("  resolution: %r\\n  rostopic: /cam0/image_raw\\n" % (facts["size"],))
with open(stem + "-results-cam.txt", "w") as file:
    file.write("\\tdistortion: [1 2\\n 3 4] +- [0.1 0.2\\n 0.3 0.4]\\n")
    file.write("\\tprojection: [1 2 3 4] +- [1. 2. 3. 4.]\\n")
"""

INFLUX_HELP = "usage: kalibr_calibrate_cameras [--detection-coords FILE]"
UPSTREAM_HELP = "usage: kalibr_calibrate_cameras --bag BAG"


def install(folder: Path, camera: FloatArray, image_size: tuple[int, int], **facts: Any) -> Path:
    """Put the stand-in into ``folder``; the facts are ``by_seed``, ``help`` and ``help_code``."""
    folder.mkdir(exist_ok=True)
    values = {"help": INFLUX_HELP, "by_seed": {}, **facts}
    values |= {"camera": camera.tolist(), "size": list(image_size)}
    (folder / "behaviour.json").write_text(json.dumps(values))
    script = folder / "kalibr_calibrate_cameras"
    script.write_text(SCRIPT.format(python=sys.executable))
    script.chmod(0o755)
    return folder
