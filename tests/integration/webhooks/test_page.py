"""What docs/webhooks.md tells receivers to do works, and takes ten lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.architecture.source import ROOT
from tests.integration.webhooks.pushing import pushing
from tests.integration.webhooks.receiver import receiver

PAGE = ROOT / "docs" / "webhooks.md"


def shown_code() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return code


async def test_the_code_on_the_page_accepts_what_the_node_sends_and_nothing_else(tmp_path: Path) -> None:
    code, names = shown_code(), dict[str, Any]()
    exec(compile(code, str(PAGE), "exec"), names)
    is_from_sealane = names["is_from_sealane"]
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        first = (await run.create(hook.url(), messages_max=3))["secret"]
        second = (await run.ask("rotate"))["secret"]
        await run.lane.publish_many("orders", [b"1", b"2", b"3"])
        (received, *_) = await hook.count(1)
    assert len([line for line in code.splitlines() if line]) <= 10
    assert is_from_sealane(first, received.headers, received.body)
    assert is_from_sealane(second, received.headers, received.body)
    assert not is_from_sealane("whsec_" + "A" * 44, received.headers, received.body)
    assert not is_from_sealane(first, received.headers, received.body + b" ")
    old = {**received.headers, "webhook-timestamp": str(int(received.headers["webhook-timestamp"]) - 301)}
    assert not is_from_sealane(first, old, received.body)
