"""The command line has the same verdicts as the doors: a refusal ends with exit code 3."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.access.commands import COMMANDS, administration
from tests.access.doors import Guests
from tests.access.people import FOREIGN, OWN, PEOPLE
from tests.access.test_matrix import node_of_everyone
from tests.integration.server.up import environment

DEADLINE_SECONDS = 120.0
EXIT_CREDENTIAL = 3

TYPED = {
    "publish": ["publish", "{domain}/t", "hello"],
    "describe_topic": ["topic", "show", "{domain}/t"],
    "status": ["status"],
    "grant.add": ["grant", "add", "someone", "publish", "{domain}/t"],
    "audit.verify": ["audit", "verify"],
}
"""By the command of the matrix."""


async def exit_code(url: str, words: list[str], directory: Path) -> int:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *["-m", "sealane", *words, "--url", url],
        cwd=directory,
        env=environment(XDG_CONFIG_HOME=str(directory)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        return await asyncio.wait_for(process.wait(), DEADLINE_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()


@pytest.mark.parametrize(("who", "domain"), [("admin", FOREIGN), ("domain-admin", OWN), ("member", FOREIGN)])
async def test_a_refused_command_ends_with_the_exit_code_of_credentials(who: str, domain: str, tmp_path: Path) -> None:
    person, guests = PEOPLE[who], Guests()
    rows = {**COMMANDS, **administration()}
    async with node_of_everyone(guests) as node:
        guests.expected = person.principal(who)
        codes = {
            name: await exit_code(node.url, [word.format(domain=domain) for word in words], tmp_path)
            for name, words in TYPED.items()
        }
    expected = {name: 0 if rows[name].rule(person, domain) else EXIT_CREDENTIAL for name in TYPED}
    assert codes == expected
