"""A simulated disk with a file on it."""

from __future__ import annotations

import random

from tests.simulation.disk import SimDisk

SEEDS = range(60)


def disk_of(seed=0, **options):
    return SimDisk(random.Random(seed), **options)


def make_file(disk, name="log", content=b""):
    """A file whose name and content are durable."""
    files = disk.mount()
    file = files.open(name, create=True)
    file.write_at(0, [content])
    file.sync()
    files.sync_directory("")
    return file


def content(disk, name="log"):
    file = disk.mount().open(name)
    return file.read_at(0, file.size)
