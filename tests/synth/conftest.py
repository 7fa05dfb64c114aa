"""The plans of the rig's two lenses, whose cells are simulated."""

import pytest

from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.experiment import Plan
from influx_wrap.plan import make_plan


def _plan(lens: str) -> Plan:
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    return make_plan(catalogue.lens(lens), camera, catalogue.boards.values())


@pytest.fixture(scope="session")
def canon() -> Plan:
    return _plan("canon17")


@pytest.fixture(scope="session")
def premista() -> Plan:
    return _plan("premista80")
