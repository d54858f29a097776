"""Every error Sealane raises on purpose.

One tree under `SealaneError`; a narrower class exists where a caller would do something different about it.
Each message says what was asked, what is wrong and what to do; typed fields carry the same for programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID


class SealaneError(Exception):
    """The base of all errors of this package."""


# --- what the caller sent -------------------------------------------------------------------------------------------


class InvalidMessage(SealaneError):
    """A message breaks a rule of its own: a field of the wrong type or value."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"message refused: {field} {problem}")


class LimitExceeded(InvalidMessage):
    """A message or batch is larger than a limit allows; `field`, `limit` and `value` say which, and by how much."""

    def __init__(self, field: str, limit: int, value: int, *, unit: str = "bytes", setting: str | None = None) -> None:
        self.limit = limit
        self.value = value
        self.unit = unit
        self.setting = setting or f"limits.{field}"
        hint = f"; send less, or raise the setting {self.setting}"
        super().__init__(field, f"is {value:,} {unit}, the limit is {limit:,}{hint}")


class InvalidBatch(SealaneError):
    """Bytes or Arrow data that claim to be a message batch are not one; `column` names the part at fault, if known."""

    def __init__(self, problem: str, *, column: str | None = None) -> None:
        self.problem = problem
        self.column = column
        where = f"column {column!r}: " if column else ""
        super().__init__(f"batch refused: {where}{problem}")


class InvalidName(SealaneError):
    """A topic, subscription, exchange or domain name is not allowed."""

    def __init__(self, kind: str, name: str, problem: str) -> None:
        self.kind = kind
        self.name = name
        self.problem = problem
        super().__init__(f"{kind} name {name!r} refused: {problem}")


class InvalidArgument(SealaneError):
    """An option of a call has a value it cannot have; `argument` and `problem` say which and why."""

    def __init__(self, argument: str, problem: str) -> None:
        self.argument = argument
        self.problem = problem
        super().__init__(f"{argument}: {problem}")


class InvalidSettings(SealaneError):
    """What a file, the environment or flags say about a node cannot be; `problems` has a sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class FilterError(SealaneError):
    """A filter expression cannot be understood; `position` is where in the text (from 0)."""

    def __init__(self, expression: str, position: int, problem: str) -> None:
        self.expression = expression
        self.position = position
        self.problem = problem
        super().__init__(f"filter {expression!r} refused at character {position}: {problem}")


# --- what is or is not there ----------------------------------------------------------------------------------------


class NotFound(SealaneError):
    """Something that was asked for by name does not exist."""

    kind = "object"

    def __init__(self, name: str, hint: str = "") -> None:
        self.name = name
        super().__init__(f"{self.kind} {name!r} does not exist" + (f"; {hint}" if hint else ""))


class TopicNotFound(NotFound):
    kind = "topic"


class SubscriptionNotFound(NotFound):
    kind = "subscription"


class ExchangeNotFound(NotFound):
    kind = "exchange"


class AccountNotFound(NotFound):
    kind = "account"


class CertificateNotFound(NotFound):
    kind = "certificate"


class AuthorityNotFound(NotFound):
    kind = "authority"


class QuotaNotFound(NotFound):
    kind = "quota"


class GrantNotFound(NotFound):
    kind = "grant"


class KeyNotFound(NotFound):
    kind = "API key"


class UserNotFound(NotFound):
    kind = "user"


class RecipientNotFound(NotFound):
    kind = "recipient"


class AlreadyExists(SealaneError):
    """Something with that name exists and differs from what was asked for."""

    def __init__(self, kind: str, name: str, difference: str = "") -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"{kind} {name!r} already exists" + (f": {difference}" if difference else ""))


class Unroutable(SealaneError):
    """An exchange has no binding that takes this routing key; nothing was published."""

    def __init__(self, exchange: str, routing_key: str) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        super().__init__(
            f"exchange {exchange!r} routes {routing_key!r} nowhere: nothing was published; bind a topic to that key"
        )


class ModeConflict(SealaneError):
    """A consumer asked for a subscription in a way that the subscription does not work."""

    def __init__(self, subscription: str, problem: str) -> None:
        self.subscription = subscription
        super().__init__(f"subscription {subscription!r}: {problem}")


# --- delivery -------------------------------------------------------------------------------------------------------


class LeaseLost(SealaneError):
    """The message is no longer leased to this consumer (expired, returned or settled); it may be delivered again."""

    def __init__(self, subscription: str, detail: str) -> None:
        self.subscription = subscription
        super().__init__(f"lease lost on subscription {subscription!r}: {detail}")


class StaleSequence(SealaneError):
    """An idempotent producer repeats a batch from so long ago that it cannot be told whether it was stored."""

    def __init__(self, expected: int, got: int) -> None:
        self.expected = expected
        self.got = got
        super().__init__(
            f"producer sequence {got} refused: {expected} is next, and {got} is older than what is remembered; "
            "start a new producer, and check by id what was stored"
        )


class QueueFull(SealaneError):
    """The topic's queue-length limit is reached and it refuses when full; retry once consumers have caught up."""

    def __init__(self, topic: str, limit: int, value: int, unit: str = "messages") -> None:
        self.topic = topic
        self.limit = limit
        self.value = value
        super().__init__(
            f"topic {topic!r} is full: {value:,} unsettled {unit}, the limit is {limit:,}; "
            "retry when consumers have caught up, or raise the topic's limit"
        )


