"""Who is asking, whether they may, and whether anybody is there to ask."""

from __future__ import annotations

from sealane.errors.base import SealaneError


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


class WebhookRefused(SealaneError):
    """Nothing is sent there: `host` says where, `problem` why not, and what would have to be changed."""

    def __init__(self, host: str, problem: str) -> None:
        self.host = host
        self.problem = problem
        super().__init__(f"a webhook to {host!r} is refused: {problem}")
