"""`sealane login` on a machine that does not know the node yet."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealane.client.user_profiles import UserProfiles
from tests.integration.server.up import Up, environment, sealane

DEADLINE_SECONDS = 90.0
PASSWORD = "correct horse battery staple"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """With the user anna, who was there before its first start."""
    directory = tmp_path_factory.mktemp("node")
    command = [sys.executable, "-m", "sealane", "user", "create", "anna"]
    subprocess.run(
        command, cwd=directory, env=environment(), input=PASSWORD, text=True, check=True, timeout=DEADLINE_SECONDS
    )
    with Up(directory, insecure=False) as node:
        yield node


class Elsewhere:
    """Another machine, as far as files are concerned."""

    def __init__(self, home: Path, node: Up) -> None:
        self.home = home
        self.url = f"sealanes://{node.ready['doors']['native']}"
        self.ca = node.data / "identity" / "ca.crt"
        self.profiles = UserProfiles(home / "sealane")
        self._variables = {"XDG_CONFIG_HOME": str(home)}

    def sealane(self, *arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sealane", *arguments],
            cwd=self.home,
            env=environment(**self._variables),
            input=input,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )

    def login(self, *arguments: str, password: str = PASSWORD) -> subprocess.CompletedProcess[str]:
        return self.sealane("login", self.url, "--user", "anna", "--password-stdin", *arguments, input=f"{password}\n")

    def login_at_a_terminal(self, *lines: str) -> tuple[int, str]:
        """Exit code and what was said, for who types these lines."""
        ours, theirs = pty.openpty()
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "sealane", "login", self.url, "--user", "anna", "--password-stdin"],
                cwd=self.home,
                env=environment(**self._variables),
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            os.write(ours, "".join(f"{line}\n" for line in lines).encode())
            out, _ = process.communicate(timeout=DEADLINE_SECONDS)
            return process.returncode, out
        finally:
            os.close(ours)
            os.close(theirs)


@pytest.fixture
def elsewhere(tmp_path: Path, node: Up) -> Elsewhere:
    return Elsewhere(tmp_path, node)


def fingerprint_of(node: Up) -> str:
    shown = sealane("ca", "show", "--json", cwd=node.directory)
    assert shown.returncode == 0, shown.stderr
    found: str = json.loads(shown.stdout)[0]["fingerprint"]
    return found


def test_who_knows_the_fingerprint_logs_in_and_is_known_from_then_on(node: Up, elsewhere: Elsewhere) -> None:
    written = ":".join(pair.upper() for pair in _pairs(fingerprint_of(node)))
    done = elsewhere.login("--fingerprint", written, "--json")
    assert done.returncode == 0, done.stderr
    name = json.loads(done.stdout)["name"]

    path = elsewhere.profiles.path(name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert PASSWORD not in path.read_text(), "the password is not kept"
    profile = elsewhere.profiles.get(name)
    assert profile.ca == elsewhere.ca.read_text()
    assert profile.token is not None
    assert profile.token not in done.stdout + done.stderr

    published = elsewhere.sealane("publish", "orders", "hello")
    assert published.returncode == 0, published.stderr
    again = elsewhere.login()
    assert again.returncode == 0, "the authority is known by now"


def _pairs(text: str) -> list[str]:
    return [text[at : at + 2] for at in range(0, len(text), 2)]


def test_who_has_the_authoritys_certificate_logs_in(elsewhere: Elsewhere) -> None:
    done = elsewhere.login("--ca", str(elsewhere.ca), "--name", "work")
    assert done.returncode == 0, done.stderr
    assert elsewhere.profiles.default == "work"


def test_a_node_that_nobody_knows_is_not_trusted_silently(elsewhere: Elsewhere) -> None:
    refused = elsewhere.login()
    assert refused.returncode == 2
    assert "give --fingerprint or --ca" in refused.stderr
    assert elsewhere.profiles.names() == []


def test_a_person_who_finds_another_fingerprint_sends_nothing(node: Up, elsewhere: Elsewhere) -> None:
    code, said = elsewhere.login_at_a_terminal("n")
    assert code == 3
    assert fingerprint_of(node) in said
    assert "nothing was sent to it" in said
    assert elsewhere.profiles.names() == []


def test_a_person_who_finds_the_same_fingerprint_logs_in(elsewhere: Elsewhere) -> None:
    code, said = elsewhere.login_at_a_terminal("y", PASSWORD)
    assert code == 0, said
    assert "logged in as anna" in said


@pytest.mark.parametrize("fingerprint", ["00" * 32, "", "zz", "ä"])
def test_a_node_with_another_fingerprint_is_refused(elsewhere: Elsewhere, fingerprint: str) -> None:
    refused = elsewhere.login("--fingerprint", fingerprint)
    assert refused.returncode == 3
    assert "is not trusted" in refused.stderr
    assert elsewhere.profiles.names() == []


def test_a_wrong_password_is_refused_and_repeated_nowhere(elsewhere: Elsewhere) -> None:
    refused = elsewhere.login("--ca", str(elsewhere.ca), password="wrong-S3CRET")
    assert refused.returncode == 3
    assert "S3CRET" not in refused.stdout + refused.stderr
    assert refused.stderr.count("\n") == 1, "one line"
    assert elsewhere.profiles.names() == []


def test_a_password_does_not_go_to_a_node_without_tls(elsewhere: Elsewhere) -> None:
    refused = elsewhere.sealane("login", elsewhere.url.replace("sealanes", "sealane"), "--user", "anna")
    assert refused.returncode == 2
    assert "needs TLS" in refused.stderr


def test_a_profile_with_a_certificate_is_not_lost_by_logging_in(elsewhere: Elsewhere, node: Up) -> None:
    issued = sealane("ca", "issue", "bob", "--out", str(elsewhere.home), cwd=node.directory)
    assert issued.returncode == 0, issued.stderr
    files = ("--ca", "ca.crt", "--certificate", "bob.crt", "--key", "bob.key")
    added = elsewhere.sealane("profile", "add", "--url", elsewhere.url, *files, "--name", "work")
    assert added.returncode == 0, added.stderr
    assert elsewhere.sealane("topic", "list").returncode == 0, "as bob"

    refused = elsewhere.login("--name", "work")
    assert refused.returncode == 2
    assert elsewhere.profiles.get("work").certificate is not None
