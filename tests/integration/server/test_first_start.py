"""`sealane up` as it is started first: secure, and easy all the same."""

from __future__ import annotations

import re
import signal
import ssl
from pathlib import Path
from urllib.error import HTTPError

import pytest
from cryptography import x509

from sealane.client.profiles import read_profile
from tests.integration.server.up import Up, sealane

FILES = {
    "master.key": 0o600,
    "admin.profile": 0o600,
    "identity/ca.crt": 0o644,
    "identity/ca.crl": 0o644,
    "identity/server.crt": 0o644,
    "identity/server.key": 0o600,
}


def fingerprint_in(out: str) -> str:
    (found,) = re.findall(r"^  CA +SHA-256 ([0-9a-f]{64})$", out, re.MULTILINE)
    return str(found)


def test_the_first_start_makes_all_that_it_takes_and_says_so_in_four_lines(tmp_path: Path) -> None:
    with Up(tmp_path, insecure=False) as node:
        modes = {name: (node.data / name).stat().st_mode & 0o777 for name in FILES}
        directories = [path.stat().st_mode & 0o777 for path in (node.data, node.data / "identity")]
        code, out, log = node.end(signal.SIGTERM)

    assert code == 0
    assert modes == FILES
    assert directories == [0o700, 0o700]
    lines = out.splitlines()
    first = lines.index(next(line for line in lines if line.startswith("First start")))
    told = lines[first : first + 4]
    assert "authority" in told[0]
    assert "TLS 1.3" in told[1]
    assert "key backup" in told[2]
    assert "admin.profile" in told[3]
    assert lines[first + 4].startswith("  native")
    assert "sealanes://" in out
    assert "https://" in out
    assert "INSECURE" not in out
    assert "PRIVATE KEY" not in out + log


def test_the_second_start_is_the_same_node_to_its_clients(tmp_path: Path) -> None:
    with Up(tmp_path, insecure=False) as node:
        before = {name: (node.data / name).read_bytes() for name in FILES if not name.endswith(("profile", "crl"))}
        credential = read_profile(node.data / "admin.profile").certificate
        _, first, _ = node.end(signal.SIGTERM)
    with Up(tmp_path, insecure=False) as node:
        after = {name: (node.data / name).read_bytes() for name in before}
        profile = read_profile(node.data / "admin.profile")
        address = node.ready["doors"]["native"]
        _, second, _ = node.end(signal.SIGTERM)

    assert after == before
    assert fingerprint_in(first) == fingerprint_in(second)
    assert "First start" not in second
    assert profile.certificate == credential
    assert profile.url == f"sealanes://{address}"


def test_the_command_line_on_this_machine_finds_what_it_needs_by_itself(tmp_path: Path) -> None:
    with Up(tmp_path, insecure=False):
        published = sealane("publish", "orders", "hello", cwd=tmp_path)
        consumed = sealane("consume", "orders", "--subscription", "billing", "--count", "1", cwd=tmp_path)

    assert published.returncode == 0, published.stderr
    assert "hello" in consumed.stdout, consumed.stderr


def test_refused_a_command_that_has_nothing_to_show(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with Up(tmp_path, insecure=False) as node:
        address = node.ready["doors"]["native"]
        for url in (f"sealane://{address}", f"sealanes://{address}"):
            refused = sealane("topic", "list", "--url", url, cwd=elsewhere, HOME=str(elsewhere))
            assert refused.returncode == 3, refused.stderr
            assert "Traceback" not in refused.stderr


def test_those_who_watch_see_whether_it_is_ready_and_no_more(tmp_path: Path) -> None:
    with Up(tmp_path, insecure=False) as node:
        assert b"ready" in node.get("/ready")
        assert b"alive" in node.get("/healthz")
        with pytest.raises(HTTPError) as refused:
            node.get("/metrics")
        refused.value.close()

    assert refused.value.code == 401


def test_insecure_still_works_on_data_that_has_identities_and_says_so_loudly(tmp_path: Path) -> None:
    with Up(tmp_path, insecure=False) as node:
        assert sealane("publish", "orders", "hello", cwd=tmp_path).returncode == 0
        node.end(signal.SIGTERM)
    certificate = (tmp_path / "sealane-data" / "identity" / "server.crt").read_bytes()
    with Up(tmp_path) as node:
        consumed = sealane("consume", "orders", "--subscription", "billing", "--count", "1", cwd=tmp_path)
        _, out, _ = node.end(signal.SIGTERM)

    assert "hello" in consumed.stdout, consumed.stderr
    assert "INSECURE" in out
    assert "sealanes://" not in out
    assert (tmp_path / "sealane-data" / "identity" / "server.crt").read_bytes() == certificate


def test_the_certificate_is_for_the_names_in_the_settings(tmp_path: Path) -> None:
    with Up(tmp_path, "--set=security.certificates.names=broker.example.com", insecure=False) as node:
        host, _, port = node.ready["doors"]["native"].rpartition(":")
        trusted = (node.data / "identity" / "ca.crt").read_text()
        shown = ssl.get_server_certificate((host, int(port)))

    assert "broker.example.com" in names_in(shown)
    assert shown != trusted


def names_in(pem: str) -> list[str]:
    names = x509.load_pem_x509_certificate(pem.encode()).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return names.value.get_values_for_type(x509.DNSName)


def test_a_door_for_everyone_is_reached_from_this_machine_by_loopback(tmp_path: Path) -> None:
    with Up(tmp_path, "--set=doors.native.host=0.0.0.0", insecure=False) as node:
        assert node.ready["doors"]["native"].startswith("127.0.0.1:")
        published = sealane("publish", "orders", "hello", cwd=tmp_path)

    assert published.returncode == 0, published.stderr


def test_a_node_leaves_no_dump_of_its_memory_should_it_crash(tmp_path: Path) -> None:
    with Up(tmp_path, insecure=False) as node:
        limits = Path(f"/proc/{node.process.pid}/limits").read_text()
    assert re.search(r"^Max core file size +0 +0 ", limits, re.MULTILINE)
