"""One call of the bench: what is chosen, measured work by work, saved after each, and told in the end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench import front_page, machine, plots, records, report
from bench.figures import Figure, number
from bench.progress import Display, steps
from bench.records import Record, Run, Stated
from bench.running import BesidePeer, Outcome, Sealane, System, measure_beside
from bench.work import Work
from bench.works import BESIDE_PEERS, GROUPS, WORKS

if TYPE_CHECKING:
    from bench.peers.peer import Peer


@dataclass(frozen=True, slots=True)
class Choice:
    """What a call asks for."""

    works: Sequence[Work]
    peers: Sequence[str] | None
    """Names of peers; empty for all of them, None for none."""
    rounds: int
    quick: bool
    directory: Path
    results: Path
    command: str


def chosen_works(names: Iterable[str]) -> list[Work]:
    """Works by their names and groups, each once; `peers` stands for what peers do too. An unknown name raises."""
    chosen: dict[str, Work] = {}
    for name in names:
        if name == report.PEERS:
            some = list(BESIDE_PEERS)
        elif name in GROUPS:
            some = [work for work in WORKS.values() if work.group == name]
        else:
            some = [WORKS[name]]
        chosen |= {work.name: work for work in some}
    return list(chosen.values())


def run(choice: Choice, console: Console) -> int:
    """Measure, save, tell. The exit code: 1 if anything failed that could have been measured."""
    present, stated = _peers(choice, console)
    moment = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    stated = [replace(each, run=moment) for each in stated]
    this = Run(moment, choice.command, machine.facts(choice.directory))
    systems: list[System] = [Sealane(choice.directory), *(BesidePeer(peer, choice.directory) for peer in present)]
    works = _possible(choice.works, console)
    failed = False
    begun = time.monotonic()
    with Display(console, steps(works, systems, choice.rounds), rounds=choice.rounds, quick=choice.quick) as display:
        for work in works:
            outcome = measure_beside(
                work, systems, rounds=choice.rounds, quick=choice.quick, run=moment, watcher=display
            )
            _save(choice.results, work, this, stated if work.beside else [], outcome)
            _tell(console, outcome)
            failed = failed or bool(outcome.failures)
    console.print(f"measured in {timedelta(seconds=round(time.monotonic() - begun))}")
    write_pages(choice.results, console)
    return 1 if failed else 0


def write_pages(directory: Path, console: Console) -> None:
    """Tables and plots of all that is known, whenever it was measured."""
    results = report.read(directory, WORKS)
    drawn = []
    if problem := plots.available():
        console.print(problem)
    else:
        drawn = plots.draw_all(directory, results)
    report.write_groups(directory, results)
    console.print(f"written to {front_page.write(directory, results, drawn)}")


def overview() -> Table:
    """All works: what they are called, what they measure, what is asked of them."""
    table = Table(title="What can be measured: names and groups for --only", title_justify="left")
    for column in ("group", "name", "what", "reach", "rounds"):
        table.add_column(column, no_wrap=column in ("group", "name"))
    for work in WORKS.values():
        beside = " (peers too)" if work.beside is not None else ""
        asked = "\n".join(_asked(work)) or "–"
        rounds = f"≤ {work.rounds_max}" if work.rounds_max < 100 else ""
        rounds += "" if work.in_quick else ", not in --quick"
        table.add_row(work.group, work.name, work.title + beside, asked, rounds)
    return table


def _asked(work: Work) -> list[str]:
    lines = []
    for part in work.parts:
        if part.reach is not None:
            lines.append(f"{part.name} {'≤' if part.less_is_better else '≥'} {number(part.reach)} {part.unit}")
        if part.ratio_reach is not None:
            lines.append(f"{part.name} ≥ {part.ratio_reach:g} × the best durable peer")
    return lines


def _possible(works: Iterable[Work], console: Console) -> list[Work]:
    """Those that can be measured here; of the others it is said what they need."""
    missing = {work.name: work.missing() for work in works}
    for line in dict.fromkeys(filter(None, missing.values())):
        console.print(f"[yellow]skipped[/] {escape(line)}")
    return [work for work in works if missing[work.name] is None]


def _peers(choice: Choice, console: Console) -> tuple[list[Peer], list[Stated]]:
    """The peers that can run here, and what all that were asked for say of themselves."""
    if choice.peers is None or not any(work.beside for work in choice.works):
        return [], []
    from bench.peers import PEERS

    present, stated = [], []
    for peer in PEERS:
        if peer.name not in choice.peers if choice.peers else choice.quick and not peer.in_quick:
            continue
        with console.status(f"looking for {peer.title} …"):
            missing = peer.missing()
            versions = {} if missing else peer.versions()
        if missing:
            console.print(f"[yellow]skipped[/] {escape(missing)}")
        else:
            present.append(peer)
        stated.append(Stated(peer.name, peer.title, peer.durable, peer.durability, peer.settings, versions, missing))
    return present, stated


def _save(directory: Path, work: Work, this: Run, stated: Sequence[Stated], outcome: Outcome) -> None:
    """After each work, so that a run that is broken off leaves what it has measured."""
    news: dict[str, Record] = {}

    def of(group: str) -> Record:
        return news.setdefault(group, Record({this.moment: this}))

    for figure in outcome.figures:
        of(report.file_of(figure.system, work)).figures.append(figure)
    for failure in outcome.failures:
        of(report.file_of(failure.system, work)).failures.append(failure)
    if stated:
        of(report.PEERS).systems.extend(stated)
    for group, record in news.items():
        path = directory / f"{group}.json"
        records.write(path, records.read(path).without_unknown(WORKS).with_news(record))


def _tell(console: Console, outcome: Outcome) -> None:
    for figure in outcome.figures:
        console.print(_line(figure), highlight=False)
    for failure in outcome.failures:
        console.print(f"[red]failed[/] {failure.work} on {failure.system}: {escape(report.in_a_line(failure.error))}")


def _line(figure: Figure) -> str:
    mark = {None: " ", True: "[green]✓[/]", False: "[red]✗[/]"}[figure.reached]
    asked = f" ({report.reach(figure)})" if figure.reach is not None else ""
    on = "" if figure.is_sealane else f"{figure.system}: "
    foreign = f", foreign CPU {max(figure.foreign):.0%}" if figure.foreign else ""
    return f"{mark} {on}{escape(figure.name)}: [bold]{number(figure.value)}[/] {figure.unit}{asked}{foreign}"
