"""Answers for frames, one JSON line each, from a method in its own environment.

``python serve.py RUNNER SETTINGS`` reads {"frame": n, "path": ...} from stdin, {"end": true} after
the last frame of a video, and writes {"ready": true} once, then {"frame": n, "fx": ..., ...} or
{"frame": n, "error": ...}, and {"done": true} when all of a video are answered. A method that wants
a whole video answers after the end and is over with it. Whatever the method prints goes to stderr,
so that it cannot be taken for an answer. When stdin closes nobody is waiting any more, and the
process ends at once, with all it has started.

A method may start processes of its own, by fork or afresh. One that is forked inherits the lock of
every file that a thread is reading just then, and multiprocessing closes stdin in it: requests are
therefore read from a copy, and stdin itself is empty. One that starts afresh imports this file
again, and finds the runner under the name by which its functions were handed over.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import signal
import sys
import threading
import traceback
from typing import Any, TextIO

RUNNER = "influx_runner"


def main() -> None:
    """Serve one method until nobody asks any more."""
    runner, settings = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    questions = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # A runner has its method's name: from this folder it would be imported in its place.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(questions, requests), daemon=True).start()
    try:
        module = _imported(runner)
        predict = module.load(json.loads(settings))
    except ImportError as error:
        traceback.print_exc()
        say({"missing": str(error)})
        return
    say({"ready": True})
    if getattr(module, "WHOLE_VIDEO", False):
        _whole_video(predict, requests, say)
    else:
        _frame_by_frame(predict, requests, say)


def _imported(runner: str) -> Any:
    spec = importlib.util.spec_from_file_location(RUNNER, runner)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[RUNNER] = module
    spec.loader.exec_module(module)
    return module


def _listen(questions: TextIO, requests: queue.Queue[dict[str, Any]]) -> None:
    for line in questions:
        requests.put(json.loads(line))
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _frame_by_frame(predict: Any, requests: queue.Queue[dict[str, Any]], say: Any) -> None:
    while True:
        request = requests.get()
        if "end" in request:
            say({"done": True})
            continue
        try:
            values = predict(request["path"])
            answer = {} if values is None else dict(values)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        say({"frame": request["frame"], **answer})


def _whole_video(predict: Any, requests: queue.Queue[dict[str, Any]], say: Any) -> None:
    frames = {}
    while True:
        request = requests.get()
        if "end" in request:
            break
        frames[request["frame"]] = request["path"]
    for frame, values in predict(frames).items():
        say({"frame": frame, **values})
    say({"done": True})


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__":
    _imported(sys.argv[1])
