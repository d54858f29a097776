"""What the doors for other languages can do: HTTP, gRPC, the protocol of CipherMQ, and frames."""

from __future__ import annotations

from pathlib import Path

from bench import cipher_door, frames_door, grpc_door, http_door
from bench.work import MESSAGE_RATE, Amounts, Part, Reading, Work

SINGLE, ARROW = "http-single", "http-arrow"
FRAMES = "frames"


def _http(path: Path, amounts: Amounts) -> Reading:
    single, arrow = http_door.rates(path, **amounts)
    return Reading({SINGLE: single, ARROW: arrow})


def _grpc(path: Path, amounts: Amounts) -> Reading:
    return Reading({f"grpc-{name}": rate for name, rate in grpc_door.rates(path, **amounts)._asdict().items()})


def _cipher(path: Path, amounts: Amounts) -> Reading:
    return Reading({f"cipher-{name}": rate for name, rate in cipher_door.rates(path, **amounts)._asdict().items()})


def _frames(path: Path, amounts: Amounts) -> Reading:
    return Reading({FRAMES: frames_door.rate(path, **amounts)})


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
        in_quick=False,
    ),
    Work(
        "cipher",
        "doors",
        (
            Part("cipher-single", "CipherMQ, publish of {size} B, {clients} connections", MESSAGE_RATE),
            Part("cipher-batch", "CipherMQ, publish_batch of {batch:,}, {clients} connections", MESSAGE_RATE),
            Part("cipher-consumed", "CipherMQ, consume and ack, one connection", MESSAGE_RATE),
        ),
        _cipher,
        {"seconds": 4.0, "size": 100, "clients": 16, "batch": 100},
        {"seconds": 1.0},
        seconds=15,
        quick_seconds=6,
        in_quick=False,
    ),
    Work(
        FRAMES,
        "doors",
        (
            Part(
                FRAMES,
                "Frames of {size} B, {batch:,} a write, a queue from one producer to one consumer",
                MESSAGE_RATE,
                100_000,
            ),
        ),
        _frames,
        {"seconds": 4.0, "size": 100, "batch": 5_000},
        {"seconds": 1.0},
        seconds=7,
        quick_seconds=3,
    ),
)
