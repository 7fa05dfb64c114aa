"""A stand-in for Kalibr's command: answers at once, or misbehaves as it is told.

``behaviour.json`` beside it says what a run with a given INFLUX_SEED does; the others answer
with the camera they are told, moved a little by their seed. With ``kept``, the numbers of views, it
says what a real Kalibr says: what it began at, and the poses of these views. With --rollouts it is
our fork, and answers for all seeds at once.
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
    sys.exit(facts["help_code"])
words = sys.argv[1:]
options = {{w: words[i + 1] for i, w in enumerate(words[:-1]) if w.startswith("--")}}
if "--rollouts" in options:
    stem = os.path.join(options["--report-dir"], "calib")
    with open(os.path.join(os.path.dirname(stem), "asked.json"), "w") as file:
        json.dump({{"arguments": words, "focal": os.environ.get("FOCAL_LENGTH_GUESS")}}, file)
    print(facts["help"].splitlines()[-1])
    if facts["by_seed"].get("all") == "crash":
        print("Error: coords_2d.csv is empty.")
        sys.exit(2)
    first, rollouts = 1000 * int(options["--seed"]), []
    for k in range(int(options["--rollouts"])):
        folder = "%s-rollout-%03d" % (stem, k)
        os.makedirs(folder)
        jitter = random.Random(str(first + k))
        values = [v * (1 + 1e-5 * jitter.gauss(0, 1)) for v in facts["camera"]]
        failure = facts["by_seed"].get(str(first + k))
        rollouts.append({{"seed": first + k, "camera": None if failure else values,
            "views": facts["kept"], "corners_removed": 2, "failure": failure}})
        with open(folder + "/calib-results-cam.txt", "w") as file:
            file.write("distortion: [1 2 3 4] +- [0.1 0.2 0.3 0.4]\\n")
            file.write("projection: [1 2 3 4] +- [1. 2. 3. 4.]\\n")
        open(folder + "/calib-camchain.yaml", "w").close()
    good = [k for k, one in enumerate(rollouts) if one["camera"]]
    with open(stem + "-rollouts.json", "w") as file:
        json.dump({{"version": "series 1", "initialization": facts["begun"],
            "chosen": good[0] if good else None, "rollouts": rollouts}}, file)
    sys.exit(0 if good else 1)
seed = os.environ["INFLUX_SEED"]
if "--bag" in options:
    stem = os.path.splitext(options["--bag"])[0]
    assert open(options["--bag"], "rb").read(8) in (b"pictures", b"#ROSBAG ")
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
if behaviour == "diverge":
    print("Restarting for a new attempt...\\n" * 2, end="")
    print("\\x1b[31m[ERROR] [1700000000.123456]: Max. attemps reached... Giving up...\\x1b[0m")
    sys.exit(0)
if facts["kept"] is not None:
    print("\\tProjection initialized to: [%s]" % " ".join("%.8f" % v for v in facts["begun"][:4]))
    print("\\tDistortion initialized to: [%s\\n %s]" % tuple(
        " ".join("%.8f" % v for v in part) for part in (facts["begun"][4:7], facts["begun"][7:])))
    print("[ WARN] [1700000000.1]: Removed 2 outlier corners.")
    print("Processed 12 images with %d images used" % len(facts["kept"]), flush=True)
    late = 1 if "--bag" in options else 0
    with open(stem + "-poses-cam0.csv", "w") as file:
        file.write("#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w []\\n")
        for view in facts["kept"]:
            file.write("%d,0.1,0.2,0.3,1.0\\n" % (10**9 * (view + late)))
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

UPSTREAM_HELP = """importing libraries
usage:
  --models MODELS [MODELS ...]
  --bag BAGFILE         The bag file with the data
  --topics TOPICS [TOPICS ...]
  --mi-tol MITOL
"""
INFLUX_HELP = f"{UPSTREAM_HELP}  --detection-coords DETECTION_COORDS"
FORK_HELP = f"{INFLUX_HELP}\n\ninflux_wrap patches, series 1, for Kalibr 1f60227442d2"


def install(folder: Path, camera: FloatArray, image_size: tuple[int, int], **facts: Any) -> Path:
    """Put the stand-in into ``folder``; facts: ``by_seed``, ``help``, ``help_code``, ``kept``."""
    folder.mkdir(exist_ok=True)
    # Asked for help, upstream's ends with 2.
    values = {"help": INFLUX_HELP, "help_code": 2, "by_seed": {}, "kept": None, **facts}
    width, height = image_size
    begun = [1000.5, 1000.5, (width - 1) / 2, (height - 1) / 2, *camera[4:].tolist()]
    values |= {"camera": camera.tolist(), "size": list(image_size), "begun": begun}
    (folder / "behaviour.json").write_text(json.dumps(values))
    script = folder / "kalibr_calibrate_cameras"
    script.write_text(SCRIPT.format(python=sys.executable))
    script.chmod(0o755)
    return folder
