"""Compiles what is worth it, where a C compiler is at hand: `sealane/message/_plain.c`.

Without one, without Python's headers, or with `SEALANE_PURE=1`, Sealane is built without it and does the same in
Python: a build never fails for want of a compiler. What is compiled uses Python's stable interface alone, so that one
build serves every version.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("src/sealane/message/_plain.c")
COMPILED = SOURCE.with_suffix(".abi3.so")
COMPILE_SECONDS_MAX = 120


class CompileHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling before it makes a wheel, an editable one too."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is standard or editable."""
        root = Path(self.root)
        why_not = problem_with_compiling(root)
        if why_not:
            # One of an earlier build may be of other code.
            (root / COMPILED).unlink(missing_ok=True)
            self.app.display_warning(f"sealane is built without its compiled part: {why_not}")
            return
        build_data["artifacts"].append(f"/{COMPILED}")
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"cp311-abi3-{platform}"


def problem_with_compiling(root: Path) -> str | None:
    """Compile it; what speaks against that, if something does."""
    if os.environ.get("SEALANE_PURE") == "1":
        return "SEALANE_PURE is 1"
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        return f"it is compiled for CPython on Linux, and this is {sys.implementation.name} on {sys.platform}"
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        return f"there is no C compiler {compiler[0]!r}"
    made = root / COMPILED.with_suffix(".new")
    command = [*compiler, "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-fPIC", "-shared"]
    command += ["-I", sysconfig.get_path("include"), str(root / SOURCE), "-o", str(made)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILE_SECONDS_MAX)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{compiler[0]}: {error}"
    if done.returncode:
        made.unlink(missing_ok=True)
        return done.stderr.strip() or f"{compiler[0]} failed with exit code {done.returncode}"
    # A node that runs from here keeps the one that it has loaded.
    made.replace(root / COMPILED)
    return None
