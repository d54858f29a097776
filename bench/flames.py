"""Where the time goes: flame graphs of a node and its clients while a work runs, and profiles by function.

py-spy looks at the processes from outside, a few hundred times a second, and slows them little.
"""

from __future__ import annotations

import cProfile
import io
import os
import pstats
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from bench import one_round
from bench.running import empty_directory
from bench.trees import ROOT, python
from bench.work import Work
from bench.works import WORKS
from bench.works.in_process import PROFILED

SAMPLES_PER_SECOND = 250
LOOK_SECONDS = 0.02
WORK_SECONDS_MAX = 900.0
LAST_WORDS_SECONDS = 60.0
ROLES = {"sealane": "node", "bench.wire_client": "client"}
"""What a process is, by the module that it runs."""

REFUSED = (
    "py-spy may not look into processes here. As root it may; otherwise allow it with `sudo sysctl "
    "kernel.yama.ptrace_scope=0`, in a container with `--cap-add SYS_PTRACE`."
)


@dataclass(slots=True)
class Recording:
    """py-spy at work on one process; it ends, and writes, when the process does."""

    label: str
    """What the process was: the node, or what a client did."""
    path: Path
    recorder: subprocess.Popen[str]


@dataclass(slots=True)
class Recorder:
    """Finds the processes of a work as they start, and records each to its end."""

    name: str
    directory: Path
    roles: frozenset[str]
    program: str
    recordings: dict[int, Recording] = field(default_factory=dict)

    def look(self, root: int) -> None:
        for pid, role, label in descendants(root):
            if role in self.roles and pid not in self.recordings and has_begun(pid):
                self.recordings[pid] = self._record(pid, label)

    def _record(self, pid: int, label: str) -> Recording:
        same = sum(recording.label == label for recording in self.recordings.values())
        path = self.directory / f"{self.name}-{label}{f'-{same + 1}' if same else ''}.svg"
        path.unlink(missing_ok=True)
        command = [self.program, "record", "--pid", str(pid), "--output", str(path), "--format", "flamegraph"]
        command += ["--rate", str(SAMPLES_PER_SECOND), "--duration", "unlimited", "--nonblocking", "--threads"]
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return Recording(label, path, recorder)

    def finish(self) -> list[str]:
        """Wait until each has written its graph; what those say that have none."""
        problems = []
        for recording in self.recordings.values():
            try:
                _, said = recording.recorder.communicate(timeout=LAST_WORDS_SECONDS)
            except subprocess.TimeoutExpired:
                recording.recorder.kill()
                _, said = recording.recorder.communicate()
            if not recording.path.exists():
                problems.append(f"{recording.path.name}: {said.strip()[-500:]}")
        return problems


def main(work: Work, results: Path, directory: Path, with_clients: bool, quick: bool, console: Console) -> int:
    """Run the work once while its processes are recorded."""
    program = shutil.which("py-spy", path=f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        console.print("py-spy is missing; run: pip install 'sealane\\[bench]'")
        return 1
    graphs = results / "flames"
    graphs.mkdir(parents=True, exist_ok=True)
    # A work inside one process has no node: that process is what there is to see.
    inside = work.group in ("in-process", "start-up")
    roles = frozenset({"round"} if inside else {"node", "client"} if with_clients else {"node"})
    recorder = Recorder(work.name, graphs, roles, program)
    with console.status(f"recording {work.name} …"), empty_directory(directory) as path:
        command = python(one_round.MODULE, work.name, str(path), "quick" if quick else "full")
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as running:
            deadline = time.monotonic() + WORK_SECONDS_MAX
            while running.poll() is None and time.monotonic() < deadline:
                recorder.look(running.pid)
                time.sleep(LOOK_SECONDS)
            running.kill()
            said = running.stderr.read() if running.stderr else ""
        problems = recorder.finish()
    if running.returncode:
        problems.append(f"the work failed: {said.strip()[-1_000:]}")
    for recording in recorder.recordings.values():
        if recording.path.exists():
            console.print(f"written to {recording.path}")
    for problem in problems:
        console.print(f"[red]failed[/] {escape(problem)}")
    if any("ermission" in problem for problem in problems):
        console.print(REFUSED)
    return 1 if problems or not recorder.recordings else 0


def descendants(root: int) -> Iterator[tuple[int, str, str]]:
    """A process and all that it started that has a role here: its id, its role, and a name for what it does."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue  # It has ended meanwhile.
    for pid in parents:
        above: int | None = pid
        while above is not None and above != root:
            above = parents.get(above)
        if pid == root:
            yield pid, "round", "process"
        elif above == root and (known := _role(pid)):
            yield pid, *known


def has_begun(pid: int) -> bool:
    """Whether a process has come as far as its event loop or its connection: imports would hide what comes after."""
    try:
        return any(os.readlink(each).startswith("socket:") for each in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _role(pid: int) -> tuple[str, str] | None:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    if "-m" not in words[:-1]:
        return None
    module, *arguments = words[words.index("-m") + 1 :]
    role = ROLES.get(module)
    # A client's first argument is what it does.
    return None if role is None else (role, arguments[0] if role == "client" and arguments else role)


def profile_all(results: Path, directory: Path, console: Console) -> int:
    """By function, of the works inside one process; the profiler itself slows Python code about twofold."""
    for name in PROFILED:
        work = WORKS[name]
        profiler = cProfile.Profile()
        with console.status(f"profiling {name} …"), empty_directory(directory) as path:
            profiler.enable()
            work.measure(path, work.amounts_for(quick=True))
            profiler.disable()
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(25)
        (results / f"profile-{name}.txt").write_text(text.getvalue())
        console.print(f"written to {results / f'profile-{name}.txt'}")
    return 0
