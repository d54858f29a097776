"""The tables that people read, made anew from all raw numbers that `bench/results` has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import records
from bench.figures import SEALANE, Figure, number
from bench.ratios import Ratio, best_durable, ratio
from bench.records import Record, Stated
from bench.work import Work

PEERS = "peers"
"""The group that has what was measured on the peers."""

OURS = Stated(
    SEALANE,
    "Sealane",
    True,
    "fdatasync before each acknowledgement, of publishes and of acks, everything sealed (AES-GCM)",
    "everything at its default; the batches that each table names, 16 of them on their way, 48 of the small ones, "
    "12 MiB at most; uvloop",
    {},
)

DISTURBED = 0.05
"""With more foreign processor time than this, a figure is marked."""


@dataclass(frozen=True, slots=True)
class Results:
    """All that is known, by group."""

    works: dict[str, Work]
    groups: dict[str, Record]

    @property
    def figures(self) -> list[Figure]:
        """In the order of the works and their parts, Sealane before the peers."""
        order = {(work.name, part.name): None for work in self.works.values() for part in work.parts}
        places = {key: place for place, key in enumerate(order)}
        found = [figure for record in self.groups.values() for figure in record.figures]
        found = [figure for figure in found if (figure.work, figure.part) in places]
        return sorted(found, key=lambda each: (places[each.work, each.part], not each.is_sealane, each.system))

    @property
    def peers(self) -> list[Stated]:
        return sorted(self.groups.get(PEERS, Record()).systems, key=lambda each: each.title)

    def of(self, work: str, part: str) -> list[Figure]:
        return [figure for figure in self.figures if (figure.work, figure.part) == (work, part)]

    def one(self, work: str, part: str, system: str = SEALANE) -> Figure | None:
        return next((figure for figure in self.of(work, part) if figure.system == system), None)

    def ratios(self) -> list[tuple[Ratio, float]]:
        """Sealane beside the best durable peer, and what is asked, for each part that asks for it."""
        found = []
        for work in self.works.values():
            for part in work.parts:
                ours, best = self.one(work.name, part.name), best_durable(self.of(work.name, part.name), self.peers)
                if part.ratio_reach is not None and ours is not None and best is not None:
                    found.append((ratio(ours, best), part.ratio_reach))
        return found


def file_of(figure_system: str, work: Work) -> str:
    """The group whose file has what was measured of a work on a system."""
    return work.group if figure_system == SEALANE else PEERS


def read(directory: Path, works: dict[str, Work]) -> Results:
    """All raw numbers of a directory, of works that there still are."""
    groups = [*dict.fromkeys(work.group for work in works.values()), PEERS]
    found = {group: records.read(directory / f"{group}.json").without_unknown(works) for group in groups}
    return Results(works, {group: record for group, record in found.items() if record.runs})


def write_groups(directory: Path, results: Results) -> list[Path]:
    """A page for each group."""
    pages = []
    for group, record in results.groups.items():
        page = directory / f"{group}.md"
        figures = [figure for figure in results.figures if figure in record.figures]
        lines = [f"# {group}", ""]
        lines += figure_table(figures, titles(results.peers))
        lines += failure_lines(record, titles(results.peers))
        lines += ["", *run_table(record), "", *machine_table(record)]
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
        pages.append(page)
    return pages


def titles(systems: Iterable[Stated]) -> dict[str, str]:
    return {SEALANE: OURS.title} | {each.name: each.title for each in systems}


def figure_table(figures: Sequence[Figure], names: dict[str, str]) -> list[str]:
    """Every figure with its rounds; the system only where there is more than Sealane."""
    has_peers = any(not figure.is_sealane for figure in figures)
    columns = ["what", *(["on"] if has_peers else []), "figure", "reach", "", "rounds", "foreign CPU", "measured (UTC)"]
    rows = []
    for figure in figures:
        notes = "".join(f"; {key} {value}" for key, value in figure.notes.items())
        rows.append(
            [
                figure.name,
                *([names.get(figure.system, figure.system)] if has_peers else []),
                f"{number(figure.value)} {figure.unit}",
                reach(figure),
                verdict(figure.reached),
                ", ".join(number(value) for value in figure.rounds) + notes,
                disturbance(figure.foreign),
                figure.run,
            ]
        )
    return table(columns, rows)


def run_table(record: Record) -> list[str]:
    rows = [
        [
            run.moment,
            f"`{run.command}`",
            run.machine.get("sealane's revision", ""),
            run.machine.get("sync of 1.2 KB", ""),
        ]
        for run in sorted(record.runs.values(), key=lambda run: run.moment)
    ]
    return table(["measured (UTC)", "by", "revision", "sync of 1.2 KB, the disk alone"], rows)


def machine_table(record: Record) -> list[str]:
    """The machine of the latest run."""
    latest = record.runs[max(record.runs)]
    return table(["machine", ""], [[key, value] for key, value in latest.machine.items()])


def failure_lines(record: Record, names: dict[str, str]) -> list[str]:
    lines = [
        f"- {each.work} on {names.get(each.system, each.system)}, {each.run}: {in_a_line(each.error)}"
        for each in record.failures
    ]
    lines += [f"- {each.title} was skipped: {in_a_line(each.missing)}" for each in record.systems if each.missing]
    return ["", "Not measured:", "", *lines] if lines else []


def reach(figure: Figure) -> str:
    return "" if figure.reach is None else f"{'≤' if figure.less_is_better else '≥'} {number(figure.reach)}"


def verdict(reached: bool | None) -> str:
    return {None: "", True: "reached", False: "**short**"}[reached]


def disturbance(foreign: Sequence[float]) -> str:
    """The least and the most share of any round, marked where it is too much to believe the figure."""
    if not foreign:
        return ""
    low, high = f"{min(foreign):.0%}", f"{max(foreign):.0%}"
    told = high if low == high else f"{low} to {high}"
    return f"**{told}**" if max(foreign) > DISTURBED else told


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(columns), "|" + "---|" * len(columns), *map(line, rows)]


def in_a_line(text: str) -> str:
    """What an error says first and last, which is where a process that ended badly says why."""
    lines = [line.strip()[:300] for line in text.splitlines() if line.strip()]
    return " … ".join(dict.fromkeys([*lines[:1], *lines[-1:]]))
