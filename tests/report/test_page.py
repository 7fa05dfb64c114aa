"""What all pages have in common: what they are of, when and by which version they were made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from influx_wrap import __version__
from influx_wrap.errors import InputError
from influx_wrap.report.page import SOURCE_DATE_EPOCH, page, time_written

NASTY = '</style><script>alert(1)</script> \\ " }'
NAMES = ("camera", "explorer", "review", "run", "scores")


@pytest.mark.parametrize("name", NAMES)
def test_what_a_page_is_of(name: str) -> None:
    text = page(name, NASTY, {})
    assert (
        f'<p class="written">Written 2023-11-14 22:13 UTC by influx_wrap {__version__}</p>' in text
    )
    assert "alert(1)" in text
    assert "<script>alert" not in text
    style = text.split("<style>")[1]
    assert style.split("</style>")[0].rstrip().endswith("counter(pages); } }")


def test_the_time_is_the_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SOURCE_DATE_EPOCH)
    before = datetime.now(UTC)
    stated = datetime.strptime(time_written(), "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC)
    assert before - timedelta(minutes=1) < stated <= datetime.now(UTC)


@pytest.mark.parametrize("stated", ["yesterday", "1e9", "99999999999999999"])
def test_a_time_that_is_none(monkeypatch: pytest.MonkeyPatch, stated: str) -> None:
    monkeypatch.setenv(SOURCE_DATE_EPOCH, stated)
    with pytest.raises(InputError, match=f"SOURCE_DATE_EPOCH is '{stated}'"):
        time_written()
