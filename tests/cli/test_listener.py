"""A run's bars: works side by side, each with an estimate of the time left."""

import time

from influx_wrap.cli.listener import ConsoleListener


def shown(listener: ConsoleListener) -> dict[str, tuple[float, float | None]]:
    return {task.description: (task.completed, task.total) for task in listener._bar.tasks}


def test_works_side_by_side() -> None:
    with ConsoleListener() as listener:
        listener.progress("frames of all recordings", 192, 800)
        listener.progress("frames of z1f1", 192, None)
        listener.progress("calibrating", 0, 2)
        assert list(shown(listener)) == [
            "frames of all recordings",
            "frames of z1f1",
            "calibrating",
        ]
        time.sleep(0.01)
        listener.progress("frames of all recordings", 384, 800)
        time.sleep(0.01)
        listener.progress("frames of all recordings", 576, 800)
        assert shown(listener)["frames of all recordings"] == (576, 800)
        left_s = listener._bar.tasks[0].time_remaining
        assert left_s is not None
        # What was there before says nothing of how fast it goes on: 192 take 10 ms.
        assert 0.005 < left_s < 5
        listener.finished("frames of z1f1")
        listener.progress("frames of all recordings", 800, 800)
        assert shown(listener) == {"calibrating": (0, 2)}
        listener.finished("what nobody has begun")
        listener.progress("calibrating", 2, 2)
        assert not shown(listener)
