"""What TLS, sealing at rest and end-to-end envelopes leave of the throughput of plain text."""

from __future__ import annotations

from pathlib import Path

from bench import secrecy
from bench.secrecy import END_TO_END, PLAIN, TLS
from bench.work import MESSAGE_RATE, Amounts, Part, Reading, Work

TLS_SHARE, END_TO_END_SHARE = f"{TLS}-share", f"{END_TO_END}-share"


def _measure(path: Path, amounts: Amounts) -> Reading:
    found = secrecy.rates(path, **amounts)
    shares = {TLS_SHARE: 100 * found[TLS] / found[PLAIN], END_TO_END_SHARE: 100 * found[END_TO_END] / found[PLAIN]}
    return Reading({**found, **shares})


SECRECY = (
    Work(
        "secrecy",
        "secrecy",
        (
            Part(PLAIN, "100 B, publish_many of {batch:,}: plain text, not sealed on disk", MESSAGE_RATE),
            Part(TLS, "the same over mutual TLS 1.3, sealed on disk: the default", MESSAGE_RATE),
            Part(TLS_SHARE, "the default beside plain text", "%", 60),
            Part(END_TO_END, "the same with end-to-end envelopes (X25519), opened by the consumer", MESSAGE_RATE),
            Part(END_TO_END_SHARE, "end to end beside plain text", "%", 25),
        ),
        _measure,
        {"count": 4_000_000, "batch": 5_000, "count_sealed": 1_500_000},
        {"count": 500_000, "count_sealed": 200_000},
        seconds=14,
        quick_seconds=6,
        in_quick=False,
    ),
)
