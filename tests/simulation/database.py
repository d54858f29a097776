"""A simulated SQLite database: a real one, in memory, that outlives the simulated process.

SQLite's own durability is not what we test, so a commit is durable when it returns. What the simulator adds are crashes
just before and just after a commit, commits that fail, and that whatever was not committed is rolled back by a crash.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal

Gate = Callable[[Literal["statement", "commit", "committed"]], None]
"""Called before each statement, before each commit and after it; raises what the simulated disk says."""

_COMMITS = re.compile(r"\s*(COMMIT|END)\b", re.IGNORECASE)
_CHANGES = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|WITH)\b", re.IGNORECASE)
_numbers = itertools.count()


class SimDatabase:
    """What is on the disk of one database. Connections come and go; this stays."""

    def __init__(self) -> None:
        self._uri = f"file:sealane-simulation-{next(_numbers)}?mode=memory&cache=shared"
        # Held open all the time: a shared in-memory database lives as long as any connection to it.
        self._anchor = sqlite3.connect(self._uri, uri=True, check_same_thread=False)
        self._connections: list[SimConnection] = []
        # Whoever forgets to close it: an open connection that is collected is a warning, and so a failing test.
        self._closing = weakref.finalize(self, _close, self._anchor, self._connections)

    def connect(self, gate: Gate) -> SimConnection:
        connection = sqlite3.connect(self._uri, uri=True, check_same_thread=False, factory=SimConnection)
        connection.gate = gate
        self._connections.append(connection)
        return connection

    def crash(self) -> None:
        """Roll back what was not committed, and end every connection."""
        for connection in self._connections:
            connection.abandon()
        self._connections.clear()

    def close(self) -> None:
        self._closing()


def _close(anchor: sqlite3.Connection, connections: list[SimConnection]) -> None:
    for connection in connections:
        connection.abandon()
    connections.clear()
    anchor.close()


class SimConnection(sqlite3.Connection):
    """A connection whose statements and commits pass the simulated disk's gate."""

    gate: Gate | None = None

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(SimCursor)

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        return self.cursor().executemany(sql, parameters)

    def executescript(self, script: str, /) -> Any:
        return self.cursor().executescript(script)

    def commit(self) -> None:
        if not self.in_transaction:
            return
        self.passing("commit")
        super().commit()
        self.passing("committed")

    def rollback(self) -> None:
        self.passing("statement")
        super().rollback()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        # The base class commits without calling `commit`.
        if kind is None:
            self.commit()
        else:
            self.rollback()
        return False

    def passing(self, what: Literal["statement", "commit", "committed"]) -> None:
        if self.gate is None:
            return
        try:
            self.gate(what)
        except sqlite3.Error:
            # SQLite gives up the transaction when the disk fails under it.
            super().rollback()
            raise

    def abandon(self) -> None:
        """What a crash does: the transaction never happened, and no one is there to close the connection."""
        self.gate = None
        try:
            super().rollback()
            super().close()
        except sqlite3.ProgrammingError:
            return  # closed before


class SimCursor(sqlite3.Cursor):
    connection: SimConnection

    def execute(self, sql: str, parameters: Any = (), /) -> SimCursor:
        committing = self._begin(sql)
        super().execute(sql, parameters)
        self._end(committing)
        return self

    def executemany(self, sql: str, parameters: Any, /) -> SimCursor:
        committing = self._begin(sql)
        super().executemany(sql, parameters)
        self._end(committing)
        return self

    def executescript(self, script: str, /) -> SimCursor:
        # A script first commits what is open, and then each of its statements, unless it says otherwise.
        self.connection.passing("commit")
        super().executescript(script)
        self.connection.passing("committed")
        return self

    def _begin(self, sql: str) -> bool:
        connection = self.connection
        by_itself = connection.isolation_level is None and not connection.in_transaction
        committing = (connection.in_transaction and _COMMITS.match(sql)) or (by_itself and _CHANGES.match(sql))
        connection.passing("commit" if committing else "statement")
        return bool(committing)

    def _end(self, committing: bool) -> None:
        if committing:
            self.connection.passing("committed")
