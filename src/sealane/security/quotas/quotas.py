"""Quotas: how much each principal, and each domain in all, may do a second; and how much of it is left now.

The settings say what holds for everyone; a record for one principal or domain says otherwise. What is used comes out of
token buckets. A domain's bucket is shared by all of its principals in the order in which they come: a noisy one can
use it up, which is why each has a bucket of its own before it.

Nothing here looks at a clock: the time is handed in, in seconds that only go forwards.
"""

from __future__ import annotations

from typing import Literal, NamedTuple
from weakref import WeakValueDictionary

import msgspec

from sealane.errors import InvalidArgument, QuotaNotFound, RateLimited
from sealane.security.principals import Principal
from sealane.security.quotas.token_bucket import TokenBucket
from sealane.security.records import Vault
from sealane.security.settings import QuotaSettings

What = Literal["messages", "bytes", "requests"]
WHATS: tuple[What, ...] = ("messages", "bytes", "requests")
Scope = Literal["principal", "domain"]

NO_LIMIT = 0
"""In a record: as much as it can, whatever the settings say."""
SUBJECT_CHARS_MAX = 256
"""Of a principal's or domain's name: an account's has 128, and one that someone else's token names a prefix too."""
BUCKETS_SWEPT_MIN = 1_000
"""Buckets that are kept without looking whether they are full, and nobody's: about 200 bytes each."""


