"""`sealane key …`: API keys, for programs."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from sealane.cli.connecting import ask
from sealane.cli.group import SealaneGroup
from sealane.cli.key_backup import back_up, restore
from sealane.cli.key_destruction import destroy
from sealane.cli.key_rotation import rotate, status
from sealane.cli.moments import moment
from sealane.cli.options import DEFAULT_DATA, DURATION, AsJson, Data, Url, seconds
from sealane.cli.output import examples, show_facts, show_table, write_json

key_commands = typer.Typer(cls=SealaneGroup, no_args_is_help=True, help="API keys of programs, and the keys of data.")

Roles = Annotated[
    list[str] | None,
    typer.Option("--role", metavar="ROLE", help="Of the account, if it is new; several are possible. Default: member."),
]
Domain = Annotated[
    str | None,
    typer.Option("--domain", help="Of the account, if it is new. Default: what follows the first dot of its name."),
]


@key_commands.command(
    epilog=examples(
        "sealane key create billing",
        "sealane key create sensors --allow 'publish:readings*' --expires 90d --label 'hall 3'",
        "sealane key create etl.shop --domain shop --role consumer --json | jq -r .key > etl.key",
    )
)
def create(
    name: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Whose key it is; the account is made if it is new.")],
    roles: Roles = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="ACTION:PATTERN",
            help="What the key may do of all that its account may, such as publish:orders*. Default: all of it.",
        ),
    ] = None,
    expires: Annotated[
        float | None,
        typer.Option("--expires", parser=seconds, metavar=DURATION, help="When it ends, from now. Default: never."),
    ] = None,
    label: Annotated[str, typer.Option("--label", help="What it is for, in a line.")] = "",
    domain: Domain = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Make an API key, and show it. It is shown once: the node does not tell it again."""
    made = ask(
        url,
        data,
        lambda lane: lane.administer(
            "key.create",
            account=name,
            roles=roles,
            domain=domain,
            allow=allow or [],
            expires_seconds=expires,
            label=label,
        ),
        offline=True,
    )
    if as_json:
        write_json(made)
        return
    show_facts(
        [
            ("key", made["key"]),
            ("id", made["id"]),
            ("account", made["account"]),
            ("may do", ", ".join(made["allow"]) or "all that the account may"),
            ("expires", moment(made["expires_us"], "never")),
        ]
    )
    typer.echo("keep it where only its program reads it: it is not shown again", err=True)


@key_commands.command(name="list", epilog=examples("sealane key list", "sealane key list --json | jq -r '.[].id'"))
def list_keys(as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """List API keys, without their secrets."""
    found = ask(url, data, lambda lane: lane.administer("key.list"), offline=True)
    if as_json:
        write_json(found)
        return
    show_table(
        ["id", "account", "state", "expires", "may do", "label"],
        [
            (
                each["id"],
                each["account"],
                _state(each),
                moment(each["expires_us"], "never"),
                ", ".join(each["allow"]) or "all",
                each["label"],
            )
            for each in found
        ],
        empty="no API keys yet: `sealane key create billing` makes one",
    )


@key_commands.command(epilog=examples("sealane key revoke mfzwq2tbnnug"))
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id: what stands behind `slk_`.")],
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """End an API key for good. Who is connected by it is cut off at once."""
    done = ask(url, data, lambda lane: lane.administer("key.revoke", id=key_id), offline=True)
    if as_json:
        write_json(done)
        return
    typer.echo(f"key {key_id} of {done['account']} is revoked; {done['connections']} connections were cut off")


def _state(key: dict[str, Any]) -> str:
    if key["revoked_us"] is not None:
        return "revoked"
    is_over = key["expires_us"] is not None and key["expires_us"] <= time.time() * 1_000_000
    return "expired" if is_over else "valid"


# The keys of data. They come last, as the help lists commands in this order.
key_commands.command(
    epilog=examples(
        "sealane key rotate --domain shop",
        "sealane key rotate --all --no-wait",
        "sealane key rotate --master",
    )
)(rotate)
key_commands.command(
    epilog=examples("sealane key status", "sealane key status --json | jq '.domains[] | {domain, age_seconds}'")
)(status)
key_commands.command(
    name="backup",
    epilog=examples(
        "sealane key backup /media/safe/sealane.key --passphrase",
        "pass show backups | sealane key backup /backup/sealane.key --passphrase-stdin",
    ),
)(back_up)
key_commands.command(
    epilog=examples("sealane key restore /media/safe/sealane.key", "sealane key restore sealane.key --data new-data")
)(restore)
key_commands.command(
    epilog=examples("sealane key destroy --domain shop", "sealane key destroy --domain shop --yes-destroy shop")
)(destroy)
