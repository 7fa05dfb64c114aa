"""Frames of real files made here: exact indices, exact pixels, and faults named."""

import json
import sys

import cv2
import numpy as np
import pytest
from av.codec.hwaccel import hwdevices_available

from influx_wrap.errors import InputError
from influx_wrap.formats.arri import read_art_metadata
from influx_wrap.observe.arriraw import export_metadata
from influx_wrap.observe.frames import GreyInput, TruncatedInput
from influx_wrap.observe.sources import open_frames

av = pytest.importorskip("av")

N = 40
WORLD = cv2.GaussianBlur(
    np.random.default_rng(0).integers(0, 256, (120, 240)).astype(np.uint8), (0, 0), 2
)


def write_video(path, codec, pixels, settings=None, **options):
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream(codec, rate=25, options=settings or {"g": "10"})
        stream.width, stream.height, stream.pix_fmt = 160, 120, pixels
        for i in range(N):
            grey = np.ascontiguousarray(WORLD[:, i : i + 160])
            frame = av.VideoFrame.from_ndarray(grey, "gray").reformat(format=pixels)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(
    ("name", "codec", "pixels", "dtype"),
    [
        ("a.mp4", "libx264", "yuv420p", np.uint8),
        ("a.mov", "prores_ks", "yuv422p10le", np.uint16),
        ("a.mkv", "ffv1", "bgr0", np.uint8),
    ],
)
def test_videos(tmp_path, name, codec, pixels, dtype):
    source = open_frames(write_video(tmp_path / name, codec, pixels))
    frames = list(source.frames())
    assert source.image_size == (160, 120)
    assert [index for index, _ in frames] == list(range(N))
    for index, picture in frames:
        assert picture.dtype == dtype
        truth = WORLD[:, index : index + 160].ravel()
        assert np.corrcoef(picture.ravel(), truth)[0, 1] > 0.98
    for index, picture in source.frames(23, 26):
        np.testing.assert_array_equal(picture, frames[index][1])
    assert [index for index, _ in source.frames(23, 26)] == [23, 24, 25]
    assert list(source.frames(5, 5)) == list(source.frames(N)) == []


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("a.mp4", "libx264", {"movflags": "faststart"}),
        ("b.mp4", "libx264", {"movflags": "frag_keyframe+empty_moov"}),
        ("a.mkv", "libx264", {}),
    ],
)
def test_a_truncated_video_yields_what_is_there(tmp_path, name, codec, options):
    path = write_video(tmp_path / name, codec, "yuv420p", **options)
    whole = [picture for _, picture in open_frames(path).frames()]
    path.write_bytes(path.read_bytes()[: int(0.6 * path.stat().st_size)])
    read = []
    with pytest.raises(TruncatedInput, match=r"frames 0 to \d+ are readable") as caught:
        read.extend(picture for _, picture in open_frames(path).frames())
    assert 0 < len(read) == caught.value.n_read < N
    np.testing.assert_array_equal(read, whole[: len(read)])


@pytest.mark.parametrize("codec", ["ffv1", "libx264"])
def test_overwritten_bytes_are_noticed(tmp_path, codec):
    path = write_video(tmp_path / "a.mkv", codec, "yuv420p")
    whole = [picture for _, picture in open_frames(path).frames()]
    data = path.read_bytes()
    for seed in range(10):
        rng = np.random.default_rng(seed)
        damaged = bytearray(data)
        at = int(rng.uniform(0.3, 0.8) * len(data))
        damaged[at : at + 8] = rng.bytes(8)
        path.write_bytes(damaged)
        read = []
        with pytest.raises(TruncatedInput):
            read.extend(picture for _, picture in open_frames(path).frames())
        np.testing.assert_array_equal(read, whole[: len(read)])


X264 = {
    "closed": "keyint=10:bframes=3:b-adapt=0:scenecut=0",
    "open": "keyint=10:bframes=3:b-adapt=0:scenecut=0:open-gop=1",
}


@pytest.mark.parametrize("gop", X264)
def test_reading_begins_at_keyframes(tmp_path, gop):
    settings = {"x264-params": X264[gop]}
    path = write_video(tmp_path / "a.mp4", "libx264", "yuv420p", settings, movflags="faststart")
    source = open_frames(path)
    begins = [source.keyframe_before(start) for start in (9, 10, 25, 39, 40)]
    indices = [begin and begin.index for begin in begins]
    assert indices == ([None, 10, 20, 30, 30] if gop == "closed" else [None] * 5)
    whole = [picture for _, picture in source.frames()]
    for start in (1, 9, 10, 25, 39, 40):
        frames = list(source.frames(start))
        assert [index for index, _ in frames] == list(range(start, N))
        np.testing.assert_array_equal([p for _, p in frames], whole[start:] or np.empty(0))
    path.write_bytes(path.read_bytes()[: int(0.8 * path.stat().st_size)])
    ends = []
    for start in (0, 12):
        with pytest.raises(TruncatedInput) as caught:
            list(source.frames(start))
        ends.append(caught.value.n_read)
    assert 20 < ends[0] == ends[1] < N


