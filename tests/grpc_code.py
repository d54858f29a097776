"""The code of the grpc door that is made from its `.proto`: `python -m tests.grpc_code` makes it anew."""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

OF_GOOGLE = Path(protoc.__file__).parent / "_proto"
"""Where durations and timestamps are described."""
SOURCE = Path(__file__).resolve().parents[1] / "src"
PROTO = "sealane/doors/grpc/swarmmq.proto"
GENERATED = tuple(f"sealane/doors/grpc/swarmmq_{ending}" for ending in ("pb2.py", "pb2.pyi", "pb2_grpc.py"))


def generate(into: Path) -> None:
    """Write all of it below this directory."""
    outputs = [f"--{kind}_out={into}" for kind in ("python", "pyi", "grpc_python")]
    if protoc.main(["protoc", f"-I{SOURCE}", f"-I{OF_GOOGLE}", *outputs, PROTO]):
        raise SystemExit(f"protoc does not take {PROTO}; what it says is above")


if __name__ == "__main__":
    generate(SOURCE)
    sys.stdout.writelines(f"{SOURCE / name}\n" for name in GENERATED)
