from __future__ import annotations

import random
import sqlite3

import pytest

from tests.simulation.disk import DiskFault, SimDisk
from tests.simulation.ends import Crashed


@pytest.fixture
def disk():
    disk = SimDisk(random.Random(0))
    yield disk
    disk.close()


def values(disk):
    return [row[0] for row in disk.mount().database("meta.db").execute("SELECT v FROM t ORDER BY v")]


def prepared(disk, *, explicit=False):
    connection = disk.mount().database("meta.db")
    if explicit:
        connection.isolation_level = None
    connection.execute("CREATE TABLE IF NOT EXISTS t (v INTEGER)")
    return connection


def test_what_was_committed_survives_and_the_rest_is_rolled_back(disk):
    connection = prepared(disk)
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    connection.execute("INSERT INTO t VALUES (2)")
    disk.lose_power()
    assert values(disk) == [1]


def insert_and_call_commit(connection):
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()


def insert_and_leave_the_block(connection):
    with connection:
        connection.execute("INSERT INTO t VALUES (1)")


def begin_insert_and_execute_commit(connection):
    connection.isolation_level = None
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO t VALUES (?)", [(1,)])
    connection.execute("COMMIT")


def insert_by_itself(connection):
    connection.isolation_level = None
    connection.execute("INSERT INTO t VALUES (1)")


WAYS = [insert_and_call_commit, insert_and_leave_the_block, begin_insert_and_execute_commit, insert_by_itself]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("kind", "left"), [("crash_before", []), ("crash_after", [1])])
def test_a_crash_can_hit_just_before_or_just_after_any_kind_of_commit(disk, way, kind, left):
    connection = prepared(disk)
    disk.arm(DiskFault(kind, disk.operations + 1))
    with pytest.raises(Crashed):
        way(connection)
    disk.kill()
    assert values(disk) == left


def test_a_commit_that_fails_leaves_nothing_and_the_next_one_works(disk):
    connection = prepared(disk)
    disk.arm(DiskFault("write_error", 0))
    with pytest.raises(sqlite3.OperationalError):
        insert_and_call_commit(connection)
    assert not connection.in_transaction
    connection.execute("INSERT INTO t VALUES (2)")
    connection.commit()
    assert values(disk) == [2]


def test_an_error_in_the_block_rolls_back(disk):
    connection = prepared(disk)
    with pytest.raises(sqlite3.OperationalError, match="nowhere"), connection:
        connection.executescript("BEGIN; INSERT INTO t VALUES (1); INSERT INTO nowhere VALUES (1)")
    assert values(disk) == []


def test_the_connection_of_a_dead_life_refuses_statements(disk):
    connection = prepared(disk)
    disk.mount()
    with pytest.raises(Crashed):
        connection.execute("SELECT 1")
    with pytest.raises(Crashed):
        connection.executescript("CREATE TABLE u (v)")


def test_two_disks_share_nothing(disk):
    prepared(disk).execute("INSERT INTO t VALUES (1)")
    other = SimDisk(random.Random(0))
    prepared(other)
    assert values(other) == []
    other.close()
