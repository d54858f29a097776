"""What this process takes of its machine. Where the system does not tell, nothing is made up: None."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path


def memory_bytes() -> int | None:
    """The memory that is resident now."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_bytes_most() -> int:
    """The most that was resident so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def open_files() -> int | None:
    """Files and sockets that are open now."""
    for listing in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(listing))
        except OSError:
            continue
    return None


def open_files_limit() -> int:
    """How many may be open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def processor_seconds() -> float:
    """Processor time used so far, in user and system mode."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
