"""A Spark process of a measurement: `python -m bench.spark.client WORK ORDER`, told to begin and heard as others are.

It says `ready`, begins when it is told to by a line on its standard input, and ends with a line of JSON. Its session,
and the JVM under it, end with it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from bench.clients.order import Result, wait_for_the_start
from bench.spark.freshness import follow_topics
from bench.spark.order import SparkOrder
from bench.spark.reading import read_topics
from bench.spark.writing import write_topics

WORKS: dict[str, Callable[[SparkOrder], Result]] = {
    work.__name__: work for work in (read_topics, write_topics, follow_topics)
}


def main() -> None:
    name, order = sys.argv[1:]
    # The JVM writes to what it inherits as standard output: that is to be where errors go, and never in the result.
    said = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = os.fdopen(said, "w", closefd=False)
    if name != follow_topics.__name__:
        wait_for_the_start()
    result = WORKS[name](SparkOrder.read(order))
    with os.fdopen(said, "wb") as output:
        output.write(json.dumps(result).encode())


if __name__ == "__main__":
    main()
