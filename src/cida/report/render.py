"""The report: one self-contained page made from the folders of runs."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from cida.report.blocks import Block, Figure, Html, Paragraph, Section, TextList, slugify
from cida.report.build import Chapter, Report, TaskView, group_runs
from cida.report.charts import Chart
from cida.report.explorer import render_assets, render_explorer_data, render_explorer_section
from cida.report.notices import SIMULATED_NOTICE
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
    certify_runs,
    select_runs_to_certify,
)
from cida.report.theme import COLORS, macro, read_static, render_chart_css, templates
from cida.runs.result_table import ResultTable
from cida.version import __version__

__all__ = ["GENERATOR", "Page", "render_report"]

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
    runs_to_certify = select_runs_to_certify(chapters, certificate_scope)
    on_start(len(runs_to_certify))
    report = Report(chapters, certify_runs(runs_to_certify, on_certificate))
    builder = _PageBuilder(report)
    for chapter in chapters:
        builder.add_chapter(chapter)
    if builder.explorer_chars:
        builder.body.append(render_assets())
    max_level = 3 if len(builder.contents) <= MAX_CONTENTS_LINKS else 2  # of a long page less
    html = (
        templates()
        .get_template("page.html")
        .render(
            generator=f"{GENERATOR} {__version__}",
            title=title or _title(chapters),
            lead=macro("all", _lead(chapters, runs), 2),
            contents=[entry for entry in builder.contents if entry[0] <= max_level],
            colors=COLORS,
            chart_css=render_chart_css(),
            static=read_static,
            body=builder.body,
        )
    )
    return Page(html, builder.figures, builder.tables, _terminal_verdicts(report))


@dataclass
class _PageBuilder:
    """What is gathered while the page is written."""

    report: Report
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

    def add_heading(self, title: str, level: int, prefix: str, blocks: Sequence[Block]) -> None:
        """The heading of a chapter or task, and what is said on all of it."""
        self.body.append(macro("heading", title, level, self.add_anchor(title, level, prefix)))
        self.body.append(macro("all", blocks, level))

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
            self.add_heading(chapter.name, 2, "", _chapter_lead(chapter))
            level, prefix = 3, chapter.name
        self.add(build_results_section(chapter), level, prefix)
        for task in chapter.tasks:
            if len(chapter.tasks) == 1:
                self.add_task(task, level, prefix)
            else:
                best = Html("lead", {"text": "", "task": task})
                self.add_heading(task.title, level, prefix, [best])
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
        self.body.append(TextList(_missing_sections(task, has_explorer), "soft missing").to_html(0))

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
        self.body.append(render_explorer_section(data, anchor, level))
        return True


def _title(chapters: Sequence[Chapter]) -> str:
    first = chapters[0]
    is_own = first.has_user_tables and len(first.tasks) == 1
    name = first.tasks[0].title if is_own else first.text.title
    return f"cida: {name}{' and more' if len(chapters) > 1 else ''}"


def _lead(chapters: Sequence[Chapter], runs: RunCollection) -> list[Block]:
    """What all is about; with several chapters each says it for itself."""
    skipped = [f"{f} is left out: it was cut short; run it again." for f in runs.incomplete_folders]
    names = "; ".join(chapter.name for chapter in chapters)
    summary = Paragraph(f"{len(runs)} runs side by side: {names}.", "lead")
    blocks = _chapter_lead(chapters[0]) if len(chapters) == 1 else [summary]
    return [*blocks, TextList(skipped, "notice")]


def _chapter_lead(chapter: Chapter) -> list[Block]:
    task = chapter.tasks[0] if len(chapter.tasks) == 1 else None
    notices = [SIMULATED_NOTICE] if chapter.is_simulated else []
    notices += [line for run in chapter.runs for line in run.messages("warnings")]
    lead = Html("lead", {"text": chapter.text.lead, "task": task})
    return [lead, *(Paragraph(notice, "notice") for notice in notices)]


def _shown_first(task: TaskView) -> list[str]:
    """The best, Source-Only or what stands for it, and the default or another."""
    by_key = {m.key: m for m in task.methods}
    usual = [by_key[name] for name in ("default", "histogram") if name in by_key]
    others = [m for m in task.methods if not m.is_oracle]
    candidates = [task.methods[0], task.main_method, *usual, *others]
    return list(dict.fromkeys(m.title for m in candidates if m.snapshots))[:3]


def _build_understood_section(report: Report, task: TaskView) -> Section | None:
    """What was understood of a user's table, and what training came to, by run."""
    runs = {method.title: method.runs[0] for method in task.methods}
    data = [run.messages("data") for run in runs.values()]
    is_shared = all(lines == data[0] for lines in data)
    blocks: list[Block] = [TextList(data[0])] if is_shared and data[0] else []
    for title, run in runs.items():
        lines = [*([] if is_shared else run.messages("data")), *run.messages("results")]
        if lines:
            blocks += [Html("bold", {"text": title})] if len(runs) > 1 else []
            blocks.append(TextList(lines))
    return Section("What it came to", blocks) if blocks else None


def _missing_sections(task: TaskView, has_explorer: bool) -> list[str]:
    """Which sections are not there, and why."""
    sentences = []
    if not has_explorer:
        sentences.append("No room for another explorer: make a report of this task's runs alone.")
    without_snapshot = ", ".join(m.title for m in task.methods if not m.snapshots)
    if without_snapshot:
        sentences.append(
            f"Explorer, confusion, encodings and certificate are missing for {without_snapshot}: "
            "these runs kept no view.safetensors; run them again to have them."
        )
    without_encoding = ", ".join(
        m.title for m in task.methods if m.snapshots and all(v.z is None for v in m.snapshots)
    )
    if without_encoding:
        sentences.append(f"{without_encoding}: these methods have no encoding to look at.")
    if not any(view.expected for m in task.methods for view in m.snapshots):
        sentences.append(
            "No expected accuracy was kept with these runs: cida fit and cida reproduce --expected "
            "make it, and in Python model.expected_score(X, y, domain_index=u)."
        )
    return sentences


def _build_figures_section(chapter: Chapter) -> Section | None:
    """Figures as images of their own, so that their styles do not meet the page's."""
    if chapter.manifest is None or chapter.folder is None:
        return None
    blocks: list[Block] = [Paragraph(chapter.text.figures_note)]
    for title, svg in chapter.manifest.read_figures(chapter.folder).items():
        data = b64encode(svg.encode()).decode()
        blocks.append(Figure(title, [Html("picture", {"title": title, "data": data})]))
    return Section("Figures of the experiment", blocks) if len(blocks) > 1 else None


def _terminal_verdicts(report: Report) -> list[str]:
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
