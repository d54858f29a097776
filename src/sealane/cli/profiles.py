"""`sealane profile …`: how to reach nodes, and who is asking there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealane.cli.group import SealaneGroup
from sealane.cli.options import AsJson, Yes
from sealane.cli.output import confirm, examples, show_facts, show_table, write_json
from sealane.errors import InvalidArgument, SealaneError

if TYPE_CHECKING:
    from sealane.client.profiles import Profile

profile_commands = typer.Typer(
    cls=SealaneGroup, no_args_is_help=True, help="Profiles: where nodes are, whom to trust there, and who is asking."
)

API_KEY_BYTES_MAX = 4_096
"""What is read of standard input, at most."""


def complete_profile(incomplete: str) -> list[str]:
    from sealane.client.user_profiles import UserProfiles

    return [name for name in UserProfiles().names() if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete_profile, help="The profile's name.")]


def _file(option: str, help: str) -> Any:
    return typer.Option(option, exists=True, dir_okay=False, readable=True, help=help)


@profile_commands.command(
    epilog=examples(
        "sealane profile add anna.profile --url sealanes://broker.example:7070",
        "sealane profile add --url sealanes://broker.example --ca ca.crt --certificate anna.crt --key anna.key",
        "sealane profile add --url sealanes://broker.example --ca ca.crt --api-key-stdin --name shop < key.txt",
    )
)
def add(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A profile that someone gave you.")] = None,
    node: Annotated[str | None, typer.Option("--url", metavar="URL", help="Where the node is, seen from here.")] = None,
    ca: Annotated[Path | None, _file("--ca", "The node's ca.crt; default: whom this machine trusts.")] = None,
    certificate: Annotated[Path | None, _file("--certificate", "A client's certificate.")] = None,
    key: Annotated[Path | None, _file("--key", "Its private key.")] = None,
    api_key_stdin: Annotated[
        bool, typer.Option("--api-key-stdin", help="Read an API key from standard input.")
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", help="What to call it; default: as the file, or the host.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Keep what it takes to reach a node, for you alone. The first profile becomes the default.

    Certificates and keys are copied into the profile, so that their files are not needed any more.
    """
    from sealane.cli.login import profile_name
    from sealane.client.remote.addresses import parse_urls
    from sealane.client.user_profiles import UserProfiles

    profile = _made(file, node, ca, certificate, key, _api_key() if api_key_stdin else None)
    profiles = UserProfiles()
    chosen = name or (profile.name if file is not None else "") or profile_name(parse_urls(profile.url))
    if chosen in profiles.names():
        confirm(f"There is a profile {chosen!r}. Replace it?", yes=yes)
    _put(profiles, profile, chosen)


def _made(
    file: Path | None, url: str | None, ca: Path | None, certificate: Path | None, key: Path | None, api_key: str | None
) -> Profile:
    """The profile of the file, with what the options say instead. Raises `InvalidArgument` if it cannot be used."""
    import msgspec

    from sealane.client.finding import load_profile
    from sealane.client.profiles import Profile
    from sealane.client.remote.addresses import parse_urls
    from sealane.client.remote.tls import ClientTls

    if file is None and url is None:
        raise InvalidArgument("--url", "is missing: give it, or the file of a profile")
    profile = Profile("") if file is None else load_profile(file)
    nodes = parse_urls(url or profile.url)
    texts = {"ca": ca, "certificate": certificate, "key": key}
    given: dict[str, Any] = {each: path.read_text("utf-8") for each, path in texts.items() if path is not None}
    if api_key is not None:
        given["api_key"] = api_key
    profile = msgspec.structs.replace(profile, url=nodes.url, **given)
    if nodes.tls:
        ClientTls(ca=profile.ca, certificate=profile.certificate, key=profile.key)
    elif profile.has_secrets or profile.ca is not None:
        raise InvalidArgument("--url", "certificates and keys need TLS: write sealanes:// instead of sealane://")
    return profile


def _api_key() -> str:
    from sealane.security.credentials.key_text import read_api_key

    return read_api_key(sys.stdin.buffer.read(API_KEY_BYTES_MAX).decode("ascii", errors="replace")).written()


def _put(profiles: Any, profile: Profile, name: str) -> None:
    import msgspec

    path = profiles.put(msgspec.structs.replace(profile, name=name))
    default = ", the default" if profiles.default == name else f"; `sealane profile use {name}` makes it the default"
    typer.echo(f"added profile {name!r} for {profile.url} ({path}){default}")


@profile_commands.command(name="list", epilog=examples("sealane profile list", "sealane profile list --json"))
def list_(as_json: AsJson = False) -> None:
    """List your profiles, with the one that is meant when none is named."""
    from sealane.client.user_profiles import UserProfiles

    profiles = UserProfiles()
    found: list[dict[str, Any]] = []
    for name in profiles.names():
        try:
            facts = _facts(profiles.get(name))
        except (SealaneError, OSError) as error:
            facts = {"name": name, "problem": str(error)}
        found.append({**facts, "default": name == profiles.default})
    if as_json:
        write_json(found)
        return
    rows = [
        (each["name"], each.get("url"), each.get("problem") or each["credential"], "yes" if each["default"] else "")
        for each in found
    ]
    show_table(
        ("profile", "url", "credential", "default"), rows, empty="no profiles yet: `sealane profile add` makes one"
    )


@profile_commands.command(epilog=examples("sealane profile show broker.example", "sealane profile show shop --json"))
def show(name: Name, as_json: AsJson = False) -> None:
    """Show all of a profile but its secrets."""
    from sealane.client.user_profiles import UserProfiles

    facts = _facts(UserProfiles().get(name))
    if as_json:
        write_json(facts)
    else:
        show_facts((title.replace("_", " "), value) for title, value in facts.items() if value is not None)


def _facts(profile: Profile) -> dict[str, Any]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    facts: dict[str, Any] = {
        "name": profile.name,
        "url": profile.url,
        "credential": profile.credential,
        "user": profile.user,
        "ca_fingerprint": None,
        "certificate_subject": None,
        "certificate_fingerprint": None,
        "certificate_expires": None,
    }
    if profile.ca is not None:
        facts["ca_fingerprint"] = x509.load_pem_x509_certificate(profile.ca.encode()).fingerprint(hashes.SHA256()).hex()
    if profile.certificate is not None:
        certificate = x509.load_pem_x509_certificate(profile.certificate.encode())
        facts["certificate_subject"] = certificate.subject.rfc4514_string()
        facts["certificate_fingerprint"] = certificate.fingerprint(hashes.SHA256()).hex()
        facts["certificate_expires"] = certificate.not_valid_after_utc.isoformat()
    return facts


@profile_commands.command(epilog=examples("sealane profile use broker.example"))
def use(name: Name) -> None:
    """Make a profile the default: it is meant when nothing else says which node."""
    from sealane.client.user_profiles import UserProfiles

    UserProfiles().use(name)
    typer.echo(f"the default is now {name!r}")


@profile_commands.command(epilog=examples("sealane profile remove broker.example --yes"))
def remove(name: Name, yes: Yes = False) -> None:
    """Remove a profile and the secrets in it. What it showed stays valid at the node: revoke it there."""
    from sealane.client.user_profiles import UserProfiles

    profiles = UserProfiles()
    if name in profiles.names():
        confirm(f"Remove profile {name!r}?", yes=yes)
    profiles.remove(name)
    typer.echo(f"removed profile {name!r}")
