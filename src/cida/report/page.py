"""The report: one self-contained page made from the folders of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from string import Template

from cida.benchmarks.tables import Cells
from cida.report.along import accuracy_along
from cida.report.chapters import Chapter, Task, chapters_of
from cida.report.confusion import confusion_along
from cida.report.encodings import encodings
from cida.report.explorer import assets, explorer_section
from cida.report.headline import best_words, headline
from cida.report.losses import losses
from cida.report.palette import asset, page_style
from cida.report.parts import Part, listed, pictures, slug
from cida.report.predictions import predictions
from cida.report.repeat import repeat
from cida.report.runs import Run, Runs
from cida.report.svg import Chart
from cida.report.trust import (
    Asked,
    Certificates,
    certificate,
    certify_runs,
    doctor,
    expected,
    to_certify,
)
from cida.report.words import SIMULATED

__all__ = ["Page", "report_page"]

MOST_LINKS = 16
MOST_RUNS, FEW_RUNS = 60, 4  # in the explorer of a page's only task, and of one of several
MOST_EXPLORED = 5_000_000  # characters of all explorers of a page


@dataclass(frozen=True)
class Page:
    """The page, the charts and tables in it by the names of their files, and a few words on it."""

    html: str
    figures: Mapping[str, Chart]
    tables: Mapping[str, Sequence[Cells]]
    words: Sequence[str] = ()


@dataclass
class _Book:
    """What is gathered while the page is written."""

    body: list[str] = field(default_factory=list)
    contents: list[tuple[int, str, str]] = field(default_factory=list)
    figures: dict[str, Chart] = field(default_factory=dict)
    tables: dict[str, Sequence[Cells]] = field(default_factory=dict)
    places: set[str] = field(default_factory=set)
    explorers: int = 0  # how many characters they have

    def place(self, title: str) -> str:
        """A name in the page that no other place has."""
        name, number = slug(title), 1
        while name in self.places:
            number += 1
            name = f"{slug(title)}-{number}"
        self.places.add(name)
        return name

    def add(self, part: Part | None, level: int, before: str = "") -> None:
        """A section with its heading; ``before`` names the files of one task among several."""
        if part is None:
            return
        place = self.place(f"{before} {part.title}")
        self.contents.append((level, place, part.title))
        self.body.append(
            f'<section aria-labelledby="{place}"><h{level} id="{place}">{escape(part.title)}'
            f"</h{level}>{part.html}</section>"
        )
        start = f"{slug(before)}-" if before else ""
        self.figures |= {f"{start}{name}": chart for name, chart in part.figures.items()}
        self.tables |= {f"{start}{name}": cells for name, cells in part.tables.items()}

    def explore(self, task: Task, level: int, before: str, most: int) -> bool:
        """The explorer of a task, if it has views and the page has room for it."""
        titles = _shown_first(task)
        views = {m.title: m.views[0] for m in task.methods if m.views}
        chosen = [t for t in views if t in list(dict.fromkeys([*titles, *views]))[:most]]
        if not views:
            return True
        place = self.place(f"{before} Explorer")
        section = explorer_section({t: views[t] for t in chosen}, titles, place, level)
        if self.explorers and self.explorers + len(section) > MOST_EXPLORED:
            return False
        self.explorers += len(section)
        self.contents.append((level, place, "Explorer"))
        self.body.append(section)
        return True


def report_page(
    runs: Runs,
    title: str = "",
    certificates: Asked = "every",
    start: Callable[[int], None] = lambda count: None,
    watch: Callable[[Run], None] = lambda run: None,
) -> Page:
    """The report of these runs, grouped by experiment, task, method and seed.

    ``certificates`` of every method take seconds each; the few are those of the best method and the
    default. ``start`` hears how many there are to make, ``watch`` of each that is made.
    """
    chapters = chapters_of(runs)
    asked = to_certify(chapters, certificates)
    start(len(asked))
    known = certify_runs(asked, watch)
    book = _Book()
    for chapter in chapters:
        _write_chapter(book, chapter, known, alone=len(chapters) == 1)
    if book.explorers:
        book.body.append(assets())
    name = title or _title(chapters)
    page = Template(asset("page.html")).substitute(
        title=escape(name),
        lead=_lead(chapters, runs),
        contents=_contents(book),
        style=page_style(),
        body="\n".join(book.body),
        script=asset("page.js"),
    )
    return Page(page, book.figures, book.tables, _short_words(chapters, known))


def _title(chapters: Sequence[Chapter]) -> str:
    first = chapters[0]
    own = first.own_tables and len(first.tasks) == 1
    name = first.tasks[0].title if own else first.words.title
    return f"cida: {name}" + (" and more" if len(chapters) > 1 else "")


def _lead(chapters: Sequence[Chapter], runs: Runs) -> str:
    """What all is about; with several chapters each says it for itself."""
    parts = [_chapter_lead(chapters[0])] if len(chapters) == 1 else []
    if len(chapters) > 1:
        names = "; ".join(_chapter_name(chapter) for chapter in chapters)
        parts.append(f"<p class='lead'>{len(runs)} runs side by side: {escape(names)}.</p>")
    return "".join(parts) + listed(runs.left_out, "notice")


def _chapter_name(chapter: Chapter) -> str:
    preset = f", preset {chapter.preset}" if chapter.preset else ""
    return f"{chapter.words.title}{preset}"


def _chapter_lead(chapter: Chapter) -> str:
    best = best_words(chapter.tasks[0]) if len(chapter.tasks) == 1 else ""
    parts = [f"<p class='lead'>{escape(chapter.words.lead)} {best}</p>"]
    if chapter.simulated:
        parts.append(f"<p class='notice'>{escape(SIMULATED)}</p>")
    if chapter.own_tables:
        for run in chapter.runs:
            parts += [f"<p class='notice'>{escape(w)}</p>" for w in _told(run, "warnings")]
    return "".join(parts)


def _told(run: Run, name: str) -> list[str]:
    """The lines that a run of `cida fit` printed."""
    words = run.words.get("words")
    return [str(line) for line in words.get(name, ())] if isinstance(words, dict) else []


def _write_chapter(book: _Book, chapter: Chapter, known: Certificates, alone: bool) -> None:
    level = 2
    before = ""
    if not alone:
        before = _chapter_name(chapter)
        place = book.place(before)
        book.contents.append((2, place, before))
        book.body.append(f'<h2 id="{place}">{escape(before)}</h2>{_chapter_lead(chapter)}')
        level = 3
    book.add(headline(chapter), level, before)
    for task in chapter.tasks:
        if len(chapter.tasks) == 1:
            _write_task(book, chapter, task, known, level, before)
        else:
            place = book.place(f"{before} {task.title}")
            book.contents.append((level, place, task.title))
            best = best_words(task)
            book.body.append(f'<h{level} id="{place}">{escape(task.title)}</h{level}>')
            book.body.append(f"<p>{best}</p>" if best else "")
            name = f"{before} {task.name.rpartition('/')[2]}".strip()
            _write_task(book, chapter, task, known, level + 1, name)
    book.add(_pictures(chapter, level + 1), level, before)
    book.add(repeat(chapter), level, before)


def _write_task(
    book: _Book, chapter: Chapter, task: Task, known: Certificates, level: int, before: str
) -> None:
    # The only task of a page has all its runs in the explorer, one of several a few.
    explored = book.explore(task, level, before, MOST_RUNS if level == 2 else FEW_RUNS)
    if chapter.own_tables:
        book.add(_understood(task), level, before)
        book.add(predictions(task, level + 1), level, before)
    book.add(accuracy_along(task, level + 1), level, before)
    book.add(expected(task, level + 1), level, before)
    book.add(confusion_along(task, level + 1), level, before)
    book.add(certificate(task, known, level + 1), level, before)
    book.add(doctor(task), level, before)
    book.add(losses(task, level + 1), level, before)
    book.add(encodings(task, level + 1), level, before)
    book.body.append(_missing(task, explored))


def _shown_first(task: Task) -> list[str]:
    """The best, Source-Only or what stands for it, and the default or another."""
    by_key = {m.key: m for m in task.methods}
    others = [by_key[name] for name in ("default", "histogram") if name in by_key]
    chosen = [task.methods[0], task.main, *others, *(m for m in task.methods if not m.oracle)]
    return list(dict.fromkeys(m.title for m in chosen if m.views))[:3]


def _understood(task: Task) -> Part | None:
    """What was understood of a user's table, and what training came to, by run."""
    runs = [(method.title, method.runs[0]) for method in task.methods]
    alike = len({tuple(_told(run, "understood")) for _, run in runs}) == 1
    parts = [listed(_told(runs[0][1], "understood"))] if alike else []
    for title, run in runs:
        lines = [*([] if alike else _told(run, "understood")), *_told(run, "came_to")]
        name = f"<p><b>{escape(title)}</b></p>" if len(runs) > 1 else ""
        parts.append(name + listed(lines) if lines else "")
    return Part("What it came to", "".join(parts)) if any(parts) else None


