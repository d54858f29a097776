"""Without await: the blocking client, for scripts and for programs with threads.

`sealane.connect_sync(url)` is the same on a node; this one runs a broker inside the process.
"""

from __future__ import annotations

from threading import Thread

import sealane


def work(lane: sealane.SyncLane, name: str, done: list[str]) -> None:
    for message in lane.consume("jobs", subscription="workers", prefetch=1):
        message.ack()
        if message.payload == b"stop":
            return
        done.append(f"{name}: {message.payload.decode()}")


with sealane.embedded_sync() as lane:
    with lane.producer("jobs") as producer:
        for number in range(20):
            producer.send(b"job %d" % number)

    # Any number of threads may use one lane.
    done: list[str] = []
    workers = [Thread(target=work, args=(lane, f"worker {number}", done)) for number in range(3)]
    for worker in workers:
        worker.start()
    for _ in workers:
        lane.publish("jobs", b"stop", priority=1)
    for worker in workers:
        worker.join()
    print(f"{len(done)} jobs were done")
    assert len(done) == 20
