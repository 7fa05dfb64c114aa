"""Methods behind a pipe, as real processes that do all that processes do."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.predict.external import (
    AHEAD,
    External,
    NotInstalledError,
    make_external,
)
from influx_wrap.predict.predictor import Footage, MethodError, Predicted
from influx_wrap.predict.process import RUNNERS, Conversation, Environment
from influx_wrap.predict.runner import EXTERNAL, read_runner
from tests.clips import write_clip
from tests.predict.scenes import write_frames
from tests.predict.standins import IDLE, RUNNER, write_interpreter, write_runner

N = 6
READY = "say(ready=True)\n"
EACH = READY + "for request in requests():\n    n = request['frame']\n"


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    return write_frames(tmp_path / "frames", N)


def speaking(tmp_path: Path, body: str, timeout_s: float = 20, **facts: object) -> External:
    """A method that speaks for itself."""
    environment = Environment(write_interpreter(tmp_path / "interpreter", body))
    runner = write_runner(tmp_path / "standin.py", IDLE, **facts)
    return make_external(str(runner), {}, environment, tmp_path / "logs", timeout_s=timeout_s)


def served(tmp_path: Path, text: str = RUNNER, given: dict[str, str] | None = None) -> External:
    """A runner of one's own, in this environment."""
    runner = write_runner(tmp_path / "mine.py", text)
    environment = Environment(sys.executable)
    return make_external(str(runner), given or {}, environment, tmp_path / "logs", timeout_s=20)


def ask(method: External, path: Path, name: str = "clip") -> Predicted:
    try:
        return method.predict(Footage(name, path), lambda done, total: None)
    finally:
        method.close()


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of which none may be left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def is_gone(process: int) -> bool:
    """Whether a process has ended, be it that nobody has taken note."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")")[-1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_runner_is_served(tmp_path: Path, frames: Path) -> None:
    method = served(tmp_path, given={"focal_px": "200", "label": "second hand"})
    predicted = ask(method, frames)
    # The runner counts from the picture's corner.
    expected = [[200 + i, 101, 7.5, 5.5, -0.1, 0, 0, 0] for i in range(N)]
    assert predicted.answers.values == pytest.approx(np.array(expected, dtype=float))
    assert predicted.warnings == ()
    assert predicted.whole
    # What it prints is no answer, and is kept.
    log = (tmp_path / "logs" / "clip.log").read_text()
    assert "loading second hand" in log
    assert "looking at" in log


def test_frames_arrive_as_they_are_and_are_few(tmp_path: Path, temporary: Path) -> None:
    # Answers come late: as late as the parent allows.
    body = f"""
    at_once = len(os.listdir(os.path.dirname(request['path'])))
    assert at_once <= {AHEAD}, at_once
    data = open(request['path'], 'rb').read()
    assert data.startswith(b'\\x89PNG')
    camera(n, fy=float(len(data)))
"""
    frames = write_frames(tmp_path / "many", 20)
    predicted = ask(speaking(tmp_path, EACH + body), frames)
    assert predicted.answers.answered.all()
    assert not list(temporary.iterdir())


def test_pictures_of_all_kinds(tmp_path: Path) -> None:
    text = """
INSTALL = ""
SETTINGS = {}
def load(settings):
    import cv2
    def predict(path):
        picture = cv2.imread(path, cv2.IMREAD_UNCHANGED)
        assert picture.dtype == "uint8", picture.dtype
        return {"fx": picture.ndim, "fy": 1 + float(picture.mean()), "cx": 0, "cy": 0}
    return predict