class RateLimited(SealaneError):
    """A quota is used up for now, and nothing was done; the same may be asked again after `retry_after_seconds`.

    `subject` says whose quota it is, `what` of which (messages, bytes or requests) it is short, `limit` how many of
    them it has a second.
    """

    def __init__(self, subject: str, what: str, limit: float, retry_after_seconds: float) -> None:
        self.subject = subject
        self.what = what
        self.limit = limit
        self.retry_after_seconds = retry_after_seconds
        super().__init__(
            f"{subject} has used up its {limit:,.0f} {what} a second; nothing was done, try again in "
            f"{retry_after_seconds:.3g} s, or have its quota raised (`sealane quota set`)"
        )


class TransactionAborted(SealaneError):
    """Nothing of this transaction was published or acknowledged; `__cause__` tells why."""

    def __init__(self, transaction: str, problem: str) -> None:
        self.transaction = transaction
        super().__init__(f"transaction {transaction!r} was not committed: {problem}")


class StagedPartLost(SealaneError):
    """Not all that is to be published is staged: nothing was published. `part` says of what, in hexadecimal; `expected`
    and `found` how many batches there should be, and are.
    """

    def __init__(self, part: str, expected: int, found: int) -> None:
        self.part = part
        self.expected = expected
        self.found = found
        super().__init__(
            f"part {part} cannot be published: it should have {expected:,} batches, {found:,} are staged; it was "
            "dropped, was staged too long ago (staging.keep_seconds), or never came whole; stage it again as a new part"
        )


# --- end-to-end envelopes -------------------------------------------------------------------------------------------


class CannotOpen(SealaneError):
    """Payloads that a consumer's keys do not open; `ids` says of which messages, `reason` why, of the first."""

    def __init__(self, ids: Sequence[UUID], reason: str) -> None:
        self.ids = tuple(ids)
        self.reason = reason
        which = f"message {ids[0]}" if len(ids) == 1 else f"{len(ids):,} messages of this batch ({ids[0]} is the first)"
        super().__init__(f"{which} cannot be opened: {reason}; nack with that reason, or consume with the right key")


class KeyPinMismatch(SealaneError):
    """A recipient's key is not the one that was pinned; nothing was published."""

    def __init__(self, recipient: str, pinned: str, found: str) -> None:
        self.recipient = recipient
        self.pinned = pinned
        self.found = found
        super().__init__(
            f"the key of {recipient!r} is pinned to {pinned}, the node's directory has {found}: nothing was published; "
            "ask its owner, by another way than this node, whether the key was changed"
        )


# --- storage --------------------------------------------------------------------------------------------------------


class StorageError(SealaneError):
    """The engine cannot do what was asked."""


class StorageFull(StorageError):
    """No room: the disk, or the configured share of it, is used up. Reads and acks go on; publishes resume later."""

    def __init__(self, used_bytes: int, limit_bytes: int, what: str = "storage.disk_bytes_max") -> None:
        self.used_bytes = used_bytes
        self.limit_bytes = limit_bytes
        super().__init__(
            f"publish refused: {used_bytes:,} bytes in use of {limit_bytes:,} ({what}); "
            "publishing resumes by itself when retention or an operator frees space"
        )


class StorageFailed(StorageError):
    """The engine has stopped taking writes after an I/O error (fail-stop); restart once the disk is sound."""


