"""`sealane schema …`: what payloads of topics look like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sealane.cli.completing import complete_topic
from sealane.cli.connecting import ask
from sealane.cli.group import EXIT_FAILED, SealaneGroup
from sealane.cli.moments import moment
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Topic, Url, Yes
from sealane.cli.output import confirm, examples, show_facts, show_table, write_json
from sealane.cli.schema_files import payloads_in, readable, schema_in

if TYPE_CHECKING:
    from sealane.schemas import Misfit

schema_commands = typer.Typer(
    cls=SealaneGroup, no_args_is_help=True, help="Schemas: what payloads of topics look like, in versions."
)

FormatName = Literal["json", "avro", "protobuf", "arrow"]
ModeName = Literal["backward", "forward", "full", "none"]

SchemaFile = Annotated[str, typer.Argument(metavar="FILE", help="The file with the schema; - is standard input.")]
SchemaFormat = Annotated[
    FormatName | None,
    typer.Option("--format", help="What it is; by default as its name ends: .json, .avsc, .proto, .arrow."),
]
Compatibility = Annotated[
    ModeName | None,
    typer.Option(
        "--compatibility",
        help="What may follow the latest: `backward` (new readers take old messages; the default), `forward` (old "
        "readers take new messages), `full` (both) or `none` (anything).",
    ),
]
Validate = Annotated[
    bool | None,
    typer.Option("--validate/--no-validate", help="Refuse what does not fit (the default), or check nothing."),
]
MessageName = Annotated[
    str | None, typer.Option("--message", metavar="NAME", help="Of Protobuf: the message that payloads are.")
]
Version = Annotated[int | None, typer.Option("--version", min=1, help="Which one; by default the latest.")]


@schema_commands.command(
    epilog=examples(
        "sealane schema register orders order.json",
        "sealane schema register orders order.avsc --compatibility full",
        "sealane schema register orders order.proto --message shop.Order",
        "sealane schema register orders order.json --no-validate",
    )
)
def register(
    topic: Topic,
    file: SchemaFile,
    format: SchemaFormat = None,
    compatibility: Compatibility = None,
    message: MessageName = None,
    validate: Validate = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Give a topic a schema, or its next version; what is published from now on has to fit it.

    One that the topic has already stays the version that it is. One that may not follow the latest is refused, with
    all places that are in its way.
    """
    text, known = schema_in(file, format)
    wish: dict[str, Any] = {"compatibility": compatibility, "validate": validate, "message": message}
    found = ask(
        url, data, lambda lane: lane.administer("schema.register", topic=topic, schema=text, format=known, **wish)
    )
    if as_json:
        write_json(found)
        return
    what = "is registered as" if found["new"] else "is already"
    checked = "" if found["validate"] else "; nothing is checked"
    typer.echo(f"the schema {what} version {found['version']} of {found['topic']}, with id {found['id']}{checked}")


