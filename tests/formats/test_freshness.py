"""What says that it was made from the same is not made again; anything else is."""

from pathlib import Path

import pytest

from influx_wrap.formats.files import write_json
from influx_wrap.formats.freshness import MADE_FROM, is_made_from

INPUTS = {"footage": "0123", "truth": None, "fps": "24"}


def test_the_same(tmp_path: Path) -> None:
    write_json(tmp_path / MADE_FROM, INPUTS)
    assert is_made_from(tmp_path / MADE_FROM, dict(reversed(INPUTS.items())))


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"footage": "0123"}', b'{"footage"', b"\xff", b"[" * 99999]
)
def test_anything_else(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / MADE_FROM
    assert not is_made_from(path, INPUTS), "there is none"
    path.write_bytes(content)
    assert not is_made_from(path, INPUTS)
    assert not is_made_from(tmp_path, INPUTS), "a folder"
