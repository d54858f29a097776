"""Every command that a principal can give, with what it takes to give it: one table for all doors.

`domain` is where the topic, the subscription and the exchange of a command are; each command is given in a way that
ends well, or with an error about something else, wherever it is allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sealane.client import Lane
from sealane.delivery.config import SubscriptionConfig
from sealane.errors import Forbidden, SealaneError
from sealane.message import BatchMeta, Limits, Stamp, from_payloads
from sealane.node.pulling.ticket import SECRET_BYTES, Ticket
from sealane.node.session import Session
from sealane.security.principals import Action
from sealane.wire import messages as wire
from tests.access.people import OWN, Person

DEADLINE_SECONDS = 60.0
Asking = Callable[[Lane, str], Awaitable[object]]


Rule = Callable[[Person, str], bool]
"""Whether someone may do it, in a domain."""


@dataclass(frozen=True)
class Row:
    rule: Rule
    asked: Asking
    """What it returns as False is a refusal too: of what someone may not see, nothing is told."""
    said: tuple[type, ...] = ()
    """As what it goes over the wire."""


@dataclass(frozen=True)
class PullingRow:
    """A command of those who come without a connection: a lane has one, and no use for it."""

    rule: Rule
    asked: Callable[[Session, str], Awaitable[object]]


def needs(*actions: Action) -> Rule:
    """One of these, on all that it is about."""
    return lambda person, domain: bool({*actions, "admin"} & person.may.get(domain, frozenset()))


def needs_all(*actions: Action) -> Rule:
    """Every one of these, on what it is about."""
    return lambda person, domain: all(needs(action)(person, domain) for action in actions)


def of_node(person: Person, domain: str) -> bool:
    return person.administers_node


def of_own_domain(person: Person, domain: str) -> bool:
    """Whoever administers the domain they are of, or the node."""
    return "admin" in person.may.get(OWN, frozenset())


def everyone(person: Person, domain: str) -> bool:
    return True


def nobody(person: Person, domain: str) -> bool:
    return False


async def is_allowed(asking: Awaitable[object]) -> bool:
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await asking is not False
    except Forbidden:
        return False
    except SealaneError:
        return True


async def _transact(lane: Lane, domain: str) -> None:
    async with lane.transaction(f"once-{domain}") as transaction:
        await transaction.publish(f"{domain}/t", b"x")


def part_of(domain: str, purpose: str) -> bytes:
    """The name of a part that is staged for the domain's topic."""
    return f"{domain}-{purpose}".encode().ljust(16, b".")


async def stage(lane: Lane, domain: str, purpose: str) -> None:
    batch = from_payloads([b"x"], Stamp(1, bytes(16)), limits=Limits())
    await lane.stage(f"{domain}/t", batch.with_meta(BatchMeta(producer=part_of(domain, purpose), sequence=0)))


async def _publish_staged(lane: Lane, domain: str) -> None:
    await lane.publish_staged(f"staged-{domain}", [(part_of(domain, "publish"), 1)])


async def _drop_staged(lane: Lane, domain: str) -> None:
    await lane.drop_staged([part_of(domain, "drop")])


async def _finds_log(lane: Lane, domain: str) -> bool:
    found = [log.name for log in await lane.logs(f"{domain}/t*")]
    return [log.name for log in await lane.logs(f"{domain}/t")] == [f"{domain}/t"] and f"{domain}/t" in found


async def _consume(lane: Lane, domain: str) -> None:
    async for message in lane.consume(f"{domain}/t", "watching", mode="broadcast"):
        await message.ack(confirm=True)
        return


async def _lists_topic(lane: Lane, domain: str) -> bool:
    return f"{domain}/t" in await lane.topics()


async def _lists_exchange(lane: Lane, domain: str) -> bool:
    return f"{domain}/t-exchange" in await lane.exchanges()


async def _publish_to(lane: Lane, domain: str) -> None:
    await lane.publish_to(f"{domain}/t-exchange", "key", b"x")


_SEEING = needs("publish", "consume", "manage")
_MANAGE = needs("manage")

