"""The packaged catalogue, a user's additions, and every way a file can be wrong."""

from pathlib import Path

import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.hardware import Camera, Lens

CAMERA = {
    "kind": "camera",
    "name": "mine",
    "sensor_width_mm": "36.0",
    "sensor_height_mm": "24.0",
    "width_px": "6000",
    "height_px": "4000",
}
LENS = {
    "kind": "lens",
    "name": "zoom",
    "lfl_min_mm": "24",
    "lfl_max_mm": "70",
    "fd_min_m": "0.5",
    "fd_lower_m": "1.0",
}
BOARD = {
    "kind": "board",
    "name": "a4",
    "width_mm": "297",
    "height_mm": "210",
    "tag_rows": "5",
    "tag_cols": "7",
    "tag_size_mm": "25",
    "tag_spacing": "0.3",
}


def write(path: Path, entry: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}: {value}\n" for key, value in entry.items()))


def test_packaged_hardware() -> None:
    catalogue = load_catalogue()
    assert catalogue.camera("arri-alexa-mini") == Camera(
        "arri-alexa-mini", 28.25, 18.17, 3424, 2202, 1.44, metadata_model="ALEXA Mini"
    )
    assert catalogue.lens("canon17") == Lens(
        "canon17", 17, 120, 0.85344, 1.5, -0.15, "CN7x17 KAS S/P1", "internal"
    )
    assert catalogue.lens("premista80") == Lens(
        "premista80", 80, 250, 1.5, 2.5, -0.6, "Premista80-250mmT2.9-3.5 F", "front"
    )
    assert sorted(catalogue.boards) == ["100x75", "200x150", "400x300", "800x600"]
    for board in catalogue.boards.values():
        assert (board.grid.tag_rows, board.grid.tag_cols) == (8, 11)
        assert board.grid.tag_size_m == pytest.approx(0.06 * board.width_mm / 1e3)
        assert board.grid.tag_spacing == 0.3
        assert board.name == f"{board.width_mm:g}x{board.height_mm:g}"


def test_a_users_folder_adds_and_overrides(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "down" / "camera.yaml", CAMERA)
    write(tmp_path / "lens.yaml", LENS | {"name": "canon17"})
    write(tmp_path / "board.yaml", BOARD)
    catalogue = load_catalogue(tmp_path)
    assert catalogue.camera("mine").height_above_ground_m == 1.44
    assert catalogue.lens("canon17").lfl_max_mm == 70
    assert catalogue.lens("canon17").metadata_model is None
    assert catalogue.board("a4").grid.tag_size_m == 0.025
    assert set(catalogue.boards) == {"100x75", "200x150", "400x300", "800x600", "a4"}


def test_the_same_name_twice_in_one_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", CAMERA)
    write(tmp_path / "b.yaml", CAMERA)
    with pytest.raises(InputError, match=r"b.yaml: camera mine is described in .*a.yaml already"):
        load_catalogue(tmp_path)


def test_unknown_names_list_what_is_known() -> None:
    catalogue = load_catalogue()
    with pytest.raises(InputError, match=r"canon17, premista80.*Did you mean canon17\?"):
        catalogue.lens("cannon17")
    with pytest.raises(InputError, match="arri-alexa-mini"):
        catalogue.camera("x")
    with pytest.raises(InputError, match="400x300"):
        catalogue.board("40x30")


def test_the_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a folder"):
        load_catalogue(tmp_path / "nowhere")


@pytest.mark.parametrize("entry", [CAMERA, LENS, BOARD], ids=["camera", "lens", "board"])
def test_every_key_is_needed_and_checked(tmp_path: Path, entry: dict[str, str]) -> None:
    path = tmp_path / "entry.yaml"
    for key in entry:
        write(path, {k: v for k, v in entry.items() if k != key})
        with pytest.raises(InputError, match=rf"entry.yaml: {key} is missing"):
            load_catalogue(tmp_path)
        wrong = ["[1]", "{a: 1}", "null", "true"]
        if key not in ("kind", "name"):
            wrong += [".nan", ".inf", "-1", "text", "'1'", "1e-3"]
        for value in wrong:
            write(path, entry | {key: value})
            with pytest.raises(InputError, match=rf"entry.yaml: {key} "):
                load_catalogue(tmp_path)


@pytest.mark.parametrize(
    ("entry", "key", "value"),
    [
        (CAMERA, "colour", "red"),
        (CAMERA, "height_above_ground_m", "-1"),
        (CAMERA, "width_px", "6000.5"),
        (LENS, "synthetic_k1_min", ".nan"),
        (LENS, "metadata_model", "17"),
        (LENS, "synthetic_focusing", "17"),
        (LENS, "fd_lower", "1.0"),
        (BOARD, "tag_size_mm", "250"),
        (BOARD, "kind", "table"),
    ],
)
def test_faults_name_file_and_key(
    tmp_path: Path, entry: dict[str, str], key: str, value: str
) -> None:
    write(tmp_path / "entry.yaml", entry | {key: value})
    with pytest.raises(InputError, match=rf"entry.yaml: {key} "):
        load_catalogue(tmp_path)


def test_an_unknown_way_of_focusing_names_the_file(tmp_path: Path) -> None:
    write(tmp_path / "entry.yaml", LENS | {"synthetic_focusing": "rear"})
    words = r"entry.yaml: lens zoom: synthetic_focusing must be one of internal, front, got 'rear'"
    with pytest.raises(InputError, match=words):
        load_catalogue(tmp_path)


def test_ranges_out_of_order_name_the_file(tmp_path: Path) -> None:
    write(tmp_path / "entry.yaml", LENS | {"lfl_max_mm": "20"})
    with pytest.raises(InputError, match=r"entry.yaml: lens zoom: lfl_max_mm is below"):
        load_catalogue(tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"kind: [camera", "line [12]: this is not YAML"),
        (b"kind: camera\n\tname: x\n", "line 2: this is not YAML"),
        (b"- camera\n", "a mapping"),
        (b"", "a mapping"),
        (b"\xff\xfe\x00", "not a text file"),
        (b"kind: camera\nname: 2020-13-45\n", "line 2: 2020-13-45 is no time"),
    ],
)
def test_files_that_are_not_yaml(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "entry.yaml").write_bytes(content)
    with pytest.raises(InputError, match=rf"entry.yaml.*{problem}"):
        load_catalogue(tmp_path)
