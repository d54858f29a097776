"""Client processes of ZeroMQ, by pyzmq: one message a call, batched on the wire by the library itself."""

from __future__ import annotations

import zmq

from bench.peers.client import Job, Result, age_ms, done, main, paced, wait_for_the_start


def publish(job: Job) -> Result:
    payloads = job.payloads()
    with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
        socket.connect(job.address)
        begun_ns = wait_for_the_start()
        for _ in range(job.count // job.batch):
            for payload in payloads:
                socket.send(payload)
        return done(begun_ns)


def consume(job: Job) -> Result:
    with zmq.Context() as context, context.socket(zmq.PULL) as socket:
        socket.bind(job.address)
        begun_ns = wait_for_the_start()
        for _ in range(job.count):
            socket.recv()
        return done(begun_ns)


def publish_at_a_pace(job: Job) -> Result:
    with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
        socket.connect(job.address)
        begun_ns = wait_for_the_start()
        for moment_ns in paced(job.count):
            socket.send(job.stamped(moment_ns))
        return done(begun_ns)


def receive_at_a_pace(job: Job) -> Result:
    with zmq.Context() as context, context.socket(zmq.PULL) as socket:
        socket.bind(job.address)
        begun_ns = wait_for_the_start()
        return done(begun_ns, took_ms=[age_ms(socket.recv()) for _ in range(job.count)])


if __name__ == "__main__":
    main(publish, consume, publish_at_a_pace, receive_at_a_pace)
