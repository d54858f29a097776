"""`sealane grant …`: what principals and roles may do."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sealane.cli.connecting import ask
from sealane.cli.group import EXIT_FAILED, SealaneGroup
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url
from sealane.cli.output import examples, show_table, write_json
from sealane.security.principals import Action

grant_commands = typer.Typer(cls=SealaneGroup, no_args_is_help=True, help="Say what principals and roles may do.")

Subject = Annotated[
    str,
    typer.Argument(
        metavar="SUBJECT",
        help="An account, `role:` and a role, or `external:` and the subject of someone else's token.",
    ),
]
Acted = Annotated[
    Action, typer.Argument(metavar="ACTION", help="publish, consume, manage, or admin, which is all of them.")
]
Pattern = Annotated[
    str,
    typer.Argument(
        metavar="PATTERN", help="`domain/name`; `*` is any characters, and `~` as the domain is the subject's own."
    ),
]


@grant_commands.command(
    epilog=examples(
        "sealane grant add anna publish shop/orders",
        "sealane grant add role:auditors consume 'shop/*'",
        "sealane grant add bob admin 'shop/*'",
    )
)
def add(subject: Subject, action: Acted, pattern: Pattern, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Allow something from now on, also to who is connected already.

    `admin` of `shop/*` makes an administrator of the domain `shop`, who may do everything there, and grant it to
    others. A role comes to be by being granted something.
    """
    wanted: dict[str, Any] = {"subject": subject, "action": action, "pattern": pattern}
    answer = ask(url, data, lambda lane: lane.administer("grant.add", **wanted), offline=True)
    typer.echo(f"{subject} may {action} {pattern}" + ("" if answer["added"] else " (as before)"))


@grant_commands.command(
    epilog=examples("sealane grant remove anna publish shop/orders", "sealane grant remove bob admin 'shop/*'")
)
def remove(subject: Subject, action: Acted, pattern: Pattern, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Take a grant away. Who is connected feels it at once: consumers that it had let in get nothing more."""
    unwanted: dict[str, Any] = {"subject": subject, "action": action, "pattern": pattern}
    ask(url, data, lambda lane: lane.administer("grant.remove", **unwanted), offline=True)
    typer.echo(f"{subject} has no more grant to {action} {pattern}")


@grant_commands.command(
    name="list",
    epilog=examples("sealane grant list", "sealane grant list --subject anna", "sealane grant list --json | jq length"),
)
def list_grants(
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="SUBJECT", help="Only those of this account or role.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """List grants: all of them for an administrator, for others their own."""
    found = ask(url, data, lambda lane: lane.administer("grant.list", subject=subject), offline=True)
    if as_json:
        write_json(found)
        return
    rows = [(each["subject"], each["action"], each["pattern"]) for each in found]
    show_table(["subject", "action", "pattern"], rows, empty="no grants: `sealane grant add` makes one")


@grant_commands.command(
    epilog=examples(
        "sealane grant check anna publish shop/orders",
        "sealane grant check role:auditors consume shop/orders.billing.dead",
    )
)
def check(
    principal: Annotated[
        str,
        typer.Argument(metavar="PRINCIPAL", help="An account, a principal of another issuer, or `role:` and a role."),
    ],
    action: Acted,
    resource: Annotated[
        str,
        typer.Argument(metavar="RESOURCE", help="A topic or an exchange: `name`, in their domain, or `domain/name`."),
    ],
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Tell whether someone may do something, and by which grant; exit code 1 if not."""
    answer = ask(
        url,
        data,
        lambda lane: lane.administer("grant.check", principal=principal, action=action, resource=resource),
        offline=True,
    )
    if as_json:
        write_json(answer)
    elif answer["allowed"]:
        grant = answer["grant"]
        by = f"{grant['subject']} {grant['action']} {grant['pattern']}"
        typer.echo(f"yes: {principal} may {action} {answer['resource']}, by the grant `{by}`")
    else:
        roles = ", ".join(answer["roles"]) or "none"
        typer.echo(f"no: {principal} has no grant to {action} {answer['resource']} (its roles: {roles})")
    if not answer["allowed"]:
        raise typer.Exit(EXIT_FAILED)