"""
    deep = tmp_path / "deep"
    deep.mkdir()
    cv2.imwrite(str(deep / "0.png"), np.full((12, 16), 51400, np.uint16))
    assert ask(served(tmp_path, text), deep).answers.values[0, :2].tolist() == [2, 201]
    clip = write_clip(tmp_path / "clip.mp4", [np.full((48, 64), 120, np.uint8)] * 3)
    values = ask(served(tmp_path, text), clip).answers.values
    assert values[:, 0].tolist() == [3, 3, 3]


def test_stride(tmp_path: Path, frames: Path) -> None:
    method = speaking(tmp_path, EACH + "    camera(n)", STRIDE=4)
    assert method.stride == 4
    answers = ask(method, frames).answers
    assert answers.frames.tolist() == list(range(N))
    assert answers.answered.nonzero()[0].tolist() == [0, 4]


def test_whole_video(tmp_path: Path, frames: Path) -> None:
    watched = READY + "assert all(map(os.path.exists, video().values()))\n"
    method = speaking(tmp_path, watched + "camera(3); camera(1); say(done=1)", WHOLE_VIDEO=True)
    answers = ask(method, frames).answers
    assert answers.answered.nonzero()[0].tolist() == [1, 3]
    # One answer for all holds for those between the strides too.
    once = watched + "say(frame='all', fx=5, fy=5, cx=1, cy=1); say(done=1)"
    method = speaking(tmp_path, once, WHOLE_VIDEO=True, STRIDE=2)
    assert ask(method, frames).answers.values[:, 0].tolist() == [5] * N


def test_unified_camera(tmp_path: Path, frames: Path) -> None:
    method = speaking(tmp_path, EACH + "    camera(n, xi=0.5)", KIND="mei")
    answers = ask(method, frames).answers
    assert answers.values[0] == pytest.approx([100, 101, 7.5, 5.5, 0.5])


def test_out_of_order(tmp_path: Path, frames: Path) -> None:
    body = """
held = []
for request in requests():
    held.append(request["frame"])
    if len(held) == 2:
        camera(held.pop()); camera(held.pop())
"""
    answers = ask(speaking(tmp_path, READY + body), frames).answers
    assert answers.values[:, 0].tolist() == [100 + i for i in range(N)]


def test_answers_that_are_no_camera(tmp_path: Path, frames: Path) -> None:
    body = """
    wrong = [dict(fx=float("nan")), dict(fy=-3.0), dict(cx=None), dict(k1=float("inf")), dict(fx=0)]
    camera(n, **(wrong + [{}])[n])
