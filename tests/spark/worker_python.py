"""Pythons for workers: they have what Sealane depends on, and Sealane itself only if a wheel is put in."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path


class WorkerPython:
    """An environment of its own at `home`, with the packages of this one, but not with this checkout."""

    def __init__(self, home: Path) -> None:
        venv.create(home, symlinks=True, with_pip=False)
        self.executable = home / "bin" / "python"
        self.packages = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(home), "platbase": str(home)}))
        # A folder that is named in a .pth file is searched, but its own .pth files, by which this checkout is installed
        # in it, are not read.
        folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        (self.packages / "dependencies.pth").write_text("\n".join(sorted(folders)) + "\n")

    def install(self, wheel: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--target", str(self.packages), str(wheel)], check=True, timeout=60)

    def run(self, code: str, *arguments: str, **environment: str) -> str:
        """What the code prints. It begins where nothing can be imported by accident."""
        done = subprocess.run(
            [str(self.executable), "-P", "-W", "error", "-c", code, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            env={"PATH": "/usr/bin:/bin", **environment},
            cwd="/",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(root)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel
