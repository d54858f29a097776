"""`sealane up`: run a node."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from sealane._version import __version__
from sealane.cli.group import fail

if TYPE_CHECKING:
    from sealane.cli.pipeline_beside import PipelineBeside
    from sealane.server.notices import Opened
    from sealane.server.settings import ServerSettings
    from sealane.server.sources import Given

up = typer.Typer()

EXTRA_MODULES = ("fastapi", "httptools", "prometheus_client", "uvicorn", "yaml")
"""What comes with the extra `server`."""
_SCHEMES = {"native": ("sealane://", "sealanes://"), "http": ("http://", "https://")}
"""Of a door in plain text, and with TLS."""
TRY_NEXT = ("publish orders hello", "consume orders --subscription billing", "top")

Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="The settings file. Default: ./sealane.yaml if it is there."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting, such as doors.http.port=0; may be given again."),
]
Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="The data directory. Default: SEALANE_DATA, else ./sealane-data."),
]


@up.command()
def run_node(
    data: Data = None,
    config: Config = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Plain text, no authentication, loopback only: every connection is the admin."),
    ] = False,
    ready_file: Annotated[
        Path | None,
        typer.Option("--ready-file", metavar="FILE", help="Write pid and addresses here once all doors answer."),
    ] = None,
    pipeline: Annotated[
        bool, typer.Option("--pipeline", help="Run `sealane pipeline run` beside it, which needs the extra `spark`.")
    ] = False,
    pairs: Settings = None,
) -> None:
    """Run a node until Ctrl-C or SIGTERM, and say where its doors are.

    The first start makes a certificate authority, a certificate for the node and one for its administrator; the command
    line on this machine finds what it needs by itself. Others come in by `sealane ca issue`, `sealane key create` or
    `sealane user add`.

    Settings come from the file, then from SEALANE_… variables, then from flags; `sealane config show` tells which value
    came from where.

    \b
    Examples:
      sealane up
      sealane up --data /var/lib/sealane --config /etc/sealane.yaml
      sealane up --set doors.native.host=0.0.0.0 --set security.certificates.names=broker.example.com
      sealane up --set doors.native.port=0 --set log.format=json --ready-file /run/sealane.json
      sealane up --insecure
      sealane up --pipeline
    """  # noqa: D301 - the parser wants the character itself
    if missing := [name for name in EXTRA_MODULES if find_spec(name) is None]:
        fail(f"running a node needs {', '.join(missing)}; install with: pip install 'sealane[server]'")
    from sealane.server.loading import load
    from sealane.server.running import run
    from sealane.server.systemd import READY, tell_systemd

    settings = load(config=config, pairs=pairs or (), flags=own_flags(data=data, insecure=insecure)).settings

    beside = _pipeline(settings) if pipeline else None

    def on_ready(opened: Opened) -> None:
        _welcome(settings, opened)
        tell_systemd(READY)
        if beside is not None:
            beside.start()

    try:
        run(settings, ready_file=ready_file, on_ready=on_ready, on_stop=beside.ask_to_end if beside else None)
    finally:
        if beside is not None:
            beside.close()


def _pipeline(settings: ServerSettings) -> PipelineBeside:
    if find_spec("pyspark") is None:
        fail("the pipeline needs Spark; install with: pip install 'sealane[server,spark]', and Java 17 or newer")
    from sealane.cli.pipeline_beside import PipelineBeside

    return PipelineBeside.of_node(settings.data)


def own_flags(*, data: Path | None, insecure: bool = False) -> list[Given]:
    """The flags that are settings, as far as they were given."""
    from sealane.server.sources import Given, Origin

    flags = []
    if data is not None:
        flags.append(Given("data", str(data), Origin("flag", "--data")))
    if insecure:
        flags.append(Given("insecure", True, Origin("flag", "--insecure")))
    return flags


def _welcome(settings: ServerSettings, opened: Opened) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        Text.assemble(("Sealane ", "bold"), (__version__, "bold"), f" is up, with its data in {settings.data}")
    )
    if settings.insecure:
        warning = "INSECURE: plain text, no authentication; everyone on this machine is the admin"
        console.print(Text(warning, style="bold red"))
    if opened.first_start:
        for line in _first_words(settings):
            console.print(Text(line, style="cyan"))
    for name, address in opened.doors.items():
        scheme = _SCHEMES.get(name, ("", ""))[0 if settings.insecure else 1]
        console.print(Text(f"  {name:<8}{scheme}{address}"))
    if opened.fingerprint is not None:
        console.print(Text(f"  {'CA':<8}SHA-256 {opened.fingerprint}"))
    console.print(Text("Try, in another terminal:"))
    for command in TRY_NEXT:
        console.print(Text(f"  {command_prefix(settings.data)} {command}", style="green"))
    console.print(Text("Ctrl-C stops it."))


def _first_words(settings: ServerSettings) -> list[str]:
    data, program = settings.data, command_prefix(settings.data)
    return [
        f"First start: made a certificate authority, a server certificate, a master key and an admin, all in {data}",
        "TLS 1.3 is on, and whoever comes in needs a credential: a certificate, an API key or a password",
        f"Without {data}/master.key the stored messages are lost: keep a copy, by `{program} key backup`",
        f"On this machine commands find {data}/admin.profile; for others: `{program} ca issue NAME --out DIR`",
    ]


def command_prefix(data: str) -> str:
    """How the user would call this program from here, for the node of this data directory."""
    called = sys.argv[0]
    found = shutil.which("sealane")
    if Path(called).name == "__main__.py":
        program = f"{shlex.quote(sys.executable)} -m sealane"
    elif found is not None and os.path.realpath(found) == os.path.realpath(called):
        program = "sealane"
    else:
        relative = os.path.relpath(called)
        # From the root of the file system a relative path would not be known for one.
        program = shlex.quote(called if relative.startswith("..") or Path.cwd() == Path("/") else relative)
    if Path(data) == Path("sealane-data"):
        return program
    return f"SEALANE_DATA={shlex.quote(data)} {program}"
