"""Flashes of a video: all of them, each once, and nothing else."""

from collections.abc import Iterable
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.flight import (
    FLASHES,
    OTHER_LIGHTS,
    StoredFlashes,
    read_flashes,
    read_other_lights,
)
from influx_wrap.observe import flashes
from influx_wrap.observe.flashes import (
    COLUMNS,
    JOURNAL,
    MOST_LIGHTS,
    detect_flashes,
    find_steady_lights,
    join_flashes,
    look_at_frame,
)
from influx_wrap.observe.frames import GreyInput, TruncatedInput
from influx_wrap.observe.journal import CHUNK
from influx_wrap.observe.sources import open_frames
from tests.observe.leds import LAMP_BGR, add_light, develop, night

SIZE, FPS, FLASH_FRAMES = (192, 128), 24.0, 6
LED = {"core_px": 4.0, "halo_px": 7.0}
Sightings = dict[int, list[tuple[float, float, int]]]


def picture(lights: Iterable[tuple[tuple[float, float], dict]], seed: int = 0) -> np.ndarray:
    light, noise = night(SIZE, np.random.default_rng(seed))
    for uv, options in lights:
        add_light(light, uv, **options)
    return develop(light, noise)


def write_film(folder: Path, pictures: Iterable[np.ndarray]) -> Path:
    folder.mkdir()
    for index, image in enumerate(pictures):
        cv2.imwrite(str(folder / f"{index}.png"), image)
    return folder


def film(flights: dict[int, tuple[float, float]], n: int, steady: list = []) -> list[np.ndarray]:  # noqa: B006
    """Pictures of flashes by first frame, six frames long, the first half exposed."""
    dark = picture(steady)
    pictures = [dark] * n
    for first, uv in flights.items():
        half = picture([*steady, (uv, LED | {"gain": 100.0})], first)
        full = picture([*steady, (uv, LED)], first + 1)
        pictures[first : first + 6] = [half, *[full] * 5]
    return pictures


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_this_process(function, tasks, processes):
        yield from ((task, function(task)) for task in tasks)

    monkeypatch.setattr(flashes, "parallel", in_this_process)


def run(path: Path, out: Path, **options) -> tuple[StoredFlashes, list[int]]:
    heard: list[int] = []
    source = open_frames(path, colour=True)
    options = {"fps": FPS} | options
    return detect_flashes(
        source, out, jobs=1, progress=lambda done, _: heard.append(done), **options
    ), heard


def sightings(seen: Sightings, n: int) -> np.ndarray:
    """What ``look_at_frame`` would return for frames with lights (u, v, rule)."""
    lights = np.full((n, MOST_LIGHTS, len(COLUMNS)), np.nan)
    for frame, row in seen.items():
        for rank, (u, v, rule) in enumerate(row):
            lights[frame, rank] = (u, v, 12, 11, rule)
    return lights


def during(first: int, n: int, *lights: tuple[float, float, int]) -> Sightings:
    return {frame: list(lights) for frame in range(first, first + n)}


def joined(seen: Sightings, n: int = 200) -> tuple[list[int], list[str]]:
    """First frames of the flashes, and the reasons for the other lights."""
    sequence = join_flashes(sightings(seen, n), FLASH_FRAMES)
    return [track.frames[0] for track in sequence.flashes], [o.reason for o in sequence.others]


def test_a_flash_is_what_lasts_as_long():
    for n in range(1, 20):
        first, reasons = joined(during(10, n, (50, 50, 1)))
        assert (first == [10]) == (4 <= n <= 10), n
        assert bool(reasons) == (not first)


def test_one_frame_may_be_missed_but_not_two():
    seen = during(10, 6, (50, 50, 1))
    del seen[12]
    assert joined(seen) == ([10], [])
    seen = during(10, 12, (50, 50, 1))
    del seen[15], seen[16]
    assert joined(seen) == ([10, 17], [])


def test_flashes_in_a_row_at_two_places_are_two():
    assert joined(during(10, 6, (50, 50, 1)) | during(16, 6, (90, 50, 1))) == ([10, 16], [])
    # A drone that drifts is one.
    drifting = {10 + k: [(50.0 + 3 * k, 50.0, 1)] for k in range(6)}
    assert joined(drifting) == ([10], [])


def test_a_light_that_stays_does_not_hide_a_flash():
    car = {frame: [(10.0 + 2 * frame, 80.0, 1)] for frame in range(5, 80)}
    for frame in range(40, 46):
        car[frame] = [*car[frame], (50.0, 20.0, 3)]
    assert joined(car) == ([40], ["is on for longer than a flash"])


def test_scatter_beside_a_flash_is_none():
    both = during(10, 6, (50, 50, 1), (80, 50, 3))
    assert joined(both) == ([10], ["is beside a likelier flash"])
    # Once in a while the other comes first.
    both[12] = both[12][::-1]
    assert joined(both) == ([10], ["is beside a likelier flash"])


def test_what_blinks_at_one_place_is_none():
    blinks: Sightings = {}
    for first in range(0, 150, 25):
        blinks |= during(first, 6, (150.3, 30.1 + first / 1000, 2))
    elsewhere = during(110, 6, (50, 50, 1))
    first, reasons = joined(blinks | elsewhere)
    assert first == [110]
    assert reasons == ["blinks at one place"] * 6
    # An LED that is tried out on a table.
    assert joined(blinks)[0] == list(range(0, 150, 25))


