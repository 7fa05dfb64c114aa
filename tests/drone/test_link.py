"""Whom ``--host`` means, with and without the user's configuration of ssh."""

import getpass
from pathlib import Path

import pytest

from influx_drone.errors import DroneError
from influx_drone.link import Host, find_host

CONFIG = """\
Host drone
    HostName 10.0.0.7
    User pi
    Port 2200
    IdentityFile ~/keys/drone

Host behind
    ProxyJump pi@gate
    User guest
    Port 2201

Host *
    IdentityFile ~/keys/all
"""
ALL, OWN = Path("~/keys/all").expanduser(), Path("~/keys/drone").expanduser()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "config").write_text(CONFIG)
    return tmp_path / "config"


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("drone", Host("10.0.0.7", "pi", 2200, identities=(OWN, ALL))),
        ("me@drone:22", Host("10.0.0.7", "me", 22, identities=(OWN, ALL))),
        ("me@other", Host("other", "me", 22, identities=(ALL,))),
        ("other:23", Host("other", getpass.getuser(), 23, identities=(ALL,))),
    ],
)
def test_what_is_said_comes_first(config: Path, text: str, host: Host) -> None:
    assert find_host(text, config) == host


def test_without_a_configuration_a_name_is_a_name(tmp_path: Path) -> None:
    assert find_host("pi@drone", tmp_path / "config") == Host("drone", "pi")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (CONFIG, "through 'pi@gate'.*-L 2222:localhost:2201 behind.*guest@localhost:2222"),
        ("Host *\n  Port ssh\n", "cannot be understood"),
        ("Host *\n  'nonsense\n", "cannot be understood"),
        ("Host *\n  CanonicalizeHostname yes\n", "cannot be understood.*behind:22"),
    ],
)
def test_what_cannot_be_followed_is_named(config: Path, text: str, sentence: str) -> None:
    config.write_text(text)
    with pytest.raises(DroneError, match=sentence):
        find_host("behind", config)


@pytest.mark.parametrize(
    "text", ["Host *\n  UseKeychain\n", "Host *\n  CanonicalizeHostname yes\n"]
)
def test_a_whole_address_needs_no_configuration(config: Path, text: str) -> None:
    config.write_text(text)
    assert find_host("me@10.0.0.7:22", config) == Host("10.0.0.7", "me", 22)
