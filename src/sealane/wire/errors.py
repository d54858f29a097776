"""What goes wrong between two peers that speak the native protocol."""

from __future__ import annotations

from sealane.errors import SealaneError


class ProtocolError(SealaneError):
    """The peer said something that the protocol does not allow; the connection ends.

    `code` is what the peer is told, for programs: `bad-frame`, `frame-too-long`, `bad-message`, `unexpected-message`,
    `no-common-version`, `too-slow`, `silent`.
    """

    def __init__(self, code: str, problem: str) -> None:
        self.code = code
        self.problem = problem
        super().__init__(f"native protocol: {problem}")
