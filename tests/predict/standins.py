"""Methods that behave as real ones do, at their best and at their worst."""

import sys
from pathlib import Path

PRELUDE = """
import json, os, sys, time

def say(**message):
    print(json.dumps(message), flush=True)

def camera(frame, **others):
    say(frame=frame, **{"fx": 100.0 + int(frame), "fy": 101.0, "cx": 8.0, "cy": 6.0, **others})

def requests():
    for request in map(json.loads, sys.stdin):
        if "end" in request:
            say(done=True)
        else:
            yield request

def video():
    paths = {}
    for request in map(json.loads, sys.stdin):
        if "end" in request:
            return paths
        paths[request["frame"]] = request["path"]

"""

RUNNER = """
INSTALL = "Write it yourself."
SETTINGS = {"focal_px": 100.0, "label": "", "n": 3}

def load(settings):
    print("loading", settings["label"])
    def predict(path):
        print("looking at", path)
        frame = int(path.split("/")[-1].split(".")[0])
        return {"fx": settings["focal_px"] + frame, "fy": 101, "cx": 8, "cy": 6, "k1": -0.1}
    return predict
"""

IDLE = """
INSTALL = "Nothing to install."
SETTINGS = {}

def load(settings):
    raise AssertionError
"""


def write_interpreter(path: Path, body: str) -> str:
    """A program that takes an interpreter's place: it speaks for itself, whatever it should run."""
    path.write_text(f"#!{sys.executable} -S\n{PRELUDE}{body}")
    path.chmod(0o755)
    return str(path)


def write_runner(path: Path, text: str = RUNNER, **facts: object) -> Path:
    """A runner's file; ``facts`` are more of its constants."""
    constants = "".join(f"{name} = {value!r}\n" for name, value in facts.items())
    path.write_text(constants + text)
    return path