"""
    predicted = ask(speaking(tmp_path, EACH + body), frames)
    assert predicted.answers.answered.tolist() == [False] * 5 + [True]
    assert "5 answers are no camera" in predicted.warnings[0]
    assert "first that for frame 0" in predicted.warnings[0]


def test_errors_of_frames(tmp_path: Path, frames: Path) -> None:
    text = RUNNER.replace('print("looking at", path)', "assert not path.endswith('2.png'), 'dark'")
    predicted = ask(served(tmp_path, text), frames)
    assert predicted.answers.answered.tolist() == [True, True, False, True, True, True]
    assert "failed on 1 frames, first on frame 2 (AssertionError: dark)" in predicted.warnings[0]
    assert "Traceback" in (tmp_path / "logs" / "clip.log").read_text()
    text = RUNNER.replace('print("looking at", path)', "raise MemoryError('full')")
    with pytest.raises(MethodError, match=r"failed on every frame \(MemoryError: full\)"):
        ask(served(tmp_path, text), frames)


def test_no_answer(tmp_path: Path, frames: Path) -> None:
    text = RUNNER.replace('print("looking at", path)', "return None")
    predicted = ask(served(tmp_path, text), frames)
    assert not predicted.answers.answered.any()
    assert predicted.warnings == ()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    if n == 3: sys.exit('out of luck')\n    camera(n)", r"exit code 1, saying 'out of l"),
        ("    if n == 3: os._exit(7)\n    camera(n)", r"ended with exit code 7"),
        ("    if n == 3: os.kill(os.getpid(), 9)\n    camera(n)", r"signal 9 \(out of memory\?\)"),
        (
            "    print('loading weights: 10 %', flush=True)",
            r"no answer \('loading weights: 10 %'\)",
        ),
        ("    print('{\"frame\": 0,', end='', flush=True); os._exit(0)", r"no answer \('\{\"frame"),
        ("    print('x' * 200_000, flush=True)", r"printed what is no answer \('xxx"),
        ("    sys.stdout.buffer.write(bytes(range(128, 256)) * 9 + b'\\n'); break", "no answer"),
        ("    print('[1, 2]', flush=True)", r"no answer \('\[1, 2\]'\)"),
        ("    print('[' * 50_000, flush=True)", r"no answer"),
        ("    camera(n); camera(n)", "frame 0, which nobody had asked about"),
        ("    camera(n)\n    if n == 5: camera(n)", "frame 5, which nobody had asked about"),
        ("    if n != 2: camera(n)", "left 1 frames without a word"),
        ("    camera(n + 70)", "frame 70, which nobody"),
        ("    camera(str(n))", "frame '0', which nobody"),
        ("    camera(False)", "frame False, which nobody"),
        ("    say(frame=n, fx=100, cx=8, cy=6)", "fy = 'nothing' for frame 0"),
        ("    camera(n, fx='100')", "fx = '100' for frame 0"),
        ("    camera(n, k1=True)", "k1 = True for frame 0"),
        ("    say(frame='all', fx=1, fy=1, cx=1, cy=1)", "frame 'all', which nobody"),
    ],
)
def test_crashes_and_rubbish(
    tmp_path: Path, frames: Path, temporary: Path, body: str, words: str
) -> None:
    with pytest.raises(MethodError, match=words) as caught:
        ask(speaking(tmp_path, EACH + body), frames)
    assert str(tmp_path / "logs" / "clip.log") in str(caught.value)
    assert not list(temporary.iterdir())


def test_stderr_is_kept(tmp_path: Path, frames: Path) -> None:
    body = "    sys.stderr.write(f'frame {n} is odd\\n')\n    if n == 3: os._exit(3)\n    camera(n)"
    with pytest.raises(MethodError, match="saying 'frame 3 is odd'"):
        ask(speaking(tmp_path, EACH + body), frames)
    log = (tmp_path / "logs" / "clip.log").read_text().splitlines()
    assert [line for line in log if line.endswith("odd")] == [f"frame {n} is odd" for n in range(4)]
    assert "== clip, 16 x 12" in log


def test_hanging_method_and_what_it_started(tmp_path: Path, frames: Path) -> None:
    body = f"""
    import subprocess
    helper = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(100)"])
    open({str(tmp_path / "pid")!r}, "w").write(f"{{os.getpid()}} {{helper.pid}}")
    time.sleep(100)
"""
    with pytest.raises(MethodError, match="standin was silent for 2 s"):
        ask(speaking(tmp_path, EACH + body, timeout_s=2), frames)
    assert all(is_gone(int(pid)) for pid in (tmp_path / "pid").read_text().split())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("time.sleep(100)", "could not be started: it was silent for 2 s"),
        ("raise ValueError('no weights')", "exit code 1, saying 'ValueError: no weights'"),
        ("say(hello=1)", "did not begin by saying"),
        ("os.close(1); time.sleep(100)", "closed its pipe"),
    ],
)
def test_bad_beginnings(tmp_path: Path, frames: Path, body: str, words: str) -> None:
    with pytest.raises(MethodError, match=words):
        ask(speaking(tmp_path, body, timeout_s=2), frames)


def test_method_that_does_not_listen(tmp_path: Path) -> None:
    talk = Conversation(
        ["sleep", "100"],
        tmp_path / "log",
        timeout_s=0.5,
        environment={},
        stop=threading.Event(),
    )
    try:
        with pytest.raises(MethodError, match="was silent"):
            talk.send({"path": "x" * 1_000_000})
    finally:
        talk.close()


def test_process_is_kept_and_replaced(tmp_path: Path, frames: Path) -> None:
    body = f"""
open({str(tmp_path / "starts")!r}, "a").write("start\\n")
say(ready=True)
videos = 0
for request in requests():
    videos += request["frame"] == 0
    if videos == 3 and request["frame"] == 2: sys.exit("enough")
    camera(request["frame"])