def test_nothing_at_all():
    assert joined({}) == joined({}, 0) == ([], [])


@pytest.mark.usefixtures("quick")
def test_from_pictures_to_a_file(tmp_path):
    truth = {15: (40.3, 30.6), 60: (150.7, 90.2), 66: (150.1, 40.4), 100: (96.5, 84.5)}
    lamp = ((100.0, 20.0), {"colour": LAMP_BGR, "gain": 20.0, "core_px": 3.0})
    mast = ((36.0, 90.0), LED)
    path = write_film(tmp_path / "film", film(truth, 130, [lamp, mast]))
    stored, heard = run(path, tmp_path / "out")
    assert heard == list(range(131))
    found = stored.flashes
    assert found.frames.tolist() == list(truth)
    assert found.last_frames.tolist() == [first + 5 for first in truth]
    np.testing.assert_allclose(found.uv, list(truth.values()), atol=0.15)
    assert set(found.rule.tolist()) <= {1, 2}
    assert (found.fps, found.n_frames, found.image_size) == (FPS, 130, SIZE)
    assert stored.truncated is None
    read = read_flashes(tmp_path / "out" / FLASHES)
    assert read.footage == path
    np.testing.assert_array_equal(read.flashes.uv, found.uv)
    others = read_other_lights(tmp_path / "out" / OTHER_LIGHTS)
    assert [one.reason.partition(",")[0] for one in others] == ["is on most of the time"] * 2
    np.testing.assert_allclose([one.uv for one in others], [mast[0], lamp[0]], atol=2)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {FLASHES, OTHER_LIGHTS}


@pytest.mark.usefixtures("quick")
def test_work_goes_on_and_is_not_done_twice(tmp_path, monkeypatch):
    path = write_film(tmp_path / "film", film({70: (40.3, 30.6)}, 2 * CHUNK))
    run(path, tmp_path / "whole")

    def stopped(function, tasks, processes):
        for task in tasks:
            if task[0] == CHUNK + 5:
                raise KeyboardInterrupt
            yield task, function(task)

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(flashes, "parallel", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(path, out)
    assert [path.name for path in out.iterdir()] == [JOURNAL]
    assert run(path, out)[1][0] == CHUNK
    for name in (FLASHES, OTHER_LIGHTS):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(flashes, "parallel", None)
        assert run(path, out)[1] == [2 * CHUNK]
    assert run(path, out, fps=25.0)[1][0] == 0
    assert read_flashes(out / FLASHES).flashes.fps == 25


@pytest.mark.usefixtures("quick")
def test_damage_ends_the_search(tmp_path):
    path = write_film(tmp_path / "film", film({10: (40.3, 30.6), 40: (90.0, 60.0)}, 60))
    (path / "30.png").write_bytes(b"no picture")
    stored, _ = run(path, tmp_path / "out")
    assert stored.flashes.frames.tolist() == [10]
    assert stored.flashes.n_frames == 30
    assert "30.png" in (stored.truncated or "")
    assert run(path, tmp_path / "out")[1][0] == 0, "a mended copy may have come in its place"
    (path / "5.png").write_bytes(b"no picture")
    with pytest.raises(TruncatedInput, match="frames 0 to 4"):
        run(path, tmp_path / "none")


@pytest.mark.usefixtures("quick")
def test_films_without_a_flash(tmp_path):
    dark = write_film(tmp_path / "dark", film({}, 40, [((100.0, 20.0), LED)]))
    with pytest.raises(InputError, match=r"no flash of 0.25 s in 40 frames \(1 other light"):
        run(dark, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    grey = [cv2.cvtColor(p, cv2.COLOR_BGR2GRAY) for p in film({10: (40.3, 30.6)}, 30)]
    path = write_film(tmp_path / "grey", [cv2.merge([p, p, p]) for p in grey])
    with pytest.raises(GreyInput, match="is grey"):
        run(path, tmp_path / "out")
    with pytest.raises(InputError, match="give --fps"):
        run(dark, tmp_path / "out", fps=None)
    with pytest.raises(InputError, match="without colour"):
        detect_flashes(open_frames(dark), tmp_path, jobs=1, progress=print, fps=FPS)


def test_the_led_is_seen_beside_a_steady_light(tmp_path):
    """The red lamp is larger than the LED: without the mask it would be chosen."""
    lamp = ((120.0, 50.0), {"gain": 600.0, "core_px": 6.0, "halo_px": 12.0})
    path = write_film(tmp_path / "film", film({}, 12, [lamp]))
    steady = find_steady_lights(open_frames(path, colour=True), FLASH_FRAMES / 100)
    assert len(steady.patches) == 1
    image = picture([lamp, ((30.3, 100.6), LED)])
    with_lamp = look_at_frame(image.copy(), ())
    np.testing.assert_allclose(with_lamp[:2, :2], [lamp[0], (30.3, 100.6)], atol=0.1)
    without = look_at_frame(image.copy(), steady.patches)
    np.testing.assert_array_equal(without[0], with_lamp[1])
    assert np.isnan(without[1:]).all()
