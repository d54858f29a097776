"""Who asks in the matrix, and what each may do: said here by hand, and not by the code that is tested."""

from __future__ import annotations

from dataclasses import dataclass, field

from sealane.security.grants.grants import Grant
from sealane.security.principals import Action, Principal

OWN, FOREIGN = "shop", "bank"
EVERYTHING: frozenset[Action] = frozenset({"publish", "consume", "manage", "admin"})


@dataclass(frozen=True)
class Person:
    roles: frozenset[str] = frozenset()
    grants: tuple[Grant, ...] = ()
    may: dict[str, frozenset[Action]] = field(default_factory=dict)
    """By domain: what to the topics and exchanges in it."""
    administers_node: bool = False

    def principal(self, name: str) -> Principal:
        return Principal(name, OWN, self.roles)


PEOPLE: dict[str, Person] = {
    "admin": Person(frozenset({"admin"}), may={OWN: EVERYTHING, FOREIGN: EVERYTHING}, administers_node=True),
    "member": Person(frozenset({"member"}), may={OWN: frozenset({"publish", "consume"})}),
    "producer": Person(frozenset({"producer"}), may={OWN: frozenset({"publish"})}),
    "consumer": Person(frozenset({"consumer"}), may={OWN: frozenset({"consume"})}),
    "manager": Person(frozenset({"manager"}), may={OWN: frozenset({"manage"})}),
    "domain-admin": Person(grants=(Grant("domain-admin", "admin", f"{OWN}/*"),), may={OWN: EVERYTHING}),
    "custom-role": Person(
        frozenset({"tellers"}),
        (Grant("role:tellers", "publish", f"{FOREIGN}/*"), Grant("role:tellers", "consume", f"{OWN}/t*")),
        may={FOREIGN: frozenset({"publish"}), OWN: frozenset({"consume"})},
    ),
    "none": Person(),
}
