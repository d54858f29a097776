"""Settings: from a file, the environment and flags, with what is wrong said so that it can be mended."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sealane.errors import InvalidSettings
from sealane.server.loading import Loaded, load
from sealane.server.schema import settings
from sealane.server.settings import ServerSettings
from sealane.server.sources import Given, Origin
from sealane.server.values import NotAllowed, parse, shown


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "sealane.yaml") -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def problems(**sources: object) -> tuple[str, ...]:
    with pytest.raises(InvalidSettings) as caught:
        load(**{"environ": {}, **sources})  # type: ignore[arg-type]
    return caught.value.problems


def origin(loaded: Loaded, name: str) -> str:
    (entry,) = (entry for entry in loaded.entries if entry.name == name)
    return str(entry.origin)


def test_without_a_word_everything_is_as_the_parts_have_it() -> None:
    loaded = load(environ={})

    assert loaded.settings == ServerSettings()
    assert loaded.config is None
    assert {str(entry.origin) for entry in loaded.entries} == {"default"}


def test_doors_are_where_everyone_expects_them() -> None:
    doors = load(environ={}).settings.doors

    assert [(door.enabled, door.host, door.port) for door in (doors.native, doors.http)] == [
        (True, "127.0.0.1", 7070),
        (True, "127.0.0.1", 8080),
    ]
    assert [(door.enabled, door.port) for door in (doors.grpc, doors.frames, doors.cipher)] == [
        (False, 9001),
        (False, 9080),
        (False, 5672),
    ]


def test_flags_win_over_the_environment_and_that_over_the_file() -> None:
    write("data: from-file\nlog: {level: debug}\ndoors:\n  http:\n    port: 1\n  native:\n    port: 1\n")
    environ = {"SEALANE_DATA": "from-environment", "SEALANE_DOORS__HTTP__PORT": "2", "PATH": "/bin"}
    loaded = load(environ=environ, pairs=["doors.http.port=3"])

    assert loaded.settings.data == "from-environment"
    assert loaded.settings.log.level == "debug"
    assert loaded.settings.doors.http.port == 3
    assert loaded.settings.doors.native.port == 1
    assert [origin(loaded, name) for name in ("data", "log.level", "doors.http.port", "doors.native.port")] == [
        "SEALANE_DATA",
        "sealane.yaml:2",
        "--set doors.http.port",
        "sealane.yaml:7",
    ]
    assert origin(loaded, "storage.commit") == "default"


def test_a_flag_of_its_own_wins_over_everything() -> None:
    flags = [Given("data", "here", Origin("flag", "--data"))]
    loaded = load(environ={"SEALANE_DATA": "there"}, flags=flags)

    assert loaded.settings.directory == Path("here")
    assert origin(loaded, "data") == "--data"


def test_the_file_is_the_one_that_was_named_or_the_one_that_is_here() -> None:
    write("drain_seconds: 1")
    named = write("drain_seconds: 2", "other.yaml")
    third = write("drain_seconds: 3", "third.yaml")

    assert load(environ={}).settings.drain_seconds == 1
    assert load(environ={"SEALANE_CONFIG": str(named)}).settings.drain_seconds == 2
    assert load(environ={"SEALANE_CONFIG": str(named)}, config=third).settings.drain_seconds == 3


def test_limits_and_topics_are_sections_of_their_own() -> None:
    write("""
        limits: {payload_bytes_max: 2MiB}
        topics: {auto_create: off, retention_seconds: 1d}
        node: {ack_flush_seconds: 1ms}
    """)
    node = load(environ={}).settings.node

    assert node.limits.payload_bytes_max == 2 * 2**20
    assert node.topics.auto_create is False
    assert node.topics.retention_seconds == 86_400
    assert node.ack_flush_seconds == 0.001


def test_every_setting_has_a_name_that_says_where_it_belongs() -> None:
    assert "limits.payload_bytes_max" in settings()
    assert "topics.retention_seconds" in settings()
    assert not [name for name in settings() if name.startswith(("node.limits", "node.topics"))]
    assert settings()["doors.native.port"].variable == "SEALANE_DOORS__NATIVE__PORT"


@pytest.mark.parametrize(
    ("written", "line", "name", "hint"),
    [
        ("doors: {nativ: {port: 1}}", 1, "doors.nativ", "did you mean doors.native?"),
        ("\ndoors:\n  http: {prot: 1}", 3, "doors.http.prot", "did you mean doors.http.port?"),
        ("storage: {max_disk_usage: 1}", 1, "storage.max_disk_usage", "did you mean storage.disk_bytes_max?"),
        ("auto_create: on", 1, "auto_create", "did you mean topics.auto_create?"),
        ("zebra: 1", 1, "zebra", "`sealane config show` lists them all"),
    ],
)
def test_an_unknown_key_is_an_error_with_its_line_and_what_was_meant(
    written: str, line: int, name: str, hint: str
) -> None:
    write(written)

    assert problems() == (f"sealane.yaml:{line}: there is no setting {name!r}; {hint}",)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("SEALANE_DOORS_NATIVE_PORT", "did you mean SEALANE_DOORS__NATIVE__PORT?"),
        ("SEALANE_DATTA", "did you mean SEALANE_DATA?"),
        ("SEALANE_ZEBRA", "`sealane config show` lists them all"),
    ],
)
def test_an_unknown_variable_is_an_error_too(variable: str, meant: str) -> None:
    assert problems(environ={variable: "1"}) == (f"{variable}: there is no such setting; {meant}",)


def test_variables_of_the_command_line_and_empty_ones_are_not_settings() -> None:
    load(environ={"SEALANE_URL": "sealane://there", "SEALANE_DOORS__HTTP__PORT": "", "_SEALANE_COMPLETE": "x"})
    load(environ={f"SEALANE_{each}": "x" for each in ("API_KEY", "CA", "PROFILE", "TOKEN")})


def test_an_unknown_name_in_a_flag_is_an_error_too() -> None:
    assert problems(pairs=["doors.htp.port=1"]) == (
        "--set doors.htp.port=1: there is no setting 'doors.htp.port'; did you mean doors.http.port?",
    )
    assert problems(pairs=["doors.http"]) == (
        "--set doors.http: expected name=value, such as --set doors.http.port=8081",
    )
    assert problems(pairs=["doors.http=1"]) == ("--set doors.http=1: 'doors.http' is a section; name a setting in it",)


def test_a_bad_value_names_setting_value_place_and_what_is_allowed() -> None:
    write("doors: {http: {port: eighty}}\nlog: {format: xml}\nstorage: {segment_bytes: big}\ninsecure: perhaps")

    assert problems(environ={"SEALANE_DOORS__NATIVE__PORT": "65536", "SEALANE_DRAIN_SECONDS": "soon"}) == (
        "insecure is 'perhaps' (sealane.yaml:4): expected on or off",
        "drain_seconds is 'soon' (SEALANE_DRAIN_SECONDS): expected a time in seconds, such as 90, "
        "or one such as 500ms, 30s, 1h30m, 7d",
        "doors.native.port is '65536' (SEALANE_DOORS__NATIVE__PORT): expected a whole number from 0 to 65535",
        "doors.http.port is 'eighty' (sealane.yaml:1): expected a whole number from 0 to 65535",
        "storage.segment_bytes is 'big' (sealane.yaml:3): expected a size in bytes, such as 65536 or 64MiB",
        "log.format is 'xml' (sealane.yaml:2): expected one of console, json",
    )


def test_what_a_part_refuses_names_where_it_was_written() -> None:
    write("storage: {segment_bytes: 1KiB}")

    assert problems() == ("storage.segment_bytes is 1,024, at least 4,096 (sealane.yaml:1)",)


@pytest.mark.parametrize(
    ("name", "refused", "taken"),
    [
        ("limits.payload_bytes_max", 0, 1),
        ("limits.batch_bytes_max", 0, 1),
        ("limits.batch_messages_max", 0, 1),
        ("limits.name_chars_max", 0, 1),
        ("topics.partitions", 0, 1),
        ("topics.partitions", 1_025, 1_024),
        ("node.journal_events_max", 0, 1),
        ("node.snapshot_journal_bytes", 0, 1),
        ("node.delivery_bytes_max", 0, 1),
        ("node.retention_check_seconds", 0, 0.1),
        ("storage.group_bytes_max", 0, 1),
        ("doors.http.connections_max", 0, 1),
    ],
)
def test_a_value_that_nothing_could_work_with_is_refused_at_its_edge(name: str, refused: float, taken: float) -> None:
    (problem,) = problems(pairs=[f"{name}={refused}"])
    assert problem.startswith(name)
    assert problem.endswith(f"(--set {name})")

    load(environ={}, pairs=[f"{name}={taken}"])


def test_all_that_is_wrong_is_told_at_once() -> None:
    write("zebra: 1\ndata: {a: 1}\ndoors: 5\nlog: []\nlimits:\n  headers_max: 1\n  headers_max: 2")

    assert problems(environ={"SEALANE_LIMITS__NAME_CHARS_MAX": "-1"}) == (
        "sealane.yaml:1: there is no setting 'zebra'; `sealane config show` lists them all",
        "sealane.yaml:2: data takes one value, not a list or a section",
        "sealane.yaml:3: doors is a section: expected names with values below it",
        "sealane.yaml:4: log is a section: expected names with values below it",
        "sealane.yaml:7: limits.headers_max is written twice",
        "limits.name_chars_max is '-1' (SEALANE_LIMITS__NAME_CHARS_MAX): expected a whole number of at least 0",
    )


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "doors:\n", "---\n", "storage: {}\ndoors: {http: }"])
def test_a_file_that_says_nothing_changes_nothing(text: str) -> None:
    write(text)

    assert load(environ={}).settings == ServerSettings()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: [1\nb: 2", "sealane.yaml:2: this is not YAML: "),
        (b"- data", "sealane.yaml:1: the file is a section: "),
        (b"\xff\xfe\xfa", "sealane.yaml: cannot be read: "),
        (b"data: !!python/object:os.system x", "sealane.yaml:1: this is not YAML: could not determine a constructor"),
        (b"a: 1\n---\nb: 2", "sealane.yaml:2: this is not YAML: "),
    ],
)
def test_a_file_that_is_not_settings_is_an_error_with_its_line(content: bytes, problem: str) -> None:
    Path("sealane.yaml").write_bytes(content)

    (told,) = problems()
    assert told.startswith(problem)


def test_a_named_file_that_is_not_there_is_an_error() -> None:
    assert problems(config=Path("nowhere.yaml")) == ("nowhere.yaml: cannot be read: No such file or directory",)


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("storage.segment_bytes", "64MiB", 64 * 2**20),
        ("storage.segment_bytes", "64 mib", 64 * 2**20),
        ("storage.segment_bytes", "1.5GB", 1_500_000_000),
        ("storage.segment_bytes", 65_536, 65_536),
        ("storage.segment_bytes", "9007199254740993", 9_007_199_254_740_993),
        ("storage.disk_bytes_max", "none", None),
        ("storage.disk_bytes_max", None, None),
        ("topics.retention_seconds", "7d", 7 * 86_400.0),
        ("topics.retention_seconds", "1h30m", 5_400.0),
        ("topics.retention_seconds", "2w", 14 * 86_400.0),
        ("topics.retention_seconds", 0, 0.0),
        ("node.ack_flush_seconds", "5ms", 0.005),
        ("doors.http.keep_alive_seconds", "1min", 60),
        ("doors.http.port", "0", 0),
        ("doors.http.port", 65_535, 65_535),
        ("topics.sealed", "off", False),
        ("topics.sealed", "YES", True),
        ("topics.sealed", 1, True),
        ("log.format", "json", "json"),
    ],
)
def test_values_are_read_as_people_write_them(name: str, raw: object, value: object) -> None:
    parsed = parse(settings()[name], raw)

    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("storage.segment_bytes", "64 parsecs"),
        ("storage.segment_bytes", "7d"),
        ("storage.segment_bytes", "1.5"),
        ("storage.segment_bytes", -1),
        ("storage.segment_bytes", True),
        ("storage.segment_bytes", None),
        ("topics.retention_seconds", "64MiB"),
        ("topics.retention_seconds", "7d later"),
        ("topics.retention_seconds", ""),
        ("topics.retention_seconds", "inf"),
        ("topics.retention_seconds", "nan"),
        ("topics.sealed", "maybe"),
        ("topics.sealed", 2),
        ("doors.http.port", 65_536),
        ("doors.http.host", ""),
        ("doors.http.host", 127),
        ("log.format", "JSON"),
        ("data", None),
    ],
)
def test_values_that_cannot_be_meant_are_refused(name: str, raw: object) -> None:
    with pytest.raises(NotAllowed):
        parse(settings()[name], raw)


@pytest.mark.parametrize("name", list(settings()))
def test_a_value_that_is_shown_can_be_written_back(name: str) -> None:
    setting = settings()[name]

    assert parse(setting, shown(setting, setting.default)) == setting.default


def test_values_are_shown_in_the_units_of_people() -> None:
    shows = {name: shown(settings()[name], settings()[name].default) for name in settings()}

    assert shows["storage.segment_bytes"] == "64MiB"
    assert shows["topics.retention_seconds"] == "7d"
    assert shows["node.ack_flush_seconds"] == "5ms"
    assert shows["storage.disk_bytes_max"] == "none"
    assert shows["topics.sealed"] == "on"


def test_the_example_of_the_page_is_one_that_works() -> None:
    page = (Path(__file__).parents[3] / "docs" / "settings.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    write(example)
    loaded = load(environ={}).settings

    assert loaded.data == "/var/lib/sealane"
    assert loaded.storage.disk_bytes_max == 200 * 2**30
    assert loaded.node.topics.auto_create is False