"""
    method = speaking(tmp_path, body)

    def predict(name: str) -> Predicted:
        return method.predict(Footage(name, frames), lambda done, total: None)

    predict("a")
    predict("b")
    with pytest.raises(MethodError, match="enough"):
        predict("c")
    predict("d")
    method.close()
    assert (tmp_path / "starts").read_text().count("start") == 2
    # The log has the name of the video for which the process was started.
    assert "== c" in (tmp_path / "logs" / "a.log").read_text()
    assert "== d" in (tmp_path / "logs" / "d.log").read_text()


def test_truncated_recording(tmp_path: Path) -> None:
    pictures = [np.random.default_rng(i).integers(0, 255, (48, 64), np.uint8) for i in range(12)]
    clip = write_clip(tmp_path / "short.mkv", pictures)
    clip.write_bytes(clip.read_bytes()[: int(0.7 * clip.stat().st_size)])
    predicted = ask(speaking(tmp_path, EACH + "    camera(n)"), clip)
    assert 0 < len(predicted.answers.frames) < 12
    assert predicted.answers.answered.all()
    assert not predicted.whole
    assert "are readable, then" in predicted.warnings[-1]


def test_method_not_installed(tmp_path: Path, frames: Path) -> None:
    text = RUNNER.replace('print("loading"', 'import no_such_module; print("loading"')
    with pytest.raises(NotInstalledError) as caught:
        ask(served(tmp_path, text), frames)
    for words in ("mine is not installed in", "no_such_module", "Write it yourself.", "--python"):
        assert words in str(caught.value)
    environment = Environment(str(tmp_path / "no-python"))
    with pytest.raises(InputError, match="no-python cannot be started: No such file"):
        ask(make_external("geocalib", {}, environment, tmp_path / "logs"), frames)


def test_container(tmp_path: Path, frames: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is a stand-in that notes what it is asked, and runs the command outside."""
    engine = tmp_path / "bin" / "docker"
    engine.parent.mkdir()
    engine.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n[ "$1" = kill ] && exit 0\n'
        f'while [ "$1" != some/image ]; do shift; done; shift; shift; exec {sys.executable} "$@"\n'
    )
    engine.chmod(0o755)
    runner = write_runner(tmp_path / "mine.py")
    environment = Environment("python3", "some/image", ("--gpus=all",))
    method = make_external(str(runner), {}, environment, tmp_path / "logs", timeout_s=20)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    with pytest.raises(InputError, match="needs docker or podman"):
        ask(method, frames)
    monkeypatch.setenv("PATH", f"{engine.parent}:/usr/bin:/bin")
    assert ask(method, frames).answers.answered.all()
    run, kill = (tmp_path / "asked").read_text().splitlines()
    words = run.split()
    assert words[:3] == ["run", "--rm", "--interactive"]
    name = words[3].removeprefix("--name=")
    assert kill == f"kill {name}"
    mounted = [word for word in words if word.startswith("--volume=")]
    for folder in (RUNNERS, tmp_path):
        assert f"--volume={folder}:{folder}:ro" in mounted
    assert any("influx-predict-" in volume for volume in mounted)
    assert words[words.index("some/image") - 1] == "--gpus=all"
    assert words[words.index("some/image") + 1] == "python3"


