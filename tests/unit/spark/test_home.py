"""A session on this machine starts its Python processes from the installed package, not from Spark's zip of sources."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark
import pytest

from sealane.spark.home import HOME, home_of_compiled_code
from sealane.spark.registering import WORKER_PYTHON

PACKAGE = Path(pyspark.__file__).parent


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(WORKER_PYTHON, sys.executable)
    monkeypatch.delenv(HOME, raising=False)
    return tmp_path / "cache"


def home(master: str = "local[2]") -> Path | None:
    with home_of_compiled_code(master):
        found = os.environ.get(HOME)
    return None if found is None else Path(found)


def test_it_is_the_package_without_the_zip(cache: Path) -> None:
    found = home()

    assert found is not None
    assert found.is_relative_to(cache)
    assert {path.name for path in found.iterdir()} == {"bin", "conf", "jars", "sbin"}
    assert (found / "bin" / "spark-submit").samefile(PACKAGE / "bin" / "spark-submit")
    assert not (found / "python").exists()


def test_it_is_the_same_each_time_and_mends_what_leads_elsewhere() -> None:
    found = home()
    assert found is not None
    (found / "jars").unlink()
    (found / "jars").symlink_to(found / "gone")

    assert home() == found

    assert (found / "jars").samefile(PACKAGE / "jars")
    assert len(list(found.iterdir())) == 4


def test_only_what_is_started_within_has_it() -> None:
    home()

    assert HOME not in os.environ


def test_it_is_not_for_workers_that_may_need_the_zip(monkeypatch: pytest.MonkeyPatch) -> None:
    assert home("spark://127.0.0.1:7077") is None
    assert home("yarn") is None
    monkeypatch.setenv(WORKER_PYTHON, "/opt/other/bin/python3")
    assert home() is None


def test_the_home_that_a_user_has_chosen_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(HOME, str(tmp_path))

    assert home() == tmp_path
    assert os.environ[HOME] == str(tmp_path)


def test_where_it_cannot_be_made_spark_starts_without_it(cache: Path) -> None:
    cache.write_text("a file where the directory would be")

    assert home() is None
