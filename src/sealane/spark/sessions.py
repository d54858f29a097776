"""`session()`: a local Spark session that is ready to use and says nothing unless asked."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from sealane.spark.chatter import without_chatter
from sealane.spark.home import home_of_compiled_code
from sealane.spark.registering import LOCAL_MASTER, WORKER_PYTHON, register

Setting = str | int | float | bool

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The environment variable by which a program knows the Java process that `spark-submit` has started for it."""

MEMORY_SHARE = 4
"""The driver, which is all of a local Spark, may take this part of the machine: its Python workers need memory too."""
GIBIBYTE = 2**30
DRIVER_GIBIBYTES = range(1, 9)

QUIET_LOGS = """\
status = off
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
# Spark announces the level of its shell unless it is the root's.
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
# A failed task is told to whoever asked for it, as an exception; these tell it twice more.
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
"""


def session(name: str = "sealane", *, master: str = "local[*]", quiet: bool = True, **config: Setting) -> SparkSession:
    """The Spark session of this process, with `format("sealane")`; it is made if there is none.

    Its workers run on this Python, its times are UTC, and its web page is off, since that is open to whoever reaches
    the machine. `quiet` leaves only errors of what Spark logs; without it Spark is as it is. `config` are settings of
    Spark, with `_` for each dot: `session(spark_driver_memory="4g", spark_ui_enabled=True)`. Under `spark-submit` what
    that was given comes before `name`, `master` and these defaults.
    """
    settings = {"spark.app.name": name, "spark.master": master} | _defaults(master)
    if quiet:
        settings["spark.ui.showConsoleProgress"] = "false"
    settings = {key: text for key, text in settings.items() if key not in _submitted()}
    settings |= {key.replace("_", "."): _text(value) for key, value in config.items()}
    if master.startswith(LOCAL_MASTER):
        # The Java process passes its environment on to the Python processes that it starts.
        os.environ.setdefault(WORKER_PYTHON, sys.executable)
    was_running = SparkContext._gateway is not None
    builder = SparkSession.builder
    for key, text in settings.items():
        builder = builder.config(key, text)
    with home_of_compiled_code(settings.get("spark.master", master)):
        if quiet and not was_running:
            _start_quietly(settings)
        spark = register(builder.getOrCreate())
    if quiet and was_running:
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def _submitted() -> dict[str, str]:
    """What `spark-submit` was told, which has started Java before this program began."""
    if SUBMITTED not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _defaults(master: str) -> dict[str, str]:
    defaults = {"spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}
    if master.startswith(LOCAL_MASTER):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        share = memory // MEMORY_SHARE // GIBIBYTE
        defaults["spark.driver.memory"] = f"{min(max(share, DRIVER_GIBIBYTES[0]), DRIVER_GIBIBYTES[-1])}g"
        # Nobody else needs to reach it, and looking up this machine's name may take seconds.
        defaults["spark.driver.host"] = defaults["spark.driver.bindAddress"] = "127.0.0.1"
    return defaults


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _start_quietly(settings: dict[str, str]) -> None:
    """Start the Java process with logs that hold errors only, from its first line on."""
    with _file_of(QUIET_LOGS) as path:
        java = "spark.driver.extraJavaOptions"
        options = f"{settings.get(java, '')} -Dlog4j2.configurationFile={path.as_uri()}".strip()
        conf = SparkConf(loadDefaults=False).setAll([*settings.items(), (java, options)])
        reading, writing = os.pipe()
        try:
            gateway = launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
        finally:
            os.close(writing)
            threading.Thread(target=_pass_on, args=(os.fdopen(reading, "rb"),), daemon=True).start()
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)


@contextmanager
def _file_of(text: str) -> Iterator[Path]:
    """A file for as long as it takes to be read."""
    with tempfile.TemporaryDirectory(prefix="sealane-") as directory:
        path = Path(directory) / "log4j2.properties"
        path.write_text(text, encoding="utf-8")
        yield path


def _pass_on(said: IO[bytes]) -> None:
    """What Java and its Python workers say on their standard error goes to ours, less what they say each time."""
    with said:
        for line in without_chatter(said):
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, line)
