"""Who is at the door: the authenticators that a node has, asked one after another."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from sealane.errors import BrokenPlugin, Unauthenticated
from sealane.security.introductions import Authenticator, Introduction
from sealane.security.principals import Principal

PLUGINS = "sealane.authenticators"
"""The group of entry points by which others add authenticators."""


class Authentication:
    """The first authenticator that knows what is shown decides; a certificate counts where nothing else is shown."""

    def __init__(
        self,
        by_credentials: Sequence[Authenticator],
        by_certificate: Authenticator | None = None,
        by_appointment: Authenticator | None = None,
    ) -> None:
        """`by_appointment` is asked last: it knows whom a door stands for."""
        self._by_credentials = list(by_credentials)
        self._by_certificate = by_certificate
        self._by_appointment = by_appointment

    def add(self, plugins: Sequence[Authenticator]) -> None:
        """They are asked after those that are there already."""
        self._by_credentials.extend(plugins)

    async def authenticate(self, shown: Introduction) -> Principal:
        """Who it is. Raises `Unauthenticated`."""
        for authenticator in self._by_credentials:
            principal = await authenticator.authenticate(shown)
            if principal is not None:
                return principal
        if shown.credentials:
            # Whoever shows something does not want to be someone else by their certificate.
            raise Unauthenticated(f"none of the credentials shown is known here; {self._known()}")
        for last in (self._by_certificate, self._by_appointment):
            principal = await last.authenticate(shown) if last is not None else None
            if principal is not None:
                return principal
        raise Unauthenticated(f"no credential was shown; {self._known()}")

    def _known(self) -> str:
        names = [each.name for each in self._by_credentials]
        if self._by_certificate is not None:
            names.append(self._by_certificate.name)
        return f"there are: {', '.join(names)}"


def load_plugins(identity: Any, found: Sequence[EntryPoint] | None = None) -> list[Authenticator]:
    """The authenticators that installed distributions add, in the order of their names. Raises `BrokenPlugin`."""
    plugins: list[Authenticator] = []
    for point in sorted(entry_points(group=PLUGINS) if found is None else found):
        distribution = point.dist.name if point.dist is not None else "unknown"
        try:
            plugin = point.load()(identity)
        except Exception as error:
            raise BrokenPlugin(point.name, distribution, f"{type(error).__name__}: {error}") from error
        if not isinstance(getattr(plugin, "name", None), str) or not callable(getattr(plugin, "authenticate", None)):
            raise BrokenPlugin(point.name, distribution, "what it returns has no `name` and `authenticate`")
        plugins.append(plugin)
    return plugins