COMMANDS: dict[str, Row] = {
    "publish": Row(needs("publish"), lambda lane, domain: lane.publish(f"{domain}/t", b"x"), (wire.Publish,)),
    "publish_to_exchange": Row(needs("publish"), _publish_to, (wire.PublishTo,)),
    "transact": Row(needs("publish"), _transact, (wire.Transact,)),
    "stage": Row(needs("publish"), lambda lane, domain: stage(lane, domain, "stage"), (wire.Stage,)),
    "publish_staged": Row(needs("publish"), _publish_staged, (wire.PublishStaged,)),
    "drop_staged": Row(needs("publish"), _drop_staged, (wire.DropStaged,)),
    "attach": Row(needs("consume"), _consume, (wire.Attach, wire.Ack, wire.Nack, wire.Extend, wire.Detach)),
    "browse": Row(needs("consume"), lambda lane, domain: lane.browse(f"{domain}/t", 0, 0), (wire.Browse,)),
    "history": Row(needs("consume"), lambda lane, domain: lane.history(f"{domain}/t", 0, 0), (wire.ReadHistory,)),
    "browse_packed": Row(needs("consume"), lambda lane, domain: lane.browse(f"{domain}/t", 0, 0)),
    "logs": Row(needs("consume"), _finds_log, (wire.DescribeLogs,)),
    "advance": Row(
        needs("consume"), lambda lane, domain: lane.advance(f"{domain}/t", "reader", {0: 1}), (wire.Advance,)
    ),
    "create_topic": Row(_MANAGE, lambda lane, domain: lane.create_topic(f"{domain}/t-new"), (wire.CreateTopic,)),
    "configure_topic": Row(
        _MANAGE, lambda lane, domain: lane.configure_topic(f"{domain}/t", messages_max=1_000), (wire.ConfigureTopic,)
    ),
    "delete_topic": Row(_MANAGE, lambda lane, domain: lane.delete_topic(f"{domain}/t-new"), (wire.DeleteTopic,)),
    "topics": Row(_SEEING, _lists_topic, (wire.ListTopics,)),
    "describe_topic": Row(
        needs("consume", "manage"), lambda lane, domain: lane.describe_topic(f"{domain}/t"), (wire.DescribeTopic,)
    ),
    "unsubscribe": Row(_MANAGE, lambda lane, domain: lane.unsubscribe(f"{domain}/t", "gone"), (wire.Unsubscribe,)),
    "seek": Row(_MANAGE, lambda lane, domain: lane.seek(f"{domain}/t", "s", "earliest"), (wire.Seek,)),
    "redrive": Row(_MANAGE, lambda lane, domain: lane.redrive(f"{domain}/t", "s"), (wire.Redrive,)),
    "declare_exchange": Row(
        _MANAGE, lambda lane, domain: lane.declare_exchange(f"{domain}/t-other"), (wire.DeclareExchange,)
    ),
    "bind": Row(_MANAGE, lambda lane, domain: lane.bind(f"{domain}/t-exchange", f"{domain}/t", "b"), (wire.Bind,)),
    "unbind": Row(
        _MANAGE, lambda lane, domain: lane.unbind(f"{domain}/t-exchange", f"{domain}/t", "b"), (wire.Unbind,)
    ),
    "exchanges": Row(_SEEING, _lists_exchange, (wire.ListExchanges,)),
    "status": Row(of_node, lambda lane, domain: lane.status(), (wire.Status,)),
    "backup": Row(of_node, lambda lane, domain: lane.backup("/nowhere/at/all"), (wire.Backup,)),
    "administer": Row(of_node, lambda lane, domain: lane.administer("audit.verify"), (wire.Administer,)),
}
"""By the name of the session's method."""


_DOMAIN = needs("admin")
_PUSHING = needs_all("manage", "consume")
_WEBHOOK = {"topic": "{domain}/t", "subscription": "s"}
_PASSWORD = "correct horse battery staple"