@pytest.mark.parametrize("suffix", [".ts", ".mkv", ".mov"])
def test_a_clip_cut_out_of_a_longer_one(tmp_path, suffix):
    settings = {"x264-params": X264["open"]}
    path = write_video(tmp_path / "a.ts", "libx264", "yuv420p", settings)
    whole = [picture for _, picture in open_frames(path).frames()]
    cut = tmp_path / f"cut{suffix}"
    n_keyframes = 0
    with av.open(str(path)) as container, av.open(str(cut), "w") as output:
        stream = output.add_stream_from_template(container.streams.video[0])
        for packet in container.demux(video=0):
            n_keyframes += packet.is_keyframe
            if packet.size and n_keyframes > 1:
                packet.stream = stream
                output.mux(packet)
    frames = [picture for _, picture in open_frames(cut).frames()]
    np.testing.assert_array_equal(frames, whole[-len(frames) :])
    assert len(frames) == 30


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tiff"])
def test_folders_are_sorted_naturally(tmp_path, suffix):
    top = 65535 if suffix == ".tiff" else 255
    dtype = np.uint16 if suffix == ".tiff" else np.uint8
    for i in (10, 2, 1):
        cv2.imwrite(str(tmp_path / f"frame{i}{suffix}"), np.full((20, 30), top // i, dtype))
    (tmp_path / "notes.txt").write_text("not a picture")
    source = open_frames(tmp_path)
    frames = list(source.frames())
    assert (source.image_size, source.n_frames) == ((30, 20), 3)
    assert [int(picture[0, 0]) for _, picture in frames] == [top, top // 2, top // 10]
    assert frames[0][1].dtype == dtype


def test_of_a_folder_no_more_is_read_than_asked_for(tmp_path):
    for i in range(12):
        cv2.imwrite(str(tmp_path / f"{i}.png"), np.full((20, 30), i, np.uint8))
    source = open_frames(tmp_path)
    (tmp_path / "8.png").unlink()
    assert [(i, int(p[0, 0])) for i, p in source.frames(3, 8)] == [(i, i) for i in range(3, 8)]
    with pytest.raises(InputError, match=r"8\.png does not exist"):
        list(source.frames(3))


def test_faults_of_folders(tmp_path):
    with pytest.raises(InputError, match="holds no pictures"):
        open_frames(tmp_path)
    for i, width in enumerate((30, 30, 31)):
        cv2.imwrite(str(tmp_path / f"{i}.png"), np.zeros((20, width), np.uint8))
    with pytest.raises(InputError, match=r", 2.png has 31 x 20"):
        list(open_frames(tmp_path).frames())
    for name in ("1.png", "1.jpg"):
        (tmp_path / "1.png").unlink(missing_ok=True)
        cv2.imwrite(str(tmp_path / name), WORLD)
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-500])
        with pytest.raises(TruncatedInput, match=f"frames 0 to 0 are readable, then {name}"):
            list(open_frames(tmp_path).frames())


def test_faults_of_files(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        open_frames(tmp_path / "none.mp4")
    garbage = tmp_path / "garbage.mp4"
    garbage.write_bytes(np.random.default_rng(0).bytes(50_000))
    with pytest.raises(InputError, match="not a video"):
        open_frames(garbage)


def test_mxf_files(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    path = write_video(tmp_path / "a.mxf", "mpeg2video", "yuv420p")
    assert len(list(open_frames(path).frames())) == N
    data = path.read_bytes()
    path.write_bytes(bytes(3000) + data[3000:9000])
    with pytest.raises(InputError, match=r"no frame is readable|is damaged") as caught:
        open_frames(path)
    assert "art-cmd" not in str(caught.value)
    path.write_bytes(bytes(3000) + "ARRI".encode("utf-16-be") + data[3000:9000])
    with pytest.raises(InputError, match="art-cmd"):
        open_frames(path)


def test_video_without_pyav(tmp_path, monkeypatch):
    (tmp_path / "a.mp4").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(InputError, match=r"influx_wrap\[video\]"):
        open_frames(tmp_path / "a.mp4")


def test_arriraw_goes_through_art_cmd(tmp_path, monkeypatch):
    clip = tmp_path / "clip.ari"
    clip.write_bytes(b"ARRI" + bytes(1000))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"art-cmd.*www.arri.com"):
        open_frames(clip)
    tool = tmp_path / "art-cmd"
    tool.write_text(
        f"#!{sys.executable}\nimport sys, cv2, numpy\n"
        "out = sys.argv[sys.argv.index('--output') + 1]\n"
        "for i in range(3):\n"
        "    cv2.imwrite(out % i, numpy.full((20, 30), 1000 * i, 'uint16'))\n"
    )
    tool.chmod(0o755)
    source = open_frames(clip)
    assert [(i, int(p[0, 0])) for i, p in source.frames()] == [(0, 0), (1, 1000), (2, 2000)]
    tool.write_text(f"#!{sys.executable}\nraise SystemExit('no licence')\n")
    with pytest.raises(InputError, match="no licence"):
        open_frames(clip)
    with pytest.raises(InputError, match="no licence"):
        export_metadata(clip, tmp_path / "metadata.json")
    assert not (tmp_path / "metadata.json").exists()


def test_an_arri_clip_s_metadata(tmp_path, monkeypatch):
    clip = tmp_path / "clip.mxf"
    clip.write_bytes(b"ARRI" + bytes(1000))
    tool = tmp_path / "art-cmd"
    state = {"lensFocalLength": 24000, "lensFocusDistanceMetric": 1500}
    lens = {"metadataSetName": "Lens State", "metadataSetPayload": state}
    frames = [{"frameId": i, "frameBasedMetadataSets": [lens]} for i in range(3)]
    content = json.dumps({"frameBasedMetadata": {"frames": frames}})
    tool.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "assert sys.argv[1] == 'export'\n"
        f"open(sys.argv[sys.argv.index('--output') + 1], 'w').write({content!r})\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    export_metadata(clip, tmp_path / "metadata.json")
    metadata = read_art_metadata(tmp_path / "metadata.json")
    assert metadata.lfl_mm.tolist() == [24.0] * 3
    assert metadata.fd_m.tolist() == [1.5] * 3
    with pytest.raises(InputError, match="does not exist"):
        export_metadata(tmp_path / "other.mxf", tmp_path / "metadata.json")


def solid(rgb, layout, matrix, full):
    """A frame of one colour, its planes computed here: Y'CbCr by the standard's own formula."""
    kr, kb = {1: (0.2126, 0.0722), 5: (0.299, 0.114)}[matrix]
    r, g, b = np.array(rgb) / 255
    y = kr * r + (1 - kr - kb) * g + kb * b
    chroma = (b - y) / (2 * (1 - kb)), (r - y) / (2 * (1 - kr))
    deep = 4 if layout.endswith("10le") else 1
    y, scale = (255 * y, 255) if full else (16 + 219 * y, 224)
    frame = av.VideoFrame(64, 48, layout)
    for plane, value in zip(frame.planes, (y, *(128 + scale * c for c in chroma)), strict=True):
        values = np.frombuffer(memoryview(plane), np.uint16 if deep == 4 else np.uint8)
        values[:] = round(deep * value)
    frame.colorspace, frame.color_range = matrix, 2 if full else 1
    return frame


@pytest.mark.parametrize("matrix", [1, 5])
@pytest.mark.parametrize(
    ("name", "codec", "layout", "full"),
    [
        ("a.mp4", "libx264", "yuv420p", False),
        ("a.mp4", "libx264", "yuv420p", True),
        ("a.mov", "prores_ks", "yuv422p10le", False),
    ],
)
def test_colours_of_videos(tmp_path, name, codec, layout, matrix, full):
    colours = [(220, 40, 90), (200, 200, 30), (10, 20, 160)]
    with av.open(str(tmp_path / name), "w") as container:
        stream = container.add_stream(codec, rate=24)
        stream.width, stream.height, stream.pix_fmt = 64, 48, layout
        stream.codec_context.color_range = 2 if full else 1
        stream.codec_context.colorspace = matrix
        for rgb in colours:
            container.mux(stream.encode(solid(rgb, layout, matrix, full)))
        container.mux(stream.encode(None))
    source = open_frames(tmp_path / name, colour=True)
    assert source.fps == 24
    pictures = [picture for _, picture in source.frames()]
    assert len(pictures) == 3
    for rgb, picture in zip(colours, pictures, strict=True):
        assert picture.shape == (48, 64, 3)
        assert picture.dtype == np.uint8
        error = picture.reshape(-1, 3)[:, ::-1] - np.array(rgb, dtype=float)
        assert np.abs(np.median(error, axis=0)).max() <= 5


def test_colours_of_pictures(tmp_path):
    deep = np.random.default_rng(0).integers(0, 65536, (20, 30, 3)).astype(np.uint16)
    deep[0, 0] = 65535
    cv2.imwrite(str(tmp_path / "0.png"), deep)
    cv2.imwrite(str(tmp_path / "1.png"), (deep >> 8).astype(np.uint8))
    source = open_frames(tmp_path, colour=True)
    assert source.fps is None
    (_, first), (_, second) = source.frames()
    assert first.dtype == second.dtype == np.uint8
    np.testing.assert_array_equal(first, np.rint(deep / 257))
    np.testing.assert_array_equal(second, deep >> 8)


def test_lossless_colours(tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (3, 40, 64, 3)).astype(np.uint8)
    write_colours(tmp_path / "a.mkv", pictures)
    read = [picture for _, picture in open_frames(tmp_path / "a.mkv", colour=True).frames()]
    np.testing.assert_array_equal(read, pictures)


def write_colours(path, pictures):
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=24)
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = "bgr0"
        for picture in pictures:
            frame = av.VideoFrame.from_ndarray(picture, "bgr24").reformat(format="bgr0")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def test_grey_recordings_have_no_colour(tmp_path):
    with av.open(str(tmp_path / "a.mkv"), "w") as container:
        stream = container.add_stream("ffv1", rate=24)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "gray"
        container.mux(stream.encode(av.VideoFrame(64, 48, "gray")))
        container.mux(stream.encode(None))
    cv2.imwrite(str(tmp_path / "0.png"), np.zeros((48, 64), np.uint8))
    for path in (tmp_path / "a.mkv", tmp_path):
        assert len(list(open_frames(path).frames())) == 1
        with pytest.raises(GreyInput, match="is grey"):
            open_frames(path, colour=True)


def test_a_grey_picture_among_others_has_colours(tmp_path):
    cv2.imwrite(str(tmp_path / "0.png"), np.full((48, 64, 3), (10, 20, 30), np.uint8))
    cv2.imwrite(str(tmp_path / "1.png"), np.full((48, 64), 7, np.uint8))
    first, second = (picture for _, picture in open_frames(tmp_path, colour=True).frames())
    assert first[0, 0].tolist() == [10, 20, 30]
    assert second.shape == first.shape
    assert (second == 7).all()


@pytest.mark.parametrize(
    ("name", "gop", "least"),
    [("a.mp4", 2, 10), ("a.mkv", 2, 10), ("a.mp4", 100, 20), ("a.mkv", 100, 2)],
)
def test_samples_are_frames_spread_over_the_video(tmp_path, name, gop, least):
    path = write_video(tmp_path / name, "libx264", "yuv420p", {"g": str(gop), "bf": "0"})
    source = open_frames(path)
    frames = [picture for _, picture in source.frames()]
    samples = list(source.samples(20))
    which = [min(range(N), key=lambda i: np.abs(frames[i] - p.astype(int)).sum()) for p in samples]
    for index, sample in zip(which, samples, strict=True):
        np.testing.assert_array_equal(sample, frames[index])
    assert len(set(which)) >= least
    assert max(which) - min(which) > N / 2
    path.write_bytes(path.read_bytes()[: int(0.6 * path.stat().st_size)])
    if name == "a.mkv":
        assert 0 < len(list(open_frames(path).samples(20))) <= len(samples)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_single_frames(tmp_path, name):
    path = write_video(tmp_path / name, "libx264", "yuv420p", {"g": "10", "bf": "0"})
    source = open_frames(path)
    frames = [picture for _, picture in source.frames()]
    wanted = [31, 3, 33, 12]
    read = list(source.at(wanted))
    assert [index for index, _ in read] == sorted(wanted)
    for index, picture in read:
        np.testing.assert_array_equal(picture, frames[index])
    assert list(source.at([])) == list(source.at([N + 5])) == []


def test_decoders(tmp_path, monkeypatch):
    """Hardware, where there is any, gives the same pictures; where there is none, it is said."""
    settings = {"x264-params": X264["closed"]}
    path = write_video(tmp_path / "a.mp4", "libx264", "yuv420p", settings)
    whole = [picture for _, picture in open_frames(path).frames()]
    source = open_frames(path, decoder="auto")
    assert source.decoder in (None, *hwdevices_available())
    np.testing.assert_array_equal([picture for _, picture in source.frames()], whole)
    np.testing.assert_array_equal([p for _, p in source.for_one_core().frames(12)], whole[12:])
    monkeypatch.setattr("av.codec.hwaccel.hwdevices_available", lambda: ["nonsense"])
    nothing = open_frames(path, decoder="auto")
    assert nothing.decoder is None
    np.testing.assert_array_equal([picture for _, picture in nothing.frames()], whole)
    with pytest.raises(InputError, match=r"cannot be decoded by nothing: .*use nonsense;"):
        open_frames(path, decoder="nothing")
    assert open_frames(path, decoder="software").decoder is None
