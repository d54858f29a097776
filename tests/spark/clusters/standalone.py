"""A real standalone cluster of Spark on this machine: a master and its workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from tests.java import SHORT_LIVED, compiled_home
from tests.spark.clusters.ports import free_port

LOOPBACK = "127.0.0.1"
START_SECONDS = 300.0
"""A deadline, not an expectation: machines are shared."""
STOP_SECONDS = 20.0
LOOK_SECONDS = 0.05
WORKERS = 2

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
SPARK_HOME = Path(pyspark.__file__).parent


class StandaloneCluster:
    """One core and one gigabyte a worker: what runs on both runs in two executors.

    with StandaloneCluster(tmp_path) as cluster:
        session(master=cluster.url)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"spark://{LOOPBACK}:{self._port}"

    def start(self) -> Self:
        self._launch("master", MASTER, "--port", str(self._port))
        # A worker tries its master again for a while: they may start side by side.
        names = [f"worker-{number}" for number in range(WORKERS)]
        for name in names:
            self._launch(name, WORKER, "-c", "1", "-m", "1g", "-d", str(self._folder / name), self.url)
        for name in names:
            self._wait_for(name, "Successfully registered with master")
        return self

    def executors(self) -> set[Path]:
        """The directories of those that ever ran, one for each, in that of its worker."""
        return set(self._folder.glob("worker-*/app-*/*"))

    def stop(self) -> None:
        """The workers first, which end their executors."""
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self._processes):
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def _launch(self, name: str, main: str, *arguments: str) -> None:
        command = [str(SPARK_HOME / "bin" / "spark-class"), main, "--host", LOOPBACK, "--webui-port", "0", *arguments]
        folder = self._folder / name
        folder.mkdir()
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={
                    **{key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYSPARK_PYTHON"}},
                    "SPARK_HOME": str(SPARK_HOME),
                    **compiled_home(),
                    "SPARK_LOCAL_IP": LOOPBACK,
                    "SPARK_LOCAL_DIRS": str(folder),
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
                    "SPARK_NO_DAEMONIZE": "true",
                },
            )
        self._processes.append(process)

    def _wait_for(self, name: str, line: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while line not in self._log(name).read_text():
            ended = [process.args for process in self._processes if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise RuntimeError(
                    f"{name} never said {line!r}; ended: {ended}\n{self._log(name).read_text()[-4_000:]}"
                )
            time.sleep(LOOK_SECONDS)

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
