"""Fuzz the native door: `python -m tests.fuzz.fuzz_native --rounds 1000 --seed 7`.

Spoiled conversations go through the protocol's state machine, and over real sockets to a node, while a neighbour goes
on publishing. The same seed gives the same conversations. A failure prints the seed and the bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence

from sealane.wire import messages as wire
from tests.fuzz.mutated_conversation import HELLO, check_wire, spoiled
from tests.integration.native.conftest import Running, eventually, running_node
from tests.integration.native.peer import Peer

AT_ONCE = 8


def run_wire(*, seed: int, rounds: int) -> int:
    """Through the state machine alone. Returns how many messages were understood in all."""
    choose = random.Random(seed)
    understood = 0
    for _ in range(rounds):
        data = spoiled(choose)
        try:
            understood += check_wire(data)
        except BaseException:
            print(f"seed {seed}, bytes {data.hex()}", file=sys.stderr)
            raise
    return understood


async def run_door(*, seed: int, rounds: int | None = None, seconds_max: float | None = None) -> int:
    """Against a node. Whatever is sent, a neighbour's publishes go on, and in the end nothing is left over."""
    choose = random.Random(seed)
    stop = None if seconds_max is None else time.monotonic() + seconds_max
    done = 0
    async with running_node() as running:
        neighbour = await Peer.enter(running.address)
        while (rounds is None or done < rounds) and (stop is None or time.monotonic() < stop):
            conversations = [spoiled(choose) for _ in range(AT_ONCE)]
            try:
                await asyncio.gather(*(_converse(running, data, choose.random()) for data in conversations))
                answer = await neighbour.publish("neighbour", b"still here")
                assert isinstance(answer, wire.Published), answer
            except BaseException:
                print(f"seed {seed}, bytes {[data.hex() for data in conversations]}", file=sys.stderr)
                raise
            done += AT_ONCE
        await eventually(lambda: running.door.connections == 1 and running.door.consumers == 0)
        await eventually(lambda: not any(topic.attachments for topic in running.node.topics.values()))
        await neighbour.close()
    return done


async def _converse(running: Running, data: bytes, patience: float) -> None:
    """Say it, in two pieces; wait for the node to close, or be the one who goes without a word."""
    host, port = running.address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    cut = int(len(data) * patience)
    try:
        writer.write(HELLO)
        await reader.read(1)
        writer.write(data[:cut])
        await writer.drain()
        writer.write(data[cut:])
        if patience < 0.7:
            writer.write_eof()
            async with asyncio.timeout(60):
                while await reader.read(65_536):
                    pass
    except OSError:
        pass  # The node has closed it already.
    finally:
        writer.transport.abort()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="how many conversations to spoil")
    parser.add_argument("--seconds", type=float, help="how long to go on")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rounds = 2_000 if options.rounds is None and options.seconds is None else options.rounds
    understood = run_wire(seed=options.seed, rounds=rounds or 5_000)
    done = asyncio.run(run_door(seed=options.seed, rounds=rounds, seconds_max=options.seconds))
    print(f"seed {options.seed}: {understood:,} messages understood, {done:,} conversations with a node, no failure")
    return 0


if __name__ == "__main__":
    sys.exit(main())
