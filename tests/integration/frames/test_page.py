"""What docs/frames.md shows works as it is shown."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.architecture.source import ROOT
from tests.frames_node import FramesNode

PAGE = ROOT / "docs" / "frames.md"


def shown_code() -> tuple[str, str]:
    first, second = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return first, second


def test_the_clients_on_the_page_talk_to_each_other(broadcast: FramesNode, capsys: pytest.CaptureFixture[str]) -> None:
    talk, end = shown_code()
    assert "9080" in talk
    names: dict[str, Any] = {}
    exec(compile(talk.replace("9080", broadcast.address.rpartition(":")[2]), str(PAGE), "exec"), names)
    assert capsys.readouterr().out == "b'hello'\n"
    exec(compile(end, str(PAGE), "exec"), names)
    assert broadcast.stored() == 1
    for name in ("consumer", "producer"):
        names[name].close()
