"""By value: what Spark carries from process to process brings the package along to where it is not installed."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest
from pyspark import cloudpickle

import sealane
from sealane.spark.parcel import parcel
from sealane.spark.shipping import NEEDS, shipped
from tests.spark.worker_python import WorkerPython

# What Spark's own Python does on the driver: it receives the class, makes a source and a reader, and pickles both.
PLANNING = """
import pickle, sys
from pathlib import Path
from pyspark import cloudpickle
from pyspark.sql.types import StructType
box = Path(sys.argv[1])
try:
    import sealane
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("sealane is installed here")
source = pickle.loads((box / "class").read_bytes())({"url": "sealane://127.0.0.1:1", "topic": "orders"})
(box / "source").write_bytes(cloudpickle.dumps(source))
(box / "reader").write_bytes(cloudpickle.dumps(source.reader(source.schema())))
(box / "streamReader").write_bytes(cloudpickle.dumps(source.streamReader(source.schema())))
"""
ARRIVING = """
import pickle, sys
from pathlib import Path
made = pickle.loads((Path(sys.argv[1]) / sys.argv[2]).read_bytes())
import sealane
print(type(made).__name__, type(made).__module__, sealane.__file__)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> WorkerPython:
    return WorkerPython(tmp_path_factory.mktemp("bare") / "venv")


@pytest.fixture(scope="module")
def box(bare: WorkerPython, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Spark carries about, as files: the class, and what was made of it on the driver."""
    box = tmp_path_factory.mktemp("box")
    (box / "class").write_bytes(cloudpickle.dumps(shipped(parcel())))
    bare.run(PLANNING, str(box), TMPDIR=str(box))
    return box


def test_what_is_made_on_the_driver_brings_the_package_to_executors(
    bare: WorkerPython, box: Path, tmp_path: Path
) -> None:
    for name, made in [("reader", "BatchReader"), ("streamReader", "StreamReader")]:
        kind, module, file = bare.run(ARRIVING, str(box), name, TMPDIR=str(tmp_path)).split()
        assert kind == made
        assert module.startswith("sealane.spark.")
        assert Path(file).is_relative_to(tmp_path), "it is the one that was sent"


def test_the_processes_of_a_machine_unpack_it_once(bare: WorkerPython, box: Path, tmp_path: Path) -> None:
    command = [str(bare.executable), "-P", "-c", ARRIVING, str(box), "reader"]

    at_once = [
        subprocess.Popen(command, env={"TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    homes = {process.communicate(timeout=60)[0].split()[2] for process in at_once}

    assert [process.returncode for process in at_once] == [0, 0, 0, 0]
    assert len(homes) == 1
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == ["lock"]
    assert len([path for path in folder.iterdir() if path.is_dir()]) == 1, "nothing half-made stays"


def test_a_package_that_a_cleaner_has_bitten_is_unpacked_again(bare: WorkerPython, box: Path, tmp_path: Path) -> None:
    home = Path(bare.run(ARRIVING, str(box), "reader", TMPDIR=str(tmp_path)).split()[2]).parent
    (home / "log.py").unlink()

    bare.run(ARRIVING, str(box), "reader", TMPDIR=str(tmp_path))

    assert (home / "log.py").read_bytes() == (Path(sealane.__file__).parent / "log.py").read_bytes()


def test_no_code_is_run_from_a_folder_that_others_can_write_to(bare: WorkerPython, box: Path, tmp_path: Path) -> None:
    trap = tmp_path / f"sealane-{os.getuid()}"
    trap.mkdir()
    trap.chmod(0o777)

    with pytest.raises(AssertionError, match="alone may change, so no code is run from it"):
        bare.run(ARRIVING, str(box), "reader", TMPDIR=str(tmp_path))


def test_another_version_that_a_worker_has_loaded_before_gives_way(
    bare: WorkerPython, box: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old" / "sealane"
    old.mkdir(parents=True)
    (old / "__init__.py").write_text("")

    code = f"import sys; sys.path.insert(0, {str(old.parent)!r}); import sealane\n{ARRIVING}"
    _, _, file = bare.run(code, str(box), "reader", TMPDIR=str(box)).split()

    assert not Path(file).is_relative_to(old)


def test_what_is_not_installed_on_a_worker_is_named_with_the_line_that_installs_it(
    bare: WorkerPython, box: Path
) -> None:
    without = """
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in ("pyroaring", "xxhash") else find_spec(name)
"""
    with pytest.raises(AssertionError, match=r"-m pip install 'pyroaring>=1.0' 'xxhash>=3.5'"):
        bare.run(without + ARRIVING, str(box), "reader", TMPDIR=str(box))


def test_all_that_a_worker_needs_is_named(bare: WorkerPython, box: Path) -> None:
    loaded = """
import json, pkgutil, importlib
before = set(sys.modules)
import sealane.spark
for module in pkgutil.walk_packages(sealane.spark.__path__, "sealane.spark."):
    importlib.import_module(module.name)
new = {name.partition(".")[0] for name in set(sys.modules) - before}
files = {name: getattr(sys.modules.get(name), "__file__", None) for name in new}
print(json.dumps([name for name, file in files.items() if file and "site-packages" in file]))
"""
    packages = json.loads(bare.run(ARRIVING + loaded, str(box), "reader", TMPDIR=str(box)).splitlines()[-1])

    assert set(packages) - {"pyspark", "py4j", "pandas", "dateutil", "pytz", "sealane"} <= set(NEEDS)


def test_the_parcel_of_the_same_source_is_the_same() -> None:
    with zipfile.ZipFile(io.BytesIO(zlib.decompress(parcel()))) as archive:
        names = archive.namelist()
        dates = {entry.date_time for entry in archive.infolist()}

    assert names == sorted(names)
    assert len(dates) == 1
    assert {name.partition("/")[0] for name in names} == {"sealane"}
