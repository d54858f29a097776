"""`sealane log inspect`: what a data directory holds, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from sealane.cli.data_directory import KIND_NAMES, DataDirectory, LogView, PartitionView
from sealane.engine.local.compacted import ARROW, ZIPPED
from sealane.engine.local.record import MANY, SEALED
from sealane.engine.local.segment import Scan

_FLAG_NAMES = {SEALED: "sealed", MANY: "several", ZIPPED: "zstd", ARROW: "arrow"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def describe(view: DataDirectory) -> dict[str, Any]:
    """Topics, partitions and files, ready for JSON."""
    return {
        "directory": view.files.location,
        "segments": [_segment(view, name) for name in view.segments],
        "compacted_files": len(view.compacted),
        "compacted_bytes": sum(file.file_bytes for file in view.compacted),
        "topics": [
            {
                "domain": domain,
                "topic": topic,
                "incarnation": partitions[0].key.incarnation,
                "partitions": [_partition(partition) for partition in partitions],
            }
            for (domain, topic), partitions in view.topics().items()
        ],
    }


def records(view: DataDirectory) -> Iterator[dict[str, Any]]:
    """Every record of the segments, then every entry of the compacted files, in the order they are stored."""
    for name in view.segments:
        yield from _segment_records(name, view.scan(name))
    for file in view.compacted:
        for place in file.places:
            yield {
                "file": file.name,
                "position": place.position,
                "time": when(place.time_us),
                "entries": [
                    {
                        "kind": KIND_NAMES[file.kind],
                        "partition": str(file.partition),
                        "base": place.base,
                        "stop": place.stop,
                        "bytes": place.length,
                        "flags": _flags(place.flags),
                    }
                ],
            }


def show(description: dict[str, Any], console: Console) -> None:
    """The description as a table for people."""
    partitions = [(topic, partition) for topic in description["topics"] for partition in topic["partitions"]]
    table = Table(box=None, pad_edge=False)
    table.add_column("TOPIC", overflow="fold")
    for heading in ("PARTITION", "OFFSETS", "MESSAGES", "LOST", "JOURNAL", "BYTES", "FILES"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("SEALED", "FORMAT"):
        table.add_column(heading, no_wrap=True)
    for topic, partition in partitions:
        table.add_row(
            f"{topic['domain']}/{topic['topic']}",
            str(partition["partition"]),
            f"{partition['start']:,}–{partition['end']:,}",
            f"{partition['messages']:,}",
            f"[red]{partition['lost']:,}[/red]" if partition["lost"] else "0",
            f"{partition['journal_entries']:,}",
            decimal(partition["bytes"]),
            str(partition["files"]),
            partition["sealed"],
            ", ".join(partition["formats"]) or "-",
        )
    console.print(description["directory"], highlight=False, markup=False)
    console.print(table if partitions else "no topics yet")
    segment_bytes = sum(segment["bytes"] for segment in description["segments"])
    console.print(
        f"{len(description['segments'])} log segments, {decimal(segment_bytes)}; "
        f"{description['compacted_files']} compacted files, {decimal(description['compacted_bytes'])}",
        highlight=False,
    )


def show_records(listed: Iterator[dict[str, Any]], console: Console) -> None:
    """One line an entry."""
    for each in listed:
        sequence = f"record {each['sequence']} " if "sequence" in each else ""
        console.print(f"{each['file']} @{each['position']} {sequence}{each['time']}", highlight=False)
        for entry in each["entries"]:
            flags = ", ".join(entry["flags"])
            console.print(
                f"  {entry['kind']} {entry['partition']} {entry['base']}–{entry['stop'] - 1} "
                f"{entry['bytes']:,} bytes{f' ({flags})' if flags else ''}",
                highlight=False,
                markup=False,
            )


def when(time_us: int) -> str:
    return (_EPOCH + timedelta(microseconds=time_us)).isoformat(timespec="milliseconds")


def _partition(view: PartitionView) -> dict[str, Any]:
    pieces = [*view.messages.pieces, *view.journal.pieces]
    sealed = {piece.sealed for piece in view.messages.pieces}
    return {
        "partition": view.key.partition,
        "start": view.messages.start,
        "end": view.messages.end,
        "messages": view.messages.end - view.messages.start - _lost(view.messages),
        "lost": _lost(view.messages),
        "journal_start": view.journal.start,
        "journal_end": view.journal.end,
        "journal_entries": view.journal.end - view.journal.start - _lost(view.journal),
        "bytes": sum(piece.row.length for piece in pieces),
        "files": len({piece.file for piece in pieces}),
        "sealed": {frozenset({True}): "yes", frozenset({False}): "no"}.get(
            frozenset(sealed), "partly" if sealed else "-"
        ),
        "formats": sorted({piece.format for piece in view.messages.pieces}),
    }


def _lost(log: LogView) -> int:
    return sum(span.stop - span.start for span in log.lost())


def _segment(view: DataDirectory, name: str) -> dict[str, Any]:
    return {"file": name, "bytes": view.file(name).size}


def _segment_records(name: str, found: Scan) -> Iterator[dict[str, Any]]:
    for each in found.records:
        yield {
            "file": name,
            "position": each.start,
            "sequence": each.head.sequence,
            "time": when(each.head.time_us),
            "entries": [
                {
                    "kind": KIND_NAMES.get(entry.kind, str(entry.kind)),
                    "partition": str(entry.partition),
                    "base": entry.base,
                    "stop": entry.stop,
                    "bytes": entry.body_bytes,
                    "flags": _flags(entry.flags) + (["damaged"] if number in each.damaged else []),
                }
                for number, entry in enumerate(each.head.entries)
            ],
        }


def _flags(flags: int) -> list[str]:
    return [name for flag, name in _FLAG_NAMES.items() if flags & flag]