def _missing(task: Task, explored: bool) -> str:
    """Which sections are not there, and why."""
    without = [m.title for m in task.methods if not m.views]
    told = []
    if not explored:
        told.append("No room for another explorer: make a report of this task's runs alone.")
    if without:
        told.append(
            f"Explorer, confusion, encodings and certificate are missing for {', '.join(without)}: "
            "these runs kept no view.safetensors; run them again to have them."
        )
    blind = [m.title for m in task.methods if m.views and all(v.z is None for v in m.views)]
    if blind:
        told.append(f"{', '.join(blind)}: these methods have no encoding to look at.")
    if not any(view.expected for m in task.methods for view in m.views):
        told.append(
            "No expected accuracy was kept with these runs: cida fit and cida reproduce --expected "
            "make it, and in Python model.expected_accuracy(X, y, domain_index=u)."
        )
    return listed(told, "soft missing")


def _pictures(chapter: Chapter, level: int) -> Part | None:
    if chapter.story is None or chapter.folder is None:
        return None
    found = chapter.story.drawn(chapter.folder)
    if not found:
        return None
    return Part("Figures of the experiment", pictures(found, chapter.words.figures, level))


def _contents(book: _Book) -> str:
    """Links to the sections; of a long page to its main parts alone."""
    deepest = 3 if len(book.contents) <= MOST_LINKS else 2
    items = "".join(
        f'<li><a href="#{place}">{escape(title)}</a></li>'
        for level, place, title in book.contents
        if level <= deepest
    )
    return f"<ul>{items}</ul>"


def _short_words(chapters: Sequence[Chapter], known: Certificates) -> list[str]:
    """The verdicts for a terminal: one line a method, and each fault once."""
    told = []
    for chapter in chapters:
        for task in chapter.tasks:
            for method in task.methods:
                run = method.runs[0]
                kept = run.words.get("trust")
                words = (
                    kept.get("certificate", [])
                    if isinstance(kept, dict)
                    else known.get(run.folder, [])
                )
                name = f"{method.title}: " if len(task.methods) > 1 else ""
                told += [f"{name}{words[0]}"] if words else []
                faults = dict.fromkeys(
                    str(finding)
                    for one in method.runs
                    for p in one.patients
                    for finding in p.findings
                )
                told += [f"{name}{fault}" for fault in faults]
    return told
