"""Other brokers, measured beside Sealane with Python clients, each with its best idiomatic settings."""

from __future__ import annotations

from bench.peers.beanstalkd import Beanstalkd
from bench.peers.nats_jetstream import NatsJetStream
from bench.peers.peer import Peer
from bench.peers.rabbitmq_streams import RabbitMqStreams, RabbitMqSubEntries
from bench.peers.redis_streams import RedisAlways, RedisEverysec
from bench.peers.zeromq import ZeroMq

PEERS: tuple[Peer, ...] = (
    RabbitMqStreams(),
    RabbitMqSubEntries(),
    RedisAlways(),
    RedisEverysec(),
    NatsJetStream(),
    Beanstalkd(),
    ZeroMq(),
)

__all__ = ["PEERS", "Peer"]
