"""Certificates and authorities as rows of a table, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sealane.cli.durations import duration

COLUMNS = ["name", "domain", "state", "ends", "left", "for", "serial"]

_MOMENT = "_us"


def certificate_object(record: dict[str, Any]) -> dict[str, Any]:
    """What a node answers, with moments as ISO 8601 has them."""
    return dict(_field(name, value) for name, value in record.items())


def certificate_rows(records: Iterable[dict[str, Any]]) -> list[tuple[object, ...]]:
    """In the order of names, the newest last."""
    ordered = sorted(records, key=lambda record: (record["name"], record["issued_us"]))
    return [certificate_row(record) for record in ordered]


def certificate_row(record: dict[str, Any]) -> tuple[object, ...]:
    state = record["state"] + (" (renewed)" if record["state"] == "valid" and record["replaced_by"] else "")
    return (
        record["name"],
        record["domain"],
        state,
        day(record["not_after_us"]),
        left(record["not_after_us"]) if record["state"] == "valid" else None,
        record["usage"],
        record["serial"],
    )


def certificate_facts(record: dict[str, Any]) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [
        ("name", record["name"]),
        ("domain", record["domain"] or "none"),
        ("for", record["usage"] + ("" if not record["names"] else f" at {', '.join(record['names'])}")),
        ("state", record["state"]),
        ("valid", f"{moment(record['not_before_us'])} to {moment(record['not_after_us'])}"),
        ("issued", f"{moment(record['issued_us'])} by {record['authority']}"),
        ("serial", record["serial"]),
        ("fingerprint", record["fingerprint"]),
    ]
    if record["revoked_us"] is not None:
        facts.append(("revoked", f"{moment(record['revoked_us'])}: {record['reason']}"))
    if record["replaced_by"] is not None:
        facts.append(("renewed by", record["replaced_by"]))
    return facts


def authority_facts(info: dict[str, Any]) -> list[tuple[str, object]]:
    return [
        ("authority", info["name"]),
        ("key", info["key_type"]),
        ("valid", f"{moment(info['not_before_us'])} to {moment(info['not_after_us'])}"),
        ("fingerprint", info["fingerprint"]),
    ]


def moment(moment_us: int) -> str:
    return f"{_utc(moment_us):%Y-%m-%d %H:%M:%S} UTC"


def day(moment_us: int) -> str:
    return f"{_utc(moment_us):%Y-%m-%d}"


def left(moment_us: int) -> str:
    """How long it is until then."""
    return duration(max(0.0, moment_us / 1e6 - datetime.now(UTC).timestamp()))


def _field(name: str, value: Any) -> tuple[str, Any]:
    if not name.endswith(_MOMENT):
        return name, value
    return name.removesuffix(_MOMENT), None if value is None else _utc(value).isoformat()


def _utc(moment_us: int) -> datetime:
    return datetime.fromtimestamp(moment_us / 1e6, UTC)
