"""`sealane pipeline replay`, `redrive`, `reseal` and `forget`, as a user types them: tried, done, done once, told."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

import sealane
from sealane.cli.main import app
from sealane.pipeline.bulk import redriving
from sealane.testing.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealane.client.sync import SyncLane

EXIT_FAILED, EXIT_USAGE, EXIT_CREDENTIAL = 1, 2, 3
DEADLINE_SECONDS = 60.0
TOPIC = "bulk"
KILLED, KILLED_MESSAGES = "bulk-killed", 40
"""The topic of the test that kills a job."""
ANNA = "+49 170 1234567"
TIMEOUT, REFUSED = "timeout", f"refused by {ANNA}"
ONCE = sealane.Retry("fixed", 0.0, attempts_max=1)


class Typed:
    """Commands on one lake, of which a test may do what it likes."""

    def __init__(self, node: NodeProcess, place: Path) -> None:
        self.place = place
        self.lake = place / "lake"
        self.keys = place / "lake.keys"
        self.environment: dict[str, str | None] = {
            "SEALANE_URL": node.url,
            "SEALANE_DATA": str(place / "no-node"),
            "SEALANE_PIPELINE__LAKE": str(self.lake),
            "SEALANE_PIPELINE__KEYS": str(self.keys),
            "SEALANE_PIPELINE__TOPICS": "default/bulk*",
            "SEALANE_PIPELINE__BODIES": "sealed",
            "XDG_CONFIG_HOME": str(place / "nobody"),
        }

    def run(self, *arguments: str, **environment: str | None) -> Result:
        return CliRunner().invoke(app, ["pipeline", *arguments], env=self.environment | environment)

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def refused(self, *arguments: str, **environment: str | None) -> tuple[int, str]:
        """The exit code, and what was said; nothing in the lake has changed."""
        before = self.files()
        done = self.run(*arguments, **environment)
        assert self.files() == before
        return done.exit_code, " ".join(done.stderr.split())

    def files(self) -> dict[str, bytes]:
        """All that is in the lake, but for who has it now."""
        return {
            str(path.relative_to(self.lake)): path.read_bytes()
            for path in sorted(self.lake.rglob("*"))
            if path.is_file() and path.name != "_running"
        }


@pytest.fixture(scope="module")
def filled(spark: SparkSession, node: NodeProcess, tmp_path_factory: pytest.TempPathFactory) -> Typed:
    """A lake with messages, two of which are about Anna, and dead letters, which are messages of topics of their own.

    Taking them in takes longest, so it is done once for all tests.
    """
    typed = Typed(node, tmp_path_factory.mktemp("bulk"))
    with sealane.connect_sync(node.url) as lane:
        for number in range(10):
            lane.publish(TOPIC, b"%d" % number, key=b"order-%d" % number)
        lane.publish(TOPIC, b"hello", key=ANNA.encode())
        lane.publish(TOPIC, json.dumps({"phone": ANNA}).encode())
        let_die(lane, TOPIC, "billing", [TIMEOUT] * 6 + [REFUSED] * 6)
        let_die(lane, TOPIC, "mailing", [TIMEOUT] * 2)
        lane.publish_many(KILLED, [b"%d" % number for number in range(KILLED_MESSAGES)])
        let_die(lane, KILLED, "billing", [TIMEOUT] * KILLED_MESSAGES)
        let_die(lane, KILLED, "gone", [TIMEOUT])
        lane.unsubscribe(KILLED, "gone")
    done = typed.run("run", "--once")
    assert done.exit_code == 0, done.output
    return typed


@pytest.fixture
def typed(filled: Typed, node: NodeProcess, tmp_path: Path) -> Typed:
    """The same in a place of the test's own."""
    shutil.copytree(filled.place, tmp_path / "own")
    return Typed(node, tmp_path / "own")


def let_die(lane: SyncLane, topic: str, subscription: str, reasons: list[str]) -> None:
    """Have a subscription give its first messages up, one for each reason, and wait until they are dead letters."""
    left = list(reasons)
    for message in lane.consume(topic, subscription, retry=ONCE):
        message.nack(reason=left.pop(0))
        if not left:
            break
    until(lambda: waiting(lane, topic, subscription) == len(reasons))


