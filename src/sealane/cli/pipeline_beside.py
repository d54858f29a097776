"""The pipeline beside a node: `sealane up --pipeline` starts it once the doors are open, and ends it with the node."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence

from sealane.log import get_log

log = get_log("sealane.pipeline")

RESTART_SECONDS_MIN = 5.0
RESTART_SECONDS_MAX = 300.0
"""How long it is left alone after it has failed: longer each time, since what stopped it may take a while to mend."""
STOP_SECONDS = 60.0
"""How long a step may take to end once the node has; then it is killed, and done again by the next start."""


class PipelineBeside:
    """A process of its own, so that a full disk or a crash of Java is no matter of the node's."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher = threading.Thread(target=self._keep_running, name="sealane-pipeline", daemon=True)

    @classmethod
    def of_node(cls, data: str) -> PipelineBeside:
        """The pipeline of the node on this data directory, with this very Python."""
        return cls([sys.executable, "-m", "sealane", "pipeline", "run", "--data", data])

    def start(self) -> None:
        self._watcher.start()

    def ask_to_end(self) -> None:
        """Tell it that the node will go: what fails from here on is no failure."""
        with self._lock:
            self._ending.set()
            if self._process is not None and self._process.poll() is None:
                self._process.terminate()

    def close(self) -> None:
        """End it, after the step that is under way if that does not take too long."""
        self.ask_to_end()
        process = self._process
        if process is not None and process.poll() is None:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._watcher.is_alive():
            self._watcher.join()

    def _keep_running(self) -> None:
        pause = RESTART_SECONDS_MIN
        while not self._ending.is_set():
            with self._lock:
                if self._ending.is_set():
                    return
                process = self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)  # noqa: S603 - this very program
            log.info("the pipeline runs beside the node", pid=process.pid)
            status = process.wait()
            if not self._ending.is_set():
                log.error("the pipeline has ended; it is started again", status=status, in_seconds=pause)
                self._ending.wait(pause)
                pause = min(2 * pause, RESTART_SECONDS_MAX)
