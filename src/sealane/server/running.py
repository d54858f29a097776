"""Running a server as this process: its event loop, and the signals that stop it."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import uvloop

from sealane.server.logs import configure_logs
from sealane.server.notices import Opened
from sealane.server.process import Server
from sealane.server.settings import ServerSettings
from sealane.server.without_pandas import keep_pandas_out

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EXIT_INTERRUPTED = 128 + signal.SIGINT


def run(
    settings: ServerSettings,
    *,
    ready_file: Path | None = None,
    on_ready: Callable[[Opened], None] | None = None,
    on_stop: Callable[[], None] | None = None,
) -> None:
    """Serve until a signal says stop, then return once all is closed. A second Ctrl-C ends the process at once.

    `on_stop` is called when a signal has come and everything still answers.
    """

    async def serve() -> None:
        server = Server(settings, ready_file=ready_file, on_ready=on_ready)
        interrupts = 0

        def stop(number: int) -> None:
            nonlocal interrupts
            interrupts += number == signal.SIGINT
            if interrupts > 1:
                # Nothing acknowledged is lost by this: it is what recovery is for.
                os._exit(EXIT_INTERRUPTED)
            if on_stop is not None:
                on_stop()
            server.stop()

        loop = asyncio.get_running_loop()
        for each in STOP_SIGNALS:
            loop.add_signal_handler(each, stop, each)
        try:
            await server.run()
        finally:
            for each in STOP_SIGNALS:
                loop.remove_signal_handler(each)

    keep_pandas_out()
    configure_logs(settings.log.format, settings.log.level)
    # A dump of this process's memory would hold keys and payloads, in a file that nobody looks after.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