def test_runners_facts() -> None:
    for name, file in EXTERNAL.items():
        runner = read_runner(RUNNERS / file)
        assert runner.install.endswith("."), name
        assert runner.kinds == (
            ("mei", "rad-tan") if name in ("droidcalib", "anycalib") else ("rad-tan",)
        ), name
    colmap = read_runner(RUNNERS / "colmap.py")
    # The paper's settings.
    assert colmap.stride == 5
    assert colmap.settings["min_focal_length_ratio"] == 0.05
    assert colmap.settings["max_focal_length_ratio"] == 20
    assert colmap.whole_video
    pairs = {
        "perspective_fields.py": "Paramnet-360Cities-edina-uncentered",
        "unidepth.py": "lpiccinelli/unidepth-v2-vitl14",
        "wildcamera.py": "model_zoo/Release/wild_camera_all.pth",
    }
    for file, weights in pairs.items():
        assert read_runner(RUNNERS / file).settings["weights"] == weights


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def load(:", "line 1: this is not Python"),
        ("x = 1", "is no runner: it needs INSTALL, SETTINGS and load"),
        (RUNNER + "STRIDE = 0", "STRIDE must be"),
        (RUNNER + "KIND = 'fisheye'", "KIND must be rad-tan or mei, or a dict"),
        (RUNNER + "KIND = {}", "KIND must be rad-tan or mei, or a dict"),
        (RUNNER + "KIND = {'a': 'kb'}", "KIND must be rad-tan or mei, or a dict"),
        (RUNNER + "KIND = {'a': 'mei'}", "KIND depends on camera_model, which SETTINGS does not"),
        (RUNNER + "TIMEOUT_S = 60 * MINUTES", "TIMEOUT_S must be written out"),
    ],
)
def test_no_runner(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError, match=words):
        read_runner(tmp_path / "mine.py")


def test_settings_of_a_runner(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mine has no setting weight; its settings are: focal_px"):
        served(tmp_path, given={"weight": "1"})
    with pytest.raises(InputError, match="n must be a whole number, got 'many'"):
        served(tmp_path, given={"n": "many"})


def test_process_ends_with_its_parent(tmp_path: Path, frames: Path) -> None:
    """Killed, a parent can end nobody: who is served must notice."""
    text = RUNNER.replace(
        'print("looking at", path)',
        "import os, subprocess, time\n"
        "        other = subprocess.Popen(['sleep', '100'])\n"
        f"        with open({str(tmp_path / 'pid')!r}, 'w') as file:\n"
        "            file.write(f'{os.getpid()} {other.pid}')\n"
        "        time.sleep(100)",
    )
    runner = write_runner(tmp_path / "mine.py", text)
    program = f"""
import sys
from pathlib import Path
from influx_wrap.predict.process import Environment
from influx_wrap.predict.external import make_external
from influx_wrap.predict.predictor import Footage
method = make_external({str(runner)!r}, {{}}, Environment(sys.executable), Path({str(tmp_path)!r}))
method.predict(Footage("clip", Path({str(frames)!r})), lambda done, total: None)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", program], env=environment)
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):
        assert parent.poll() is None
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    assert all(is_gone(int(pid)) for pid in (tmp_path / "pid").read_text().split())


FORKING = """
import multiprocessing, os
INSTALL = "Nothing to install."
SETTINGS = {"start": "fork"}

def twice(number):
    return 2 * number

def load(settings):
    context = multiprocessing.get_context(settings["start"])
    def predict(path):
        frame = int(path.split("/")[-1].split(".")[0])
        with context.Pool(2) as pool:
            f = sum(pool.map(twice, [50, frame]))
        return {"fx": f, "fy": f, "cx": 8, "cy": 6}
    return predict
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_method_with_processes_of_its_own(tmp_path: Path, start: str) -> None:
    """Such as those that load pictures for a network, or all of hloc."""
    frames = write_frames(tmp_path / "two", 2)
    answers = ask(served(tmp_path, FORKING, {"start": start}), frames).answers
    assert answers.values[:, 0].tolist() == [100, 102]


def test_forked_processes_that_never_end(tmp_path: Path, frames: Path) -> None:
    text = (
        FORKING.replace("return 2 * number", "import time; note(); time.sleep(100)")
        + f"""
def note():
    with open({str(tmp_path / "pids")!r}, "a") as file:
        file.write(f"{{os.getpid()}}\\n")
"""
    )
    method = served(tmp_path, text)
    method.timeout_s = 3
    with pytest.raises(MethodError, match="mine was silent for 3 s"):
        ask(method, frames)
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2
    assert all(is_gone(int(pid)) for pid in pids)
