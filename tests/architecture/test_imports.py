"""The tree is the architecture: imports point one way, and the core does no I/O."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.source import Module, expect_none, imports, module_from_text, modules

# Each part may import itself and the parts of earlier lines; parts of one line do not know each other.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"_version", "errors", "log", "prompt", "sockets", "whole_files"}),
    frozenset({"message"}),
    frozenset({"delivery", "routing", "schemas"}),
    frozenset({"wire"}),
    frozenset({"security"}),
    frozenset({"engine"}),
    frozenset({"node"}),
    frozenset({"cipher", "client", "doors", "push"}),
    frozenset({""}),
    frozenset({"server", "spark"}),
    frozenset({"pipeline"}),
    frozenset({"cli", "testing"}),
    frozenset({"__main__"}),
)
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}

# `import sealane.message` runs `sealane/__init__.py` first: it must not drag the client in behind it.
EAGER_IN_PACKAGE_INIT = frozenset({"_version", "errors"})

CORE = frozenset({"message", "delivery", "routing", "schemas", "wire"})
# fmt: off
FORBIDDEN_MODULES = frozenset({
    "_thread", "asyncio", "builtins", "concurrent", "fcntl", "glob", "http", "importlib", "io", "logging", "mmap",
    "multiprocessing", "os", "pathlib", "queue", "random", "sched", "secrets", "select", "selectors", "shutil",
    "signal", "socket", "socketserver", "sqlite3", "ssl", "structlog", "subprocess", "tempfile", "threading", "time",
    "urllib", "uvloop",
    "numpy.random", "pyarrow.csv", "pyarrow.dataset", "pyarrow.feather", "pyarrow.flight", "pyarrow.fs", "pyarrow.orc",
    "pyarrow.parquet",
    "sealane.log", "uuid.getnode", "uuid.uuid1", "uuid.uuid4", "uuid.uuid6", "uuid.uuid7",
})
# fmt: on
FORBIDDEN_BUILTINS = frozenset({"__import__", "breakpoint", "input", "open", "print"})
# (the last name before the dot, the attribute): what reads a clock, a disk or randomness from a module that is allowed.
FORBIDDEN_ATTRIBUTES = {
    "date": frozenset({"today"}),
    "datetime": frozenset({"now", "today", "utcnow"}),
    "np": frozenset({"fromfile", "load", "memmap", "random", "save"}),
    "numpy": frozenset({"fromfile", "load", "memmap", "random", "save"}),
    "pa": frozenset({"OSFile", "create_memory_map", "fs", "input_stream", "memory_map", "output_stream"}),
    "pyarrow": frozenset({"OSFile", "create_memory_map", "fs", "input_stream", "memory_map", "output_stream"}),
    "uuid": frozenset({"getnode", "uuid1", "uuid4", "uuid6", "uuid7"}),
}


def part_of(target: str) -> str | None:
    """The part of Sealane that an import reaches, "" for the package itself, None for anything foreign."""
    parts = target.split(".")
    if parts[0] != "sealane":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in RANK else ""


def wrong_directions(module: Module) -> list[str]:
    """The imports of a module that point the wrong way, one sentence each."""
    if module.layer not in RANK:
        return [f"{module.name}: {module.layer!r} has no place in LAYERS yet; decide what it may import"]
    found = []
    for item in imports(module):
        part = part_of(item.target)
        if part is None or part == module.layer:
            continue
        if RANK[part] >= RANK[module.layer]:
            found.append(f"{module.name}:{item.line} imports {item.target}: {module.layer} may not know it")
        elif module.layer == "" and item.eager and part not in EAGER_IN_PACKAGE_INIT:
            found.append(f"{module.name}:{item.line} imports {item.target} eagerly: do it in __getattr__ or a function")
    return found


def impurities(module: Module) -> list[str]:
    """Where a module of the core could touch the world outside, one sentence each."""
    found = [
        f"{module.name}:{item.line} imports {item.target}"
        for item in imports(module)
        if any(item.target == bad or item.target.startswith(f"{bad}.") for bad in FORBIDDEN_MODULES)
    ]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_BUILTINS:
            found.append(f"{module.name}:{node.lineno} calls {node.func.id}()")
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value).rsplit(".", 1)[-1]
            if node.attr in FORBIDDEN_ATTRIBUTES.get(owner, ()):
                found.append(f"{module.name}:{node.lineno} uses {owner}.{node.attr}")
    return found


def test_imports_point_from_the_shell_to_the_core() -> None:
    expect_none(problem for module in modules() for problem in wrong_directions(module))


def test_the_core_has_no_io_no_clock_and_no_randomness() -> None:
    expect_none(problem for module in modules() if module.layer in CORE for problem in impurities(module))


def test_the_sender_and_the_receiver_of_ciphermq_know_nothing_of_a_node() -> None:
    known = {"cipher", "errors", "log", "message", "whole_files", "wire", None}
    expect_none(
        f"{module.name}:{item.line} imports {item.target}"
        for module in modules()
        if module.layer == "cipher"
        for item in imports(module)
        if part_of(item.target) not in known
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sealane.message.batch", "from sealane.engine.contract import Append"),
        ("sealane.message.batch", "import sealane.node.topics"),
        ("sealane.message.batch", "from sealane import engine"),
        ("sealane.message.batch", "import sealane"),
        ("sealane.message.batch", "from ..engine import contract"),
        ("sealane.message.batch", "def f():\n    from sealane.client import connect"),
        ("sealane.errors", "from sealane.message import Batch"),
        ("sealane.delivery.core", "from sealane.routing import Exchange"),
        ("sealane.routing.ring", "from sealane.delivery.core import Core"),
        ("sealane.engine.memory", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sealane.node"),
        ("sealane.cli.main", "import sealane.testing"),
        ("sealane.somewhere.new", "import os"),
    ],
)
def test_an_import_in_the_wrong_direction_is_found(name: str, text: str) -> None:
    assert wrong_directions(module_from_text(name, text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sealane.delivery.core", "from sealane.message import Batch\nfrom sealane.errors import LeaseLost"),
        ("sealane.delivery.core", "from .leases import Leases\nfrom ..message import Batch"),
        ("sealane.cli.main", "import sealane"),
        ("sealane.engine.local.engine", "from sealane.security.at_rest.keys import Keyring"),
    ],
)
def test_an_import_in_the_right_direction_is_not(name: str, text: str) -> None:
    assert wrong_directions(module_from_text(name, text)) == []


def test_the_package_itself_may_import_the_client_only_lazily() -> None:
    lazy = "def __getattr__(name):\n    from sealane.client import lane"
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sealane.client import lane"
    eager = "from sealane.client import lane"

    assert wrong_directions(module_from_text("sealane", lazy, is_package=True)) == []
    assert wrong_directions(module_from_text("sealane", typed, is_package=True)) == []
    assert wrong_directions(module_from_text("sealane", eager, is_package=True))


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "import os.path",
        "from os import urandom",
        "import asyncio",
        "import time as clock",
        "from time import monotonic",
        "from pathlib import Path",
        "if TYPE_CHECKING:\n    import logging",
        "def f():\n    import random",
        "import numpy.random",
        "np.random.default_rng()",
        "pa.memory_map('x')",
        "import pyarrow.parquet as pq",
        "from pyarrow import parquet",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime\ndatetime.now(UTC)",
        "from datetime import datetime\nnow = datetime.utcnow",
        "from datetime import date\ndate.today()",
        "import uuid\nuuid.uuid4()",
        "from uuid import uuid4",
        "open('x')",
        "print('x')",
        "__import__('os')",
    ],
)
def test_an_impurity_in_the_core_is_found(text: str) -> None:
    assert impurities(module_from_text("sealane.message.bad", text))


@pytest.mark.parametrize(
    "text",
    [
        "import uuid\nuuid.UUID(bytes=b'')",
        "from datetime import UTC, datetime\ndatetime.fromtimestamp(0, UTC)",
        "import numpy as np\nnp.arange(3)",
        "import pyarrow as pa\nimport pyarrow.compute as pc",
        "batch.open()\ntimer.time",
    ],
)
def test_pure_code_is_not_an_impurity(text: str) -> None:
    assert impurities(module_from_text("sealane.message.good", text)) == []
