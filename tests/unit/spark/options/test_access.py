"""How a job finds its node, what it carries to executors, and how patient it is."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sealane.client.profiles import Profile, write_profile
from sealane.errors import TopicNotFound, Unavailable
from sealane.spark.errors import InvalidOption, NodeUnreachable
from sealane.spark.options.access import RETRY_SECONDS_DEFAULT, Access, find_access, lane_of, with_retries
from sealane.testing.node_process import NodeProcess
from tests.integration.client.node_process import free_port

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n"
URL = "sealanes://broker.example:7070"


@pytest.fixture(autouse=True)
def nothing_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No node, profile or variable of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith("SEALANE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("node") / "data") as running:
        yield running


def private_file(path: Path, text: str) -> str:
    path.touch(0o600)
    path.write_text(text)
    return str(path)


# --- finding ----------------------------------------------------------------------------------------------------------


def test_a_url_is_all_that_a_plain_node_takes() -> None:
    assert find_access({"url": "sealane://127.0.0.1:7070"}) == Access(Profile("sealane://127.0.0.1:7070"))


def test_what_is_in_files_goes_along_as_text(tmp_path: Path) -> None:
    options = {
        "url": URL,
        "ca": private_file(tmp_path / "ca.pem", PEM),
        "certificate": private_file(tmp_path / "me.pem", PEM),
        "certificateKey": private_file(tmp_path / "me.key", KEY),
    }
    assert find_access(options).profile == Profile(URL, ca=PEM, certificate=PEM, key=KEY)


def test_names_of_options_are_read_in_any_case() -> None:
    found = find_access({"URL": URL, "CA": PEM, "Certificate": PEM, "certificatekey": KEY, "RETRYSECONDS": "5"})
    assert found == Access(Profile(URL, ca=PEM, certificate=PEM, key=KEY), 5.0)


def test_a_profile_tells_it_all(tmp_path: Path) -> None:
    write_profile(tmp_path / "job.profile", Profile(URL, ca=PEM, api_key="slk_x", name="job"))
    found = find_access({"profile": str(tmp_path / "job.profile")}).profile
    assert (found.url, found.ca, found.api_key) == (URL, PEM, "slk_x")


def test_variables_tell_what_options_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEALANE_URL", URL)
    monkeypatch.setenv("SEALANE_TOKEN", "t0ken")
    monkeypatch.setenv("SEALANE_CA", PEM)
    assert find_access({}).profile == Profile(URL, ca=PEM, token="t0ken")


def test_nothing_secret_is_shown() -> None:
    found = find_access({"url": URL, "ca": PEM, "certificate": PEM, "certificateKey": KEY})
    assert "secret" not in repr(found)
    assert "t0ken" not in repr(find_access({"url": URL, "token": "t0ken"}))


def test_an_access_is_the_same_on_the_other_side() -> None:
    found = find_access({"url": URL, "key": "slk_x", "retrySeconds": "1.5"})
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("options", "option", "says"),
    [
        ({}, "url", "no node was found"),
        ({"url": "http://x"}, "url", "sealane"),
        ({"profile": "nobody"}, "profile", "'nobody' does not exist"),
        ({"profile": "/nowhere/job.profile"}, "profile", "read on the driver"),
        ({"url": URL, "ca": "/nowhere/ca.pem"}, "ca", "read on the driver"),
        ({"url": URL, "certificateKey": KEY}, "certificate", "missing"),
        ({"url": URL, "key": "slk_x", "token": "t"}, "token", "beside key"),
        ({"url": "sealane://127.0.0.1", "ca": PEM}, "ca", "without TLS"),
        ({"url": "sealane://broker.example", "token": "t"}, "token", "plain text"),
        ({"url": URL, "retrySeconds": "soon"}, "retrySeconds", "'soon' is not a number of seconds"),
        ({"url": URL, "retrySeconds": "-1"}, "retrySeconds", "'-1'"),
        ({"url": URL, "retrySeconds": "inf"}, "retrySeconds", "'inf'"),
    ],
)
def test_what_cannot_be_is_refused_by_the_name_of_its_option(options: dict[str, str], option: str, says: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        find_access(options)
    assert refused.value.option == option
    assert says in str(refused.value)


def test_a_profile_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.profile"
    write_profile(path, Profile(URL, api_key="slk_x"))
    path.chmod(0o644)
    with pytest.raises(InvalidOption, match="chmod 600"):
        find_access({"profile": str(path)})


def test_patience_has_a_default() -> None:
    assert find_access({"url": URL}).retry_seconds == RETRY_SECONDS_DEFAULT


# --- lanes ------------------------------------------------------------------------------------------------------------


def test_all_threads_of_a_process_share_a_lane(node: NodeProcess) -> None:
    access = find_access({"url": node.url})
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(lane_of(access))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_a_lane_that_was_closed_is_opened_again(node: NodeProcess) -> None:
    access = find_access({"url": node.url})
    first = lane_of(access)
    first.close()
    assert lane_of(access) is not first
    assert lane_of(access).topics() == with_retries(access, "asking", lambda lane: lane.topics())


def test_a_forked_worker_has_a_lane_of_its_own(node: NodeProcess) -> None:
    access = find_access({"url": node.url})
    lane_of(access).create_topic("known")
    forking: Any = multiprocessing.get_context("fork")
    with forking.Pool(1) as pool:
        assert "default/known" in pool.apply_async(_topics, (access,)).get(30)
    assert "default/known" in lane_of(access).topics()


def _topics(access: Access) -> list[str]:
    return lane_of(access).topics()


def test_a_secure_node_is_reached_with_what_its_profile_says(tmp_path: Path) -> None:
    with NodeProcess.secure(tmp_path / "secure") as node:
        access = pickle.loads(pickle.dumps(find_access({"profile": str(node.profile)})))
        node.profile.unlink()  # On another machine it is not there.
        lane_of(access).create_topic("known")
        assert lane_of(access).topics() == ["default/known"]
        lane_of(access).close()


# --- patience ---------------------------------------------------------------------------------------------------------


def test_a_node_that_is_away_is_tried_again_until_it_is_back(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    access = find_access({"url": node.url})
    lane_of(access).create_topic("known")
    node.kill()
    coming_back = threading.Thread(target=node.start)
    coming_back.start()
    assert with_retries(access, "asking", lambda lane: lane.topics()) == ["default/known"]
    coming_back.join()
    lane_of(access).close()
    node.stop()


def test_patience_ends_with_what_was_asked_of_whom() -> None:
    access = find_access({"url": f"sealane://127.0.0.1:{free_port()}", "retrySeconds": "0"})
    with pytest.raises(NodeUnreachable) as error:
        with_retries(access, "reading topic 'default/orders' partition 0 from offset 17", lambda lane: lane.topics())
    assert access.profile.url in str(error.value)
    assert "partition 0 from offset 17" in str(error.value)


def test_what_a_node_refuses_is_not_asked_again(node: NodeProcess) -> None:
    asked = []

    def ask(lane: Any) -> None:
        asked.append(lane)
        lane.browse("nothing")

    with pytest.raises(TopicNotFound):
        with_retries(find_access({"url": node.url}), "asking", ask)
    assert len(asked) == 1


def test_who_is_abandoned_does_not_try_again(node: NodeProcess) -> None:
    abandoned = threading.Event()
    abandoned.set()
    asked = []

    def ask(lane: Any) -> None:
        asked.append(lane)
        raise Unavailable("the connection was lost")

    with pytest.raises(NodeUnreachable):
        with_retries(find_access({"url": node.url, "retrySeconds": "3600"}), "asking", ask, abandoned=abandoned)
    assert len(asked) == 1