def waiting(lane: SyncLane, topic: str, subscription: str) -> int:
    """How many dead letters have not gone back."""
    try:
        dead = lane.describe_topic(f"{topic}.{subscription}.dead")
    except sealane.TopicNotFound:
        return 0
    return 0 if dead.redrive is None else dead.redrive.depth


def until(condition: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def notes(lane: SyncLane, action: str, lake: Path) -> list[dict[str, Any]]:
    """The entries of the audit log on jobs over this lake."""
    found = lane.administer("audit.read", event=f"note.pipeline.{action}")["entries"]
    return [entry for entry in found if entry["resource"] == str(lake)]


def details(lane: SyncLane, action: str, lake: Path) -> list[dict[str, Any]]:
    return [entry["details"] for entry in notes(lane, action, lake)]


# --- replay -----------------------------------------------------------------------------------------------------------


def test_a_replay_is_tried_done_once_and_in_the_audit_log(typed: Typed, lane: SyncLane) -> None:
    target = "replayed-by-command"
    order = ("replay", TOPIC, "--to", target, "--where", "key LIKE 'order-%'")
    assert typed.json(*order, "--dry-run") == {"messages": 10, "published": 0, "before": 0, "dry_run": True}
    assert f"default/{target}" not in lane.topics()
    assert notes(lane, "replay", typed.lake) == []
    assert typed.json(*order) == {"messages": 10, "published": 10, "before": 0, "dry_run": False}
    done = typed.run(*order)
    assert (done.exit_code, done.stdout) == (0, f"0 messages were published to {target}, 10 had been before\n")
    assert typed.json(*order, "--dry-run")["before"] == 10
    assert [entry["principal"] for entry in notes(lane, "replay", typed.lake)] == ["admin"] * 4
    begun, ended, _, again = details(lane, "replay", typed.lake)
    assert (begun["phase"], begun["topic"], begun["to"]) == ("begun", f"default/{TOPIC}", target)
    assert begun["where"] == "key LIKE ?"
    assert (ended["phase"], ended["messages"], ended["published"], ended["before"]) == ("ended", 10, 10, 0)
    assert (again["published"], again["before"]) == (0, 10)
    assert {"begun", "ended"} <= set(ended)


def test_a_replay_that_cannot_be_meant_is_refused(typed: Typed, lane: SyncLane) -> None:
    target = "never-replayed"
    asked = ("replay", TOPIC, "--to", target)
    missing = str(typed.place / "missing")
    refusals = {
        "missing has no tables yet": ("replay", TOPIC, "--to", target, "--lake", missing),
        "has nothing of default/no-such-topic": ("replay", "no-such-topic", "--to", target),
        "'yesterday' is no time": (*asked, "--since", "yesterday"),
        "ago is another time whenever the job goes on": (*asked, "--since", "2h"),
        "is not after": (*asked, "--since", "2026-02-01", "--until", "2026-01-01"),
        "greater than or equal to 0.001": (*asked, "--rate", "0"),
        "a number of messages a second above 0": (*asked, "--rate", "inf"),
        "cannot be asked": (*asked, "--where", "no_such_column = 1"),
    }
    for problem, arguments in refusals.items():
        code, said = typed.refused(*arguments)
        assert (code, problem in _unboxed(said)) == (EXIT_USAGE, True), said
    assert not Path(missing).exists()
    typed.keys.rename(typed.place / "elsewhere")
    code, said = typed.refused(*asked, "--name", "without its keys")
    assert (code, "restore it from a copy" in said) == (EXIT_FAILED, True), said
    assert f"default/{target}" not in lane.topics()


def _unboxed(said: str) -> str:
    """What the parser has put into a box, in one line."""
    return " ".join(said.replace("│", " ").split())


# --- redrive ----------------------------------------------------------------------------------------------------------


def test_dead_letters_go_back_as_they_were_chosen_once(
    typed: Typed, lane: SyncLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redriving, "PORTION_MESSAGES", 4)
    chosen = ("redrive", TOPIC, "billing", "--reason", REFUSED)
    tried = typed.json(*chosen, "--dry-run")
    assert (tried["messages"], tried["redriven"], tried["dry_run"]) == (6, 6, True)
    assert waiting(lane, TOPIC, "billing") == 12
    assert notes(lane, "redrive", typed.lake) == []
    done = typed.json(*chosen, "--yes", "--rate", "10000")
    (group,) = done.pop("groups")
    assert done == {"messages": 6, "redriven": 6, "before": 0, "dry_run": False}
    assert (group["topic"], group["subscription"], group["reasons"]) == (f"default/{TOPIC}", "billing", {REFUSED: 6})
    assert (waiting(lane, TOPIC, "billing"), waiting(lane, TOPIC, "mailing")) == (6, 2)
    back = _taken(lane, TOPIC, "billing", 6)
    assert back == [b"6", b"7", b"8", b"9", b"hello", json.dumps({"phone": ANNA}).encode()]
    again = typed.run(*chosen, "--yes")
    assert "0 of 6 messages went back to their subscriptions, 6 had gone before" in again.stdout

    # The command that the view prints drives back what is left of that subscription.
    printed = typed.json("sql", "SELECT DISTINCT redrive FROM dead_letters WHERE subscription = 'mailing'")
    program, *words = shlex.split(printed[0]["redrive"])
    assert program == "sealane"
    by_hand = CliRunner().invoke(app, [*words, "--yes", "--json"], env=typed.environment)
    assert json.loads(by_hand.stdout)["messages"] == 2
    rest = typed.json("redrive", "--domain", "default", "--where", f"topic = '{TOPIC}'", "--since", "1h", "--yes")
    assert (rest["messages"], rest["redriven"], rest["before"]) == (14, 6, 8)
    assert [waiting(lane, TOPIC, name) for name in ("billing", "mailing")] == [0, 0]

    begun, ended, *_ = details(lane, "redrive", typed.lake)
    assert (begun["topic"], begun["subscription"], begun["reason"]) == (f"default/{TOPIC}", "billing", "refused by ?")
    assert (ended["messages"], ended["redriven"], ended["before"]) == (6, 6, 0)
    assert all("1234567" not in json.dumps(entry) for entry in notes(lane, "redrive", typed.lake))


@pytest.mark.slow
def test_a_redrive_that_was_killed_goes_on_and_one_whose_subscription_is_gone_is_told(
    typed: Typed, lane: SyncLane
) -> None:
    topic, count = KILLED, KILLED_MESSAGES
    arguments = ["pipeline", "redrive", topic, "billing", "--yes", "--rate", "2", "--master", "local[1]"]
    environment = os.environ | {name: value for name, value in typed.environment.items() if value is not None}
    job = subprocess.Popen([sys.executable, "-m", "sealane", *arguments], env=environment, stderr=subprocess.DEVNULL)
    try:
        # Spark starts in a process of its own meanwhile.
        until(lambda: waiting(lane, topic, "billing") < count or job.poll() is not None, 4 * DEADLINE_SECONDS)
    finally:
        job.kill()
        job.wait()
    assert 0 < waiting(lane, topic, "billing") < count
    killed = details(lane, "redrive", typed.lake)
    assert [entry["phase"] for entry in killed] == ["begun"]

    done = typed.run("redrive", topic, "--yes", "--json")
    assert done.exit_code == EXIT_FAILED, done.output
    told = json.loads(done.stdout)
    groups = {group["subscription"]: group for group in told["groups"]}
    assert groups["billing"]["messages"] == count
    assert "gone" in groups["gone"]["problem"]
    assert (groups["gone"]["redriven"], groups["billing"]["problem"]) == (0, None)
    assert told["redriven"] + told["before"] == count
    assert sorted(map(int, _taken(lane, topic, "billing", count))) == list(range(count))
    assert waiting(lane, topic, "billing") == 0


def test_a_redrive_that_cannot_be_meant_is_refused(typed: Typed, lane: SyncLane) -> None:
    before = waiting(lane, TOPIC, "billing")
    refusals = {
        "missing has no tables yet": ("redrive", "--yes", "--lake", str(typed.place / "missing")),
        "has nothing of default/no-such-topic": ("redrive", "no-such-topic", "--yes"),
        "'yesterday' is no time": ("redrive", TOPIC, "--since", "yesterday"),
        "is not after": ("redrive", TOPIC, "--since", "1h", "--until", "2h", "--yes"),
        "greater than or equal to 0.001": ("redrive", TOPIC, "--rate", "0"),
        "a number of messages a second above 0": ("redrive", TOPIC, "--yes", "--rate", "inf"),
        "cannot be asked": ("redrive", TOPIC, "--yes", "--where", "no_such_column = 1"),
        "give --domain without one": ("redrive", TOPIC, "--domain", "default"),
        "give --yes to go on": ("redrive", TOPIC),
    }
    for problem, arguments in refusals.items():
        code, said = typed.refused(*arguments)
        assert (code, problem in _unboxed(said)) == (EXIT_USAGE, True), said
    assert waiting(lane, TOPIC, "billing") == before
    assert typed.json("redrive", TOPIC, "nobody", "--yes")["messages"] == 0


def _taken(lane: SyncLane, topic: str, subscription: str, count: int) -> list[bytes]:
    taken: list[bytes] = []
    for message in lane.consume(topic, subscription, retry=ONCE):
        message.ack(confirm=True)
        taken.append(message.payload)
        if len(taken) == count:
            break
    return taken


# --- forget -----------------------------------------------------------------------------------------------------------


def test_somebody_is_forgotten_and_a_second_run_confirms_it(typed: Typed, lane: SyncLane) -> None:
    before = typed.files()
    tried = typed.json("forget", "--number", "0049 170 1234567", "--dry-run")
    assert (tried["found"], tried["changed"], tried["dry_run"]) == (8, 0, True)
    assert typed.files() == before
    assert notes(lane, "forget", typed.lake) == []
    done = typed.json("forget", "--number", ANNA, "--yes")
    assert (done["found"], done["changed"], done["dry_run"]) == (8, 8, False)
    again = typed.json("forget", "--number", ANNA, "--yes")
    assert (again["rows"], again["found"], again["changed"]) == (done["rows"], 0, 0)
    assert typed.run("forget", "--number", ANNA, "--yes").stdout.startswith("0 rows were forgotten")
    assert tried["subject"] == done["subject"] == again["subject"]

    entries = notes(lane, "forget", typed.lake)
    begun, ended, *_ = (entry["details"] for entry in entries)
    assert (begun["phase"], begun["subject"]) == ("begun", done["subject"])
    assert done["subject"].startswith("tel:")
    assert (ended["phase"], ended["rows"]) == ("ended", 8)
    assert "1234567" not in json.dumps(entries)


def test_a_message_key_is_forgotten_and_told_by_its_hash(typed: Typed, lane: SyncLane) -> None:
    done = typed.json("forget", "--key", "order-7", "--domain", "default", "--yes")
    assert done["changed"] == 4
    entries = notes(lane, "forget", typed.lake)
    assert entries[0]["details"]["subject"] == done["subject"]
    assert entries[0]["details"]["domain"] == "default"
    assert "order-7" not in json.dumps(entries)
    replayed = typed.run("replay", TOPIC, "--to", "replayed-after-forgetting")
    assert (replayed.exit_code, "payload IS NOT NULL" in replayed.stderr) == (EXIT_FAILED, True)
    kept = typed.json("replay", TOPIC, "--to", "replayed-after-forgetting", "--where", "payload IS NOT NULL")
    assert kept["published"] == 11


def test_a_forgetting_that_cannot_be_meant_is_refused(typed: Typed) -> None:
    missing = str(typed.place / "missing")
    refusals = {
        "missing has no tables yet": ("forget", "--key", "order-7", "--yes", "--lake", missing),
        "'Anna' is no phone number": ("forget", "--number", "Anna", "--yes"),
        "name a phone number by --number": ("forget", "--yes"),
        "has no messages of 'nowhere'": ("forget", "--key", "order-7", "--domain", "nowhere", "--yes"),
        "give --yes to go on": ("forget", "--key", "order-7"),
    }
    for problem, arguments in refusals.items():
        code, said = typed.refused(*arguments)
        assert (code, problem in _unboxed(said)) == (EXIT_USAGE, True), said
    assert not Path(missing).exists()
    typed.keys.rename(typed.place / "elsewhere")
    code, said = typed.refused("forget", "--key", "order-7", "--yes")
    assert (code, "restore it from a copy" in said) == (EXIT_FAILED, True), said
    assert not typed.keys.exists()


# --- reseal -----------------------------------------------------------------------------------------------------------


def test_bodies_are_sealed_anew_and_still_open(typed: Typed, lane: SyncLane) -> None:
    before, keys = typed.files(), typed.keys.read_bytes()
    tried = typed.json("reseal", "--dry-run")
    assert tried["found"] > 0
    assert (typed.files(), typed.keys.read_bytes()) == (before, keys)
    assert notes(lane, "reseal", typed.lake) == []
    done = typed.json("reseal")
    assert (done["found"], done["changed"], done["key"], done["given_up"]) == (tried["found"], tried["found"], 2, [1])
    assert "by key 3" in typed.run("reseal").stdout
    begun, ended, *_ = details(lane, "reseal", typed.lake)
    assert (begun["phase"], ended["phase"], ended["rows"], ended["key"]) == ("begun", "ended", done["changed"], 2)
    target = "replayed-after-resealing"
    assert typed.json("replay", TOPIC, "--to", target)["published"] == 12
    assert _taken(lane, target, "reader", 2) == [b"0", b"1"]


def test_a_resealing_that_cannot_be_done_is_refused(typed: Typed) -> None:
    code, said = typed.refused("reseal", "--lake", str(typed.place / "missing"))
    assert (code, "missing has no tables yet" in said) == (EXIT_USAGE, True), said
    typed.keys.rename(typed.place / "elsewhere")
    code, said = typed.refused("reseal")
    assert (code, "restore it from a copy" in said) == (EXIT_FAILED, True), said
    assert not typed.keys.exists()


# --- how far it is ----------------------------------------------------------------------------------------------------


def test_at_a_terminal_a_bar_tells_how_far_a_job_is(typed: Typed) -> None:
    jobs = {
        "replaying messages": ("replay", TOPIC, "--to", "replayed-with-a-bar"),
        "redriving messages": ("redrive", TOPIC, "--dry-run"),
        "sealing files": ("reseal",),
        "forgetting files": ("forget", "--key", "order-7", "--yes"),
    }
    for title, arguments in jobs.items():
        done = typed.run(*arguments, FORCE_COLOR="1", TERM="xterm")
        assert (done.exit_code, title in done.stderr, "100%" in done.stderr) == (0, True, True), done.stderr


# --- the audit log ----------------------------------------------------------------------------------------------------


def test_whoever_may_not_add_to_the_audit_log_is_told_by_which_grant_they_may(
    typed: Typed, secure_node: NodeProcess
) -> None:
    with sealane.connect_sync(secure_node.url, profile=str(secure_node.profile)) as admin:
        key = admin.administer("key.create", account="robot")["key"]
        mine = {
            "SEALANE_URL": secure_node.url,
            "SEALANE_API_KEY": key,
            "SEALANE_CA": str(secure_node.data / "identity" / "ca.crt"),
        }
        code, said = typed.refused("forget", "--key", "order-7", "--yes", **mine)
        assert (code, "publish _system/audit" in said, "nothing was done" in said) == (EXIT_CREDENTIAL, True, True), (
            said
        )
        admin.administer("grant.add", subject="robot", action="publish", pattern="_system/audit")
        done = typed.run("forget", "--key", "order-7", "--yes", **mine)
        assert done.exit_code == 0, done.output
        assert [entry["principal"] for entry in notes(admin, "forget", typed.lake)] == ["robot", "robot"]


NO_NODE: dict[str, str | None] = {"SEALANE_URL": None}


def test_where_no_node_runs_a_job_has_to_be_told_to_leave_no_word(typed: Typed, lane: SyncLane) -> None:
    for arguments in (("forget", "--number", ANNA, "--yes"), ("reseal",)):
        code, said = typed.refused(*arguments, **NO_NODE)
        assert code == EXIT_FAILED, said
        assert "--no-audit" in said
    assert typed.run("forget", "--number", ANNA, "--dry-run", **NO_NODE).exit_code == 0
    done = typed.run("forget", "--number", ANNA, "--yes", "--no-audit", "--json", **NO_NODE)
    assert json.loads(done.stdout)["changed"] == 8
    assert typed.run("reseal", "--no-audit", **NO_NODE).exit_code == 0
    assert notes(lane, "forget", typed.lake) == notes(lane, "reseal", typed.lake) == []
