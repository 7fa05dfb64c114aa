"""Kalibrs told apart by their help."""

import pytest

from influx_wrap.cli.kalibr.kalibr_calibrate_cameras import main
from influx_wrap.engines.kalibr_kind import recognise_help
from tests.engines.standin import FORK_HELP, INFLUX_HELP, UPSTREAM_HELP


@pytest.mark.parametrize(
    ("text", "kind"),
    [(UPSTREAM_HELP, "upstream"), (INFLUX_HELP, "influx"), (FORK_HELP, "fork")],
)
def test_kinds(text: str, kind: str) -> None:
    found = recognise_help(text)
    assert found is not None
    assert found.kind == kind


def test_version_of_the_fork_in_a_narrow_terminal() -> None:
    found = recognise_help(FORK_HELP.replace("series 1, for", "series 1,\nfor"))
    assert found is not None
    assert found.version == "influx_wrap patches, series 1, for Kalibr 1f60227442d2"


def test_our_imitation(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    found = recognise_help(capsys.readouterr().out)
    assert found is not None
    assert found.kind == "imitation"


@pytest.mark.parametrize("text", ["", "ImportError: rosbag", "usage: other --models --topics"])
def test_no_kalibr(text: str) -> None:
    assert recognise_help(text) is None
