"""What all formats share."""

import hashlib
from pathlib import Path

import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.files import file_hash


def test_file_hash(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    assert file_hash(tmp_path / "a") == hashlib.sha256(b"content").hexdigest()
    with pytest.raises(InputError, match="b does not exist"):
        file_hash(tmp_path / "b")
