"""An issued certificate on its way to its holder: as files, as one profile, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from sealane.cli.certificate_files import CertificateFiles
from sealane.cli.certificate_shapes import certificate_object, moment
from sealane.cli.choosing import chosen_profile
from sealane.cli.output import write_json
from sealane.errors import AlreadyExists, InvalidArgument, Unavailable
from sealane.security.accounts import check_account_name

_TEXTS = ("certificate", "key", "ca")


class Delivery:
    """Where a certificate of this name goes: files in `out` (here, if nothing else is said), a profile, or both."""

    def __init__(
        self, name: str, out: Path | None, profile: Path | None, profile_url: str | None, *, with_key: bool, force: bool
    ) -> None:
        check_account_name(name)
        if profile is not None and not with_key:
            raise typer.BadParameter("a --profile-file holds the private key, which with --csr is elsewhere")
        directory = Path() if out is None and profile is None else out
        self._files = None if directory is None else CertificateFiles(directory, name, with_key=with_key, force=force)
        self._profile = profile
        self._profile_url = profile_url
        self._force = force

    def prepare(self, url: str | None, data: Path) -> None:
        """Before anything is issued: raise what would keep it from being delivered."""
        if self._files is not None:
            self._files.prepare()
        if self._profile is None:
            return
        if self._profile.exists() and not self._force:
            raise AlreadyExists("file", str(self._profile), "--force writes over it")
        if self._profile_url is None:
            self._profile_url = _where(url, data)

    def deliver(self, issued: dict[str, Any], *, as_json: bool) -> None:
        """Write it, and say where it is."""
        written = {} if self._files is None else self._files.write(issued)
        if self._profile is not None:
            self._write_profile(self._profile, issued)
            written["profile"] = str(self._profile)
        if as_json:
            told = {name: value for name, value in issued.items() if name not in _TEXTS}
            write_json({**certificate_object(told), "files": written})
            return
        typer.echo(f"certificate {issued['serial']} for {issued['name']}, valid to {moment(issued['not_after_us'])}")
        for what, path in written.items():
            typer.echo(f"  {what:<12}{path}")
        if issued["key"] is not None:
            typer.echo("the private key is there and nowhere else: whoever has it is its holder", err=True)

    def _write_profile(self, path: Path, issued: dict[str, Any]) -> None:
        from sealane.client.profiles import Profile, write_profile

        assert self._profile_url is not None, "it was found out before"
        texts = {name: issued[name] for name in _TEXTS}
        write_profile(path, Profile(self._profile_url, name=issued["name"], **texts))


def _where(url: str | None, data: Path) -> str:
    """Where this command finds the node."""
    from sealane.client.finding import find_profile

    try:
        return find_profile(url, profile=chosen_profile(), data=data).url
    except Unavailable:
        raise InvalidArgument("--profile-url", "is needed where no node runs: where will it be found?") from None
