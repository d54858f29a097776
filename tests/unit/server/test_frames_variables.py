"""The variables of the document whose protocol the frames door speaks: which count, when, and above what."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealane.errors import InvalidSettings
from sealane.server.frames_variables import VARIABLES
from sealane.server.loading import Loaded, load
from sealane.server.schema import settings

ALL = {
    "DELIVERY_MODE": "queue",
    "TCP_PORT": "1",
    "HTTP_PORT": "2",
    "MAX_CONSUMERS": "3",
    "CONSUMER_CHANNEL_BUFFER_SIZE": "4",
}
ON = "doors.frames.enabled=on"


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(loaded: Loaded) -> dict[str, tuple[object, str]]:
    """Each of the settings that they are about, with where it was written."""
    entries = {entry.name: entry for entry in loaded.entries}
    return {name: (entries[name].value, str(entries[name].origin)) for name in VARIABLES.values()}


def test_they_say_what_they_say_in_the_document() -> None:
    assert told(load(environ=ALL, pairs=[ON])) == {
        "doors.frames.mode": ("queue", "DELIVERY_MODE"),
        "doors.frames.port": (1, "TCP_PORT"),
        "doors.http.port": (2, "HTTP_PORT"),
        "doors.frames.consumers_max": (3, "MAX_CONSUMERS"),
        "doors.frames.consumer_buffer_messages": (4, "CONSUMER_CHANNEL_BUFFER_SIZE"),
    }


def test_without_them_the_defaults_are_those_of_the_document() -> None:
    assert {name: value for name, (value, _) in told(load(environ={}, pairs=[ON])).items()} == {
        "doors.frames.mode": "broadcast",
        "doors.frames.port": 9080,
        "doors.http.port": 8080,
        "doors.frames.consumers_max": 10,
        "doors.frames.consumer_buffer_messages": 10_000,
    }


@pytest.mark.parametrize("pairs", [[], ["doors.frames.enabled=off"]])
def test_they_mean_nothing_where_the_door_is_closed(pairs: list[str]) -> None:
    bad = {**ALL, "TCP_PORT": "of another program"}
    assert {place for _, place in told(load(environ=bad, pairs=pairs)).values()} == {"default"}


def test_it_makes_no_difference_by_what_the_door_is_opened() -> None:
    Path("sealane.yaml").write_text("doors: {frames: {enabled: on}}", encoding="utf-8")
    assert told(load(environ=ALL))["doors.frames.port"] == (1, "TCP_PORT")
    Path("sealane.yaml").unlink()
    assert told(load(environ={**ALL, "SEALANE_DOORS__FRAMES__ENABLED": "on"}))["doors.frames.port"] == (1, "TCP_PORT")


def test_they_win_over_the_file_and_lose_against_the_rest() -> None:
    Path("sealane.yaml").write_text(
        "doors: {frames: {enabled: on, port: 10, mode: broadcast, consumers_max: 10}, http: {port: 10}}",
        encoding="utf-8",
    )
    environ = {**ALL, "SEALANE_DOORS__FRAMES__PORT": "20"}
    found = told(load(environ=environ, pairs=["doors.http.port=30"]))
    assert found["doors.frames.mode"] == ("queue", "DELIVERY_MODE")
    assert found["doors.frames.consumers_max"] == (3, "MAX_CONSUMERS")
    assert found["doors.frames.port"] == (20, "SEALANE_DOORS__FRAMES__PORT")
    assert found["doors.http.port"] == (30, "--set doors.http.port")


def test_an_empty_one_is_as_good_as_none() -> None:
    assert told(load(environ=dict.fromkeys(ALL, ""), pairs=[ON])) == told(load(environ={}, pairs=[ON]))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DELIVERY_MODE", "both"),
        ("TCP_PORT", "65536"),
        ("HTTP_PORT", "http"),
        ("MAX_CONSUMERS", "-1"),
        ("MAX_CONSUMERS", "0"),
        ("CONSUMER_CHANNEL_BUFFER_SIZE", "many"),
    ],
)
def test_a_value_that_cannot_be_is_told_with_its_variable(variable: str, value: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load(environ={**ALL, variable: value}, pairs=[ON])
    (problem,) = caught.value.problems
    assert f"({variable})" in problem
    assert VARIABLES[variable] in problem


def test_all_of_them_are_settings() -> None:
    assert set(VARIABLES.values()) <= set(settings())