class Quota(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a record says of one principal or domain. None: what the settings say; 0: no limit."""

    messages_per_second: int | None = None
    bytes_per_second: int | None = None
    requests_per_second: int | None = None
    """Everything that is asked and answered, a published batch too; answers to deliveries do not count."""
    connections_max: int | None = None
    """Of a principal, at a time."""

    def of(self, what: What) -> int | None:
        limit: int | None = getattr(self, f"{what}_per_second")
        return limit


class Subject(NamedTuple):
    """Whose quota: `principal:billing`, `domain:shop`."""

    scope: Scope
    name: str

    def __str__(self) -> str:
        return f"{self.scope} {self.name!r}"

    @property
    def key(self) -> str:
        return f"{self.scope}:{self.name}"


def subject_of(key: str) -> Subject:
    """The subject that `principal:billing` or `domain:shop` names. Raises `InvalidArgument`."""
    scope, _, name = key.partition(":")
    if scope == "principal":
        return Subject("principal", _checked(name))
    if scope == "domain":
        return Subject("domain", _checked(name))
    raise InvalidArgument("subject", f"{scope!r} has no quota; there are principals and domains")


def _checked(name: str) -> str:
    if not 0 < len(name) <= SUBJECT_CHARS_MAX or not name.isprintable():
        raise InvalidArgument("name", f"it has 1 to {SUBJECT_CHARS_MAX} characters, all of them printable")
    return name


def check_quota(subject: Subject, quota: Quota) -> None:
    """Raise `InvalidArgument` for what nothing could hold."""
    given = {name: value for name in quota.__struct_fields__ if (value := getattr(quota, name)) is not None}
    if not given:
        raise InvalidArgument("quota", f"nothing is said about {subject}; give at least one limit")
    for name, value in given.items():
        if value < 0:
            raise InvalidArgument(name, f"is {value:,}, at least 0 (which means no limit)")
    if subject.scope == "domain" and quota.connections_max is not None:
        raise InvalidArgument("connections_max", "a domain has none of its own; set it for its principals")


class _Limit(NamedTuple):
    subject: Subject
    what: What
    bucket: TokenBucket


class Allowance:
    """What one principal may still do, by its own quota and by its domain's. Its sessions share it, and see at once
    what is changed.
    """

    __slots__ = ("__weakref__", "_limits", "limited", "subjects")

    def __init__(self, subjects: tuple[Subject, Subject]) -> None:
        self.subjects = subjects
        self.limited = False
        """Whether any quota applies at all; nothing else needs to be asked if not."""
        self._limits: tuple[_Limit, ...] = ()

    def use(self, limits: tuple[_Limit, ...]) -> None:
        self._limits = limits
        self.limited = bool(limits)

    def charge(self, now: float, *, messages: int = 0, bytes_count: int = 0) -> None:
        """Take what one request with so many messages and bytes uses from every bucket; from none if one of them has
        too little: then it raises `RateLimited`, which tells how long to wait.
        """
        amounts: dict[What, int] = {"messages": messages, "bytes": bytes_count, "requests": 1}
        longest, scarce = 0.0, None
        for limit in self._limits:
            wait = limit.bucket.wait_seconds(amounts[limit.what], now)
            if wait > longest:
                longest, scarce = wait, limit
        if scarce is not None:
            raise RateLimited(str(scarce.subject), scarce.what, scarce.bucket.rate, longest)
        for limit in self._limits:
            limit.bucket.spend(amounts[limit.what])


class Quotas:
    """All quotas, in memory; changes are durable on return, and hold for sessions that are open."""

    def __init__(self, vault: Vault, settings: QuotaSettings) -> None:
        self._settings = settings
        self._records = vault.records("quota", Quota)
        self._buckets: dict[tuple[Subject, What], TokenBucket] = {}
        self._allowances: WeakValueDictionary[tuple[str, str, bool], Allowance] = WeakValueDictionary()
        """By name, domain and whether it is local: those of open sessions."""
        self._sweep_at = BUCKETS_SWEPT_MIN

    async def load(self) -> None:
        await self._records.load()

    # --- asking -------------------------------------------------------------------------------------------------------

    def allowance(self, principal: Principal, now: float) -> Allowance:
        """What a session asks before it does something."""
        key = (principal.name, principal.domain, principal.kind == "local")
        found = self._allowances.get(key)
        if found is None:
            found = Allowance((Subject("principal", principal.name), Subject("domain", principal.domain)))
            self._allowances[key] = found
            if len(self._buckets) >= self._sweep_at:
                self._forget_full(now)
            self._refresh(found, now, by_settings=principal.kind != "local")
        return found

    def connections_max(self, principal: Principal) -> int | None:
        """How many connections it may have at a time. None: as many as it can."""
        said = self.said_or_nothing(Subject("principal", principal.name)).connections_max
        if said is None:
            return self._settings.connections_per_principal_max if principal.kind != "local" else None
        return None if said == NO_LIMIT else said

    def effective(self, subject: Subject, *, by_settings: bool = True) -> dict[What, int]:
        """What holds for it, where anything does. Whoever runs the broker in their own process, or comes in by a door
        without authentication, has only what was said of it by name (`by_settings` false).
        """
        said = self.said_or_nothing(subject)
        found: dict[What, int] = {}
        for what in WHATS:
            limit = said.of(what)
            if limit is None and by_settings:
                limit = getattr(self._settings, f"{subject.scope}_{what}_per_second")
            if limit:
                found[what] = limit
        return found

    def said_or_nothing(self, subject: Subject) -> Quota:
        """What was said of it by name; an empty one if nothing was."""
        return self._records.get(subject.key) or Quota()

    def said(self, subject: Subject) -> Quota:
        """What was said of it by name. Raises `QuotaNotFound`."""
        found = self._records.get(subject.key)
        if found is None:
            raise QuotaNotFound(subject.key, "what the settings say holds for it; `sealane quota list` has the others")
        return found

    def all(self) -> list[tuple[Subject, Quota]]:
        """Those that were set by name, in order."""
        return [(subject_of(key), quota) for key, quota in self._records]

    def left(self, subject: Subject, now: float) -> dict[What, float]:
        """What is left of its burst now, below 0 where it is in debt; nothing where it has used nothing lately."""
        return {what: bucket.level(now) for what, bucket in self._buckets_of(subject)}

    # --- changing -----------------------------------------------------------------------------------------------------

    async def set(self, subject: Subject, quota: Quota, now: float) -> Quota:
        """Let this hold from now on; what `quota` does not say stays as it was. Returns all that is said."""
        check_quota(subject, quota)
        said = msgspec.structs.replace(self.said_or_nothing(subject), **msgspec.to_builtins(quota))
        await self._records.put(subject.key, said)
        self._changed(subject, now)
        return said

    async def remove(self, subject: Subject, now: float) -> None:
        """What the settings say holds again. Raises `QuotaNotFound`."""
        self.said(subject)
        await self._records.remove(subject.key)
        self._changed(subject, now)

    def _changed(self, subject: Subject, now: float) -> None:
        # What was used counts against the new quota too, if there is one: setting it twice gives nobody more.
        for (_, _, local), allowance in list(self._allowances.items()):
            if subject in allowance.subjects:
                self._refresh(allowance, now, by_settings=not local)
        limits = self.effective(subject)
        for what, _ in self._buckets_of(subject):
            if what not in limits:
                del self._buckets[subject, what]

    # --- within -------------------------------------------------------------------------------------------------------

    def _refresh(self, allowance: Allowance, now: float, *, by_settings: bool) -> None:
        allowance.use(
            tuple(
                _Limit(subject, what, self._bucket(subject, what, limit, now))
                for subject in allowance.subjects
                for what, limit in self.effective(subject, by_settings=by_settings).items()
            )
        )

    def _bucket(self, subject: Subject, what: What, rate: int, now: float) -> TokenBucket:
        burst = max(rate * self._settings.burst_seconds, 1.0)
        bucket = self._buckets.get((subject, what))
        if bucket is None:
            bucket = self._buckets[subject, what] = TokenBucket(rate, burst, now)
        elif (bucket.rate, bucket.burst) != (rate, burst):
            bucket.change(rate, burst, now)
        return bucket

    def _buckets_of(self, subject: Subject) -> list[tuple[What, TokenBucket]]:
        return [(what, bucket) for what in WHATS if (bucket := self._buckets.get((subject, what))) is not None]

    def _forget_full(self, now: float) -> None:
        """A full bucket says nothing that a new one would not; those of open sessions stay, for they are shared."""
        in_use = {subject for allowance in self._allowances.values() for subject in allowance.subjects}
        self._buckets = {
            (subject, what): bucket
            for (subject, what), bucket in self._buckets.items()
            if subject in in_use or not bucket.is_full(now)
        }
        self._sweep_at = max(BUCKETS_SWEPT_MIN, 2 * len(self._buckets))