_ADMINISTRATION: dict[str, tuple[Rule, dict[str, Any]]] = {
    "account.create": (_DOMAIN, {"name": "robot.{domain}", "domain": "{domain}"}),
    "account.disable": (of_own_domain, {"name": "nobody"}),
    "account.enable": (of_own_domain, {"name": "nobody"}),
    "account.list": (of_own_domain, {}),
    "account.roles": (of_own_domain, {"name": "nobody", "roles": ["member"]}),
    "account.show": (of_own_domain, {"name": "nobody"}),
    "audit.note": (of_node, {"action": "pipeline.forget"}),
    "audit.read": (of_node, {}),
    "audit.verify": (of_node, {}),
    "ca.crl": (_DOMAIN, {"domain": "{domain}"}),
    "ca.expiring": (_DOMAIN, {"domain": "{domain}"}),
    "ca.init": (of_node, {"domain": "elsewhere"}),
    "ca.issue": (_DOMAIN, {"name": "machine.{domain}"}),
    "ca.list": (_DOMAIN, {"domain": "{domain}"}),
    "ca.renew": (of_node, {"certificate": "nobody"}),
    "ca.revoke": (of_node, {"certificate": "nobody"}),
    "ca.show": (of_node, {}),
    "directory.get": (everyone, {"names": ["someone"]}),
    "directory.list": (of_node, {}),
    "directory.register": (of_node, {"public_key": "of another", "name": "someone"}),
    "directory.remove": (of_node, {"name": "someone"}),
    "grant.add": (_DOMAIN, {"subject": "someone", "action": "publish", "pattern": "{domain}/t*"}),
    "grant.check": (_DOMAIN, {"principal": "someone", "action": "publish", "resource": "{domain}/t"}),
    "grant.list": (everyone, {}),
    "grant.remove": (_DOMAIN, {"subject": "someone", "action": "publish", "pattern": "{domain}/t*"}),
    "key.create": (_DOMAIN, {"account": "robot.{domain}", "domain": "{domain}"}),
    "key.destroy": (of_node, {"domain": "nowhere", "confirmed": "not at all"}),
    "key.list": (of_own_domain, {}),
    "key.revoke": (of_own_domain, {"id": "none"}),
    "key.rotate": (of_node, {"domain": "nowhere"}),
    "key.rotate_master": (of_node, {}),
    "key.status": (of_node, {}),
    "quota.list": (of_node, {}),
    "quota.remove": (of_node, {"scope": "domain", "name": "{domain}"}),
    "quota.set": (of_node, {"scope": "domain", "name": "elsewhere", "messages_per_second": 1}),
    "quota.show": (of_node, {"scope": "domain", "name": "{domain}"}),
    "schema.check": (_SEEING, {"topic": "{domain}/t", "schema": "true"}),
    "schema.configure": (_MANAGE, {"topic": "{domain}/t", "validate": False}),
    "schema.list": (_SEEING, {"topic": "{domain}/t"}),
    "schema.register": (_MANAGE, {"topic": "{domain}/t-schema", "schema": "true"}),
    "schema.remove": (_MANAGE, {"topic": "{domain}/t"}),
    "schema.show": (_SEEING, {"topic": "{domain}/t"}),
    "token.issue": (nobody, {}),
    "token.rotate": (of_node, {}),
    "user.create": (_DOMAIN, {"name": "human.{domain}", "domain": "{domain}", "password": _PASSWORD}),
    "user.list": (of_own_domain, {}),
    "user.lock": (of_own_domain, {"name": "nobody"}),
    "user.password": (of_own_domain, {"name": "nobody", "password": _PASSWORD}),
    "user.remove": (of_own_domain, {"name": "nobody"}),
    "user.unlock": (of_own_domain, {"name": "nobody"}),
    "webhook.create": (_PUSHING, {**_WEBHOOK, "url": "https://hooks.example.com/"}),
    "webhook.list": (_PUSHING, {"topic": "{domain}/t"}),
    "webhook.pause": (_PUSHING, _WEBHOOK),
    "webhook.remove": (_PUSHING, _WEBHOOK),
    "webhook.resume": (_PUSHING, _WEBHOOK),
    "webhook.rotate": (_PUSHING, _WEBHOOK),
    "webhook.show": (_PUSHING, _WEBHOOK),
}
"""Commands of the administration. They name what is not there, where that is known only after they were authorised;
nobody in the matrix has come in by a password, so nobody gets a token for it."""


def administration() -> dict[str, Row]:
    return {name: Row(rule, _administering(name, given)) for name, (rule, given) in _ADMINISTRATION.items()}


def _administering(name: str, given: dict[str, Any]) -> Asking:
    def asked(lane: Lane, domain: str) -> Awaitable[object]:
        filled: dict[str, Any] = {
            key: value.format(domain=domain) if isinstance(value, str) else value for key, value in given.items()
        }
        return lane.administer(name, **filled)

    return asked


NO_LEASE = Ticket(bytes(SECRET_BYTES), ()).text()


async def _follow(session: Session, domain: str) -> None:
    (await session.follow(f"{domain}/t", "earliest")).close()


PULLING: dict[str, PullingRow] = {
    "pull": PullingRow(
        needs("consume"),
        lambda session, domain: session.pull(f"{domain}/t", "pulling", messages_max=1, wait_seconds=0),
    ),
    "subscribe": PullingRow(
        needs("consume"),
        lambda session, domain: session.subscribe(f"{domain}/t", "pulling", SubscriptionConfig(), "earliest"),
    ),
    "follow": PullingRow(needs("consume"), _follow),
    "held": PullingRow(needs("consume"), lambda session, domain: session.held(f"{domain}/t", "pulling", NO_LEASE)),
}
