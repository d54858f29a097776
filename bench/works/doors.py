"""What the doors for other languages can do: HTTP and gRPC."""

from __future__ import annotations

from pathlib import Path

from bench import grpc_door, http_door
from bench.work import MESSAGE_RATE, Amounts, Part, Reading, Work

SINGLE, ARROW = "http-single", "http-arrow"


def _http(path: Path, amounts: Amounts) -> Reading:
    single, arrow = http_door.rates(path, **amounts)
    return Reading({SINGLE: single, ARROW: arrow})


def _grpc(path: Path, amounts: Amounts) -> Reading:
    return Reading({f"grpc-{name}": rate for name, rate in grpc_door.rates(path, **amounts)._asdict().items()})


DOORS: tuple[Work, ...] = (
    Work(
        "http",
        "doors",
        (
            Part(SINGLE, "HTTP, single messages of {size} B as JSON, {clients} connections", MESSAGE_RATE, 2_000),
            Part(ARROW, "HTTP, Arrow bodies of {batch:,}, {arrow_clients} connections", MESSAGE_RATE, 300_000),
        ),
        _http,
        {"seconds": 4.0, "size": 100, "clients": 64, "batch": 5_000, "arrow_clients": 4},
        {"seconds": 1.0},
        seconds=11,
        quick_seconds=4,
    ),
    Work(
        "grpc",
        "doors",
        (
            Part("grpc-single", "gRPC, SendMessage of {size} B, {calls} calls at a time", MESSAGE_RATE),
            Part("grpc-stream", "gRPC, SendMessages of {size} B, one stream", MESSAGE_RATE),
            Part("grpc-arrow", "gRPC, PublishBatches of {batch:,}, one stream", MESSAGE_RATE),
            Part("grpc-pulled", "gRPC, PullBatches and AckMessage", MESSAGE_RATE),
        ),
        _grpc,
        {"seconds": 4.0, "size": 100, "calls": 32, "batch": 5_000},
        {"seconds": 1.0},
        seconds=20,
        quick_seconds=7,
    ),
)
