"""A cluster behind TLS, on this machine: who has no certificate of ours has no say in it."""

import asyncio
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from distributed import Client
from distributed.comm.core import connect
from distributed.security import Security

from influx_wrap.compute import cluster as module
from influx_wrap.compute.cluster import connected
from influx_wrap.errors import InputError
from tests.compute.dask_cluster import dask_cluster


class Authority:
    """A certificate authority of one's own, as docs/scale.md makes it with openssl."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"ours {folder.name}")])
        self.ca = self._write("ca", self._signed(self._name, self._key.public_key(), is_ca=True))
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a machine")])
        self.cert = self._write("machine", self._signed(name, key.public_key(), is_ca=False))
        self.key = folder / "machine.key"
        self.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    def _signed(self, name: x509.Name, key: Any, *, is_ca: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def _write(self, name: str, certificate: x509.Certificate) -> Path:
        path = self.folder / f"{name}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path

    @property
    def options(self) -> tuple[str, ...]:
        """For a scheduler or a worker."""
        return (
            *("--protocol", "tls", "--tls-ca-file", str(self.ca)),
            *("--tls-cert", str(self.cert), "--tls-key", str(self.key)),
        )

    def configuration(self) -> dict[str, str]:
        """Of Dask, for a client."""
        tls = "distributed.comm.tls"
        client = {f"{tls}.client.cert": str(self.cert), f"{tls}.client.key": str(self.key)}
        return {f"{tls}.ca-file": str(self.ca), **client}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ours") / "ca")


@pytest.fixture(scope="module")
def address(ours: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with dask_cluster(tmp_path_factory.mktemp("dask"), 1, ours.options) as (address, _):
        with (
            dask.config.set(ours.configuration()),
            Client(address, set_as_default=False) as observer,
        ):
            observer.wait_for_workers(1, timeout=60)
        yield address


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_S", 3.0)


def test_work_is_done(address: str, ours: Authority) -> None:
    assert address.startswith("tls://")
    with dask.config.set(ours.configuration()), connected(address) as cluster:
        assert dict(cluster.parallel(abs, [-1, 2])) == {-1: 1, 2: 2}


def test_without_certificates(address: str) -> None:
    with pytest.raises(InputError, match=r"no distributed\.comm\.tls\.ca-file"), connected(address):
        pass


def test_a_certificate_that_is_not_there(address: str, ours: Authority, tmp_path: Path) -> None:
    wrong = {**ours.configuration(), "distributed.comm.tls.client.key": str(tmp_path / "none")}
    said = r"none does not exist; distributed\.comm\.tls\.client\.key names it"
    with dask.config.set(wrong), pytest.raises(InputError, match=said), connected(address):
        pass


def test_strangers(address: str, tmp_path: Path) -> None:
    """A certificate of another authority opens nothing, and its owner trusts nobody here."""
    theirs = Authority(tmp_path / "ca")
    said = "no Dask scheduler that trusts this machine's certificate, and that it trusts, answers"
    with (
        dask.config.set(theirs.configuration()),
        pytest.raises(InputError, match=said),
        connected(address),
    ):
        pass


def test_nothing_is_said_in_the_clear(address: str) -> None:
    plain = address.replace("tls://", "tcp://")
    with pytest.raises(InputError, match="no Dask scheduler answers"), connected(plain):
        pass


def test_who_trusts_without_being_trusted(address: str, ours: Authority) -> None:
    """To know the authority is not enough: the scheduler wants a certificate, too."""

    async def knock() -> None:
        security = Security(tls_ca_file=str(ours.ca), require_encryption=True)
        comm = await connect(address, timeout=3, **security.get_connection_args("client"))
        await comm.write({"op": "identity"})
        await asyncio.wait_for(comm.read(), 3)

    with pytest.raises((OSError, TimeoutError, TypeError, RuntimeError)):
        asyncio.run(knock())