@schema_commands.command(
    name="list",
    epilog=examples(
        "sealane schema list", "sealane schema list orders", "sealane schema list --json | jq -r '.[].topic'"
    ),
)
def list_schemas(
    topic: Annotated[
        str | None,
        typer.Argument(metavar="[TOPIC]", autocompletion=complete_topic, help="All versions of this one."),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """List the latest schema of every topic that has one, or all versions of a topic's."""
    asked: dict[str, Any] = {} if topic is None else {"topic": topic}
    found = ask(url, data, lambda lane: lane.administer("schema.list", **asked))
    if as_json:
        write_json(found)
        return
    show_table(
        ["topic", ">version", ">id", "format", "compatibility", "checked", "registered", "by"],
        [
            (
                each["topic"],
                each["version"],
                each["id"],
                each["format"],
                each["compatibility"],
                "yes" if each["validate"] else "no",
                moment(each["registered_us"]),
                each["by"],
            )
            for each in found
        ],
        empty="no topic has a schema: `sealane schema register TOPIC FILE` gives it one",
    )


@schema_commands.command(
    epilog=examples(
        "sealane schema show orders",
        "sealane schema show orders --version 1 --text > order.v1.json",
        "sealane schema show orders --json | jq -r .schema",
    )
)
def show(
    topic: Topic,
    version: Version = None,
    text: Annotated[bool, typer.Option("--text", help="Only the schema.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Show a topic's schema: the latest, or the one of a version."""
    found = ask(url, data, lambda lane: lane.administer("schema.show", topic=topic, version=version))
    if as_json:
        write_json(found)
        return
    written = readable(found["schema"], found["format"])
    if not text:
        show_facts(
            [
                ("topic", found["topic"]),
                ("version", found["version"]),
                ("id", found["id"]),
                ("format", found["format"] + (f", message {found['message']}" if found["message"] else "")),
                ("compatibility", found["compatibility"]),
                ("checked", "yes" if found["validate"] else "no"),
                ("registered", f"{moment(found['registered_us'])} by {found['by']}"),
            ]
        )
        typer.echo()
    typer.echo(written.rstrip("\n"))


@schema_commands.command(
    epilog=examples(
        "sealane schema check orders order.json",
        "sealane schema check orders order.json --compatibility full",
        "sealane schema check orders --payload order-42.json",
        "sealane schema check orders --payload orders.jsonl --lines",
    )
)
def check(
    topic: Topic,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="The file with a schema; - is standard input.")
    ] = None,
    format: SchemaFormat = None,
    compatibility: Compatibility = None,
    message: MessageName = None,
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="FILE", help="A payload to check instead; - is standard input.")
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Each line of --payload is one.")] = False,
    version: Version = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Find out whether a schema could be the next version, or whether payloads fit the latest; nothing is changed.

    The exit code is 1 if not. Payloads do not leave this machine.
    """
    if (file is None) == (payload is None):
        raise typer.BadParameter("give a FILE with a schema, or --payload")
    if payload is not None:
        _check_payloads(topic, payload, lines, version, as_json, url, data)
        return
    assert file is not None
    text, known = schema_in(file, format)
    wish: dict[str, Any] = {"compatibility": compatibility, "message": message}
    found = ask(url, data, lambda lane: lane.administer("schema.check", topic=topic, schema=text, format=known, **wish))
    if as_json:
        write_json(found)
    elif found["version"] is not None:
        typer.echo(f"it is version {found['version']} of {found['topic']} already")
    elif found["compatible"]:
        typer.echo(f"it can be registered for {found['topic']}")
    for problem in () if as_json else found["problems"]:
        typer.echo(problem, err=True)
    if not found["compatible"]:
        raise typer.Exit(EXIT_FAILED)


def _check_payloads(
    topic: str, file: str, lines: bool, version: int | None, as_json: bool, url: Url, data: Data
) -> None:
    from sealane.schemas import definition_shown, open_schema

    found = ask(url, data, lambda lane: lane.administer("schema.show", topic=topic, version=version))
    schema = open_schema(definition_shown(found))
    count, misfits = 0, []
    for count, payload in enumerate(payloads_in(file, lines=lines), 1):
        misfit = schema.check([payload])
        if misfit is not None:
            misfits.append((count, misfit))
    _tell(found, file, lines, count, misfits, as_json)
    if misfits:
        raise typer.Exit(EXIT_FAILED)


def _tell(
    schema: dict[str, Any], file: str, lines: bool, count: int, misfits: list[tuple[int, Misfit]], as_json: bool
) -> None:
    if as_json:
        write_json(
            {
                "topic": schema["topic"],
                "version": schema["version"],
                "payloads": count,
                "misfits": [
                    {"payload": number, "path": each.path, "problem": each.problem} for number, each in misfits
                ],
            }
        )
        return
    for number, each in misfits:
        where = f"{file}, line {number}" if lines else file
        typer.echo(f"{where}: {each.path}: {each.problem}", err=True)
    if not misfits:
        what = "payload fits" if count == 1 else "payloads fit"
        typer.echo(f"{count:,} {what} version {schema['version']} of {schema['topic']}")


@schema_commands.command(
    epilog=examples(
        "sealane schema configure orders --compatibility full", "sealane schema configure orders --no-validate"
    )
)
def configure(
    topic: Topic,
    compatibility: Compatibility = None,
    validate: Validate = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Change what may follow the latest version, or whether payloads are checked at all."""
    if compatibility is None and validate is None:
        raise typer.BadParameter("nothing to change: give --compatibility, --validate or --no-validate")
    wish: dict[str, Any] = {"compatibility": compatibility, "validate": validate}
    found = ask(url, data, lambda lane: lane.administer("schema.configure", topic=topic, **wish))
    if as_json:
        write_json(found)
        return
    checked = "payloads are checked" if found["validate"] else "payloads are not checked"
    typer.echo(f"{found['topic']}: compatibility is {found['compatibility']}, {checked}")


@schema_commands.command(
    epilog=examples("sealane schema remove orders --version 3", "sealane schema remove orders --yes")
)
def remove(
    topic: Topic,
    version: Annotated[int | None, typer.Option("--version", min=1, help="Only this one; by default all.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Give up a version of a topic's schema, or all of them: then nothing is checked any more."""
    what = f"version {version}" if version is not None else "every version"
    confirm(f"Remove {what} of the schema of {topic}? Messages that were written by it stay.", yes=yes)
    found = ask(url, data, lambda lane: lane.administer("schema.remove", topic=topic, version=version))
    if as_json:
        write_json(found)
        return
    gone = ", ".join(map(str, found["removed"]))
    typer.echo(f"{found['topic']}: removed {gone}")