class FormatTooNew(StorageError):
    """The data was written by a newer Sealane than this one."""

    def __init__(self, what: str, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(f"{what} has format {found}, this Sealane reads up to {supported}: upgrade Sealane")


class DataDirectoryInUse(StorageError):
    """Another process holds the data directory."""

    def __init__(self, directory: str, pid: int | None) -> None:
        self.directory = directory
        self.pid = pid
        holder = f"process {pid}" if pid else "another process"
        super().__init__(f"data directory {directory!r} is in use by {holder}; stop it, or choose another directory")


class CorruptData(StorageError):
    """Stored bytes fail their check; `detail` names file, place and offsets."""


class KeyUnavailable(StorageError):
    """The key that sealed this data is missing or is not the right one."""


class OffsetMismatch(StorageError):
    """A commit expected another end of the log than there is: someone else has appended."""

    def __init__(self, partition: str, expected: int, actual: int) -> None:
        self.expected = expected
        self.actual = actual
        super().__init__(f"{partition}: commit expected offset {expected}, the log ends at {actual}")


class Fenced(StorageError):
    """The committer's epoch is over: another owner has opened the partition."""

    def __init__(self, partition: str, epoch: int, current: int) -> None:
        self.epoch = epoch
        self.current = current
        super().__init__(f"{partition}: epoch {epoch} is over, {current} owns it now")


class VersionMismatch(StorageError):
    """A compare-and-set lost: the key's version is not the expected one."""

    def __init__(self, key: str, expected: int, actual: int) -> None:
        self.key = key
        self.expected = expected
        self.actual = actual
        super().__init__(f"key {key!r}: expected version {expected}, it is {actual}")


# --- who is asking, and whether anybody is there ----------------------------------------------------------------------


class Unauthenticated(SealaneError):
    """The node does not know who is asking: a credential is missing, wrong or over."""


class BadSignature(SealaneError):
    """A publish of a client with an API key is not signed as it must be: nothing of it was stored, and its connection
    is closed. `problem` says what is wrong.
    """

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"the signature of a publish is refused: {problem}; the connection is closed, connect again")


class Forbidden(SealaneError):
    """The principal is known and may not do this; `principal`, `action` and `resource` say who, what and to what."""

    def __init__(self, principal: str, action: str, resource: str, hint: str = "") -> None:
        self.principal = principal
        self.action = action
        self.resource = resource
        super().__init__(f"{principal!r} may not {action} {resource!r}" + (f": {hint}" if hint else ""))


class RenewalTooEarly(SealaneError):
    """The certificate is valid for long: `name` and `serial` say which it is, `since` when it can be renewed."""

    def __init__(self, name: str, serial: str, since: str) -> None:
        self.name = name
        self.serial = serial
        self.since = since
        super().__init__(
            f"certificate {serial} of {name!r} can be renewed from {since} on; earlier by `sealane ca renew --early`"
        )


class UntrustedNode(SealaneError):
    """It is not certain that the node is the one that was meant, so nothing was said to it; `address` says where it is,
    `problem` what is wrong with the certificate that it shows.
    """

    def __init__(self, address: str, problem: str, hint: str) -> None:
        self.address = address
        self.problem = problem
        super().__init__(f"the node at {address} is not trusted: {problem}; {hint}")


class BrokenPlugin(SealaneError):
    """An authenticator that another distribution adds cannot be used; `plugin` and `distribution` say which."""

    def __init__(self, plugin: str, distribution: str, problem: str) -> None:
        self.plugin = plugin
        self.distribution = distribution
        self.problem = problem
        super().__init__(
            f"the authenticator {plugin!r} of the distribution {distribution!r} cannot be used: {problem}; "
            "mend it, or uninstall that distribution"
        )


class PortTaken(SealaneError):
    """Something else listens where a door should; `address` says where, `setting` what to change."""

    def __init__(self, address: str, setting: str) -> None:
        self.address = address
        self.setting = setting
        super().__init__(
            f"{address} is taken by another process; stop it, or change the setting {setting} (0: any free)"
        )


class Unavailable(SealaneError):
    """No node could be reached, or the connection was lost; whether the work happened is said in the message."""


class TooManyConnections(Unavailable):
    """The node takes no more connections from here: `limit` are open, and `setting` says what allows more."""

    def __init__(self, whose: str, limit: int, setting: str) -> None:
        self.whose = whose
        self.limit = limit
        self.setting = setting
        super().__init__(
            f"{limit:,} connections {whose} are open, which is the limit ({setting}); close some, or come back later"
        )


# --- life cycle -----------------------------------------------------------------------------------------------------


class Closed(SealaneError):
    """The lane, consumer or producer was closed."""


class WouldBlock(SealaneError):
    """A blocking call was made where it would stop an event loop; the message says what to use there."""


class DeadlineExceeded(SealaneError, TimeoutError):
    """A wait ended at its deadline; whether the work happened is unknown unless the message says so."""
