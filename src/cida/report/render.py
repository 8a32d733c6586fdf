"""The report: one self-contained page made from the folders of runs."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from cida.report.blocks import Html, Section, slugify
from cida.report.build import Chapter, ReportView, TaskView, group_runs
from cida.report.charts import Chart
from cida.report.explorer import render_explorer_data
from cida.report.runs import Run, RunCollection
from cida.report.sections.accuracy_section import build_accuracy_section
from cida.report.sections.confusion_section import build_confusion_section
from cida.report.sections.encodings_section import build_encodings_section
from cida.report.sections.losses_section import build_losses_section
from cida.report.sections.predictions_section import build_predictions_section
from cida.report.sections.provenance_section import build_provenance_section
from cida.report.sections.results_section import build_results_section
from cida.report.sections.trust_section import (
    CertificateScope,
    build_certificate_section,
    build_doctor_section,
    build_expected_score_section,
    certify_chapters,
)
from cida.report.theme import macro, templates
from cida.runs.result_table import ResultTable
from cida.version import __version__

GENERATOR = "cida"  # the first word of a report's meta tag of this name
MAX_CONTENTS_LINKS = 16
MAX_EXPLORER_RUNS_SINGLE_TASK = 60  # in the explorer of a page's only task
MAX_EXPLORER_RUNS_PER_TASK = 4  # and of one of several
MAX_EXPLORER_CHARS = 5_000_000  # characters of all explorers of a page


@dataclass(frozen=True)
class Page:
    """The page, the charts and tables in it by the names of their files, and a few words on it."""

    html: str
    figures: Mapping[str, Chart]
    tables: Mapping[str, ResultTable]
    verdicts: Sequence[str] = ()


def render_report(
    runs: RunCollection,
    title: str = "",
    certificate_scope: CertificateScope = "every",
    on_start: Callable[[int], None] = lambda count: None,
    on_certificate: Callable[[Run], None] = lambda run: None,
) -> Page:
    """The report of these runs, grouped by experiment, task, method and seed.

    Certificates of every method take seconds each; the few are those of the best method and the
    default. ``on_start`` hears how many there are to make, ``on_certificate`` of each that is made.
    """
    chapters = group_runs(runs)
    certificates = certify_chapters(chapters, certificate_scope, on_start, on_certificate)
    report = ReportView(chapters, certificates)
    builder = _PageBuilder(report)
    for chapter in chapters:
        builder.add_chapter(chapter)
    if builder.explorer_chars:
        builder.body.append(macro("explorer_assets"))
    max_level = 3 if len(builder.contents) <= MAX_CONTENTS_LINKS else 2  # of a long page less
    page = templates().get_template("page.html")
    html = page.render(
        generator=f"{GENERATOR} {__version__}",
        title=title or _title(chapters),
        lead=macro("page_lead", chapters, runs),
        contents=[entry for entry in builder.contents if entry[0] <= max_level],
        body=builder.body,
    )
    return Page(html, builder.figures, builder.tables, _terminal_verdicts(report))


@dataclass
class _PageBuilder:
    """What is gathered while the page is written."""

    report: ReportView
    body: list[Markup] = field(default_factory=list)
    contents: list[tuple[int, str, str]] = field(default_factory=list)  # level, anchor, title
    figures: dict[str, Chart] = field(default_factory=dict)
    tables: dict[str, ResultTable] = field(default_factory=dict)
    anchors: set[str] = field(default_factory=set)
    explorer_chars: int = 0  # how many characters they have

    def add_anchor(self, title: str, level: int, prefix: str = "") -> str:
        """A name in the page that no other place has, with an entry in its contents."""
        slug = slugify(f"{prefix} {title}")
        name, number = slug, 1
        while name in self.anchors:
            number += 1
            name = f"{slug}-{number}"
        self.anchors.add(name)
        self.contents.append((level, name, title))
        return name

    def add_heading(self, title: str, level: int, prefix: str, lead: Html) -> None:
        """The heading of a chapter or task, and what is said on all of it."""
        anchor = self.add_anchor(title, level, prefix)
        self.body.append(macro("titled", title, level, anchor, lead))

    def add(self, section: Section | None, level: int, prefix: str) -> None:
        """A section with its heading; ``prefix`` names the files of one task among several."""
        if section is None:
            return
        anchor = self.add_anchor(section.title, level, prefix)
        self.body.append(macro("Section", section, anchor, level))
        start = f"{slugify(prefix)}-" if prefix else ""
        self.figures |= {f"{start}{name}": chart for name, chart in section.figures.items()}
        self.tables |= {f"{start}{name}": table for name, table in section.tables.items()}

    def add_chapter(self, chapter: Chapter) -> None:
        """All of a chapter, below a heading where it is one of several."""
        level, prefix = 2, ""
        if len(self.report.chapters) > 1:
            self.add_heading(chapter.name, 2, "", Html("chapter_lead", chapter=chapter))
            level, prefix = 3, chapter.name
        self.add(build_results_section(chapter), level, prefix)
        for task in chapter.tasks:
            if len(chapter.tasks) == 1:
                self.add_task(task, level, prefix)
            else:
                self.add_heading(task.title, level, prefix, Html("best_method", task=task))
                task_prefix = f"{prefix} {task.name.rpartition('/')[2]}".strip()
                self.add_task(task, level + 1, task_prefix)
        self.add(_build_figures_section(chapter), level, prefix)
        self.add(build_provenance_section(chapter), level, prefix)

    def add_task(self, task: TaskView, level: int, prefix: str) -> None:
        """The explorer and all sections of a task."""
        has_explorer = self.add_explorer(task, level, prefix)
        for build_section in (
            _build_understood_section,
            build_predictions_section,
            build_accuracy_section,
            build_expected_score_section,
            build_confusion_section,
            build_certificate_section,
            build_doctor_section,
            build_losses_section,
            build_encodings_section,
        ):
            self.add(build_section(self.report, task), level, prefix)
        self.body.append(macro("missing_sections", task, has_explorer))

    def add_explorer(self, task: TaskView, level: int, prefix: str) -> bool:
        """The explorer of a task; False if it has views and the page has no room for them."""
        snapshots = {m.title: m.snapshots[0] for m in task.methods if m.snapshots}
        if not snapshots:
            return True
        # The only task of a page has all its runs in the explorer, one of several a few.
        max_runs = MAX_EXPLORER_RUNS_SINGLE_TASK if level == 2 else MAX_EXPLORER_RUNS_PER_TASK
        shown = _shown_first(task)
        kept = list(dict.fromkeys([*shown, *snapshots]))[:max_runs]
        explored = {title: view for title, view in snapshots.items() if title in kept}
        data = render_explorer_data(explored, shown)
        if self.explorer_chars and self.explorer_chars + len(data) > MAX_EXPLORER_CHARS:
            return False
        self.explorer_chars += len(data)
        anchor = self.add_anchor("Explorer", level, prefix)
        self.body.append(macro("explorer", level, anchor, data))
        return True


def _title(chapters: Sequence[Chapter]) -> str:
    first = chapters[0]
    is_own = first.has_user_tables and len(first.tasks) == 1
    name = first.tasks[0].title if is_own else first.text.title
    return f"cida: {name}{' and more' if len(chapters) > 1 else ''}"


def _shown_first(task: TaskView) -> list[str]:
    """The best, Source-Only or what stands for it, and the default or another."""
    by_key = {m.key: m for m in task.methods}
    usual = [by_key[name] for name in ("default", "histogram") if name in by_key]
    others = [m for m in task.methods if not m.is_oracle]
    candidates = [task.methods[0], task.main_method, *usual, *others]
    return list(dict.fromkeys(m.title for m in candidates if m.snapshots))[:3]


def _build_understood_section(report: ReportView, task: TaskView) -> Section | None:
    """What was understood of a user's table, and what training came to, by run."""
    runs = {method.title: method.runs[0] for method in task.methods}
    data = [run.fit_lines("data") for run in runs.values()]
    shared = data[0] if all(lines == data[0] for lines in data) else []
    lines_by_title = {
        title: [*([] if shared else run.fit_lines("data")), *run.fit_lines("results")]
        for title, run in runs.items()
    }
    if not shared and not any(lines_by_title.values()):
        return None
    block = Html("understood", shared=shared, lines_by_title=lines_by_title)
    return Section("What it came to", [block])


def _build_figures_section(chapter: Chapter) -> Section | None:
    if chapter.manifest is None or chapter.folder is None:
        return None
    figures = chapter.manifest.read_figures(chapter.folder)
    data = {title: b64encode(svg.encode()).decode() for title, svg in figures.items()}
    block = Html("pictures", note=chapter.text.figures_note, data_by_title=data)
    return Section("Figures of the experiment", [block]) if figures else None


def _terminal_verdicts(report: ReportView) -> list[str]:
    """The verdicts for a terminal: one line a method, and each fault once."""
    lines = []
    for task in (task for chapter in report.chapters for task in chapter.tasks):
        for method in task.methods:
            certificate = report.certificate(method.runs[0])
            told = [certificate.summary()[0]] if certificate is not None else []
            told += dict.fromkeys(str(d) for fitted in method.fitted_runs for d in fitted.diagnoses)
            name = f"{method.title}: " if len(task.methods) > 1 else ""
            lines += [f"{name}{text}" for text in told]
    return lines
