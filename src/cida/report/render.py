"""The report: one self-contained page made from the folders of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from string import Template

from cida.report.blocks import Section, render_images, render_list, slugify
from cida.report.build import Chapter, TaskView, group_runs
from cida.report.charts import Chart
from cida.report.explorer import render_assets, render_explorer_section
from cida.report.notices import SIMULATED_NOTICE
from cida.report.runs import Run, RunCollection
from cida.report.sections.accuracy_section import build_accuracy_section
from cida.report.sections.confusion_section import build_confusion_section
from cida.report.sections.encodings_section import build_encodings_section
from cida.report.sections.losses_section import build_losses_section
from cida.report.sections.predictions_section import build_predictions_section
from cida.report.sections.provenance_section import build_provenance_section
from cida.report.sections.results_section import build_results_section, render_best_method
from cida.report.sections.trust_section import (
    Certificates,
    CertificateScope,
    build_certificate_section,
    build_doctor_section,
    build_expected_score_section,
    certify_runs,
    run_certificate,
    select_runs_to_certify,
)
from cida.report.theme import read_asset, render_page_css
from cida.runs.result_table import ResultTable

__all__ = ["Page", "render_report"]

MAX_CONTENTS_LINKS = 16
MAX_EXPLORER_RUNS_SINGLE_TASK, MAX_EXPLORER_RUNS_PER_TASK = (
    60,
    4,
)  # in the explorer of a page's only task, and of one of several
MAX_EXPLORER_CHARS = 5_000_000  # characters of all explorers of a page


@dataclass(frozen=True)
class Page:
    """The page, the charts and tables in it by the names of their files, and a few words on it."""

    html: str
    figures: Mapping[str, Chart]
    tables: Mapping[str, ResultTable]
    verdicts: Sequence[str] = ()


@dataclass
class _PageBuilder:
    """What is gathered while the page is written."""

    body: list[str] = field(default_factory=list)
    contents: list[tuple[int, str, str]] = field(default_factory=list)
    figures: dict[str, Chart] = field(default_factory=dict)
    tables: dict[str, ResultTable] = field(default_factory=dict)
    anchors: set[str] = field(default_factory=set)
    explorer_chars: int = 0  # how many characters they have

    def new_anchor(self, title: str) -> str:
        """A name in the page that no other place has."""
        name, number = slugify(title), 1
        while name in self.anchors:
            number += 1
            name = f"{slugify(title)}-{number}"
        self.anchors.add(name)
        return name

    def add(self, section: Section | None, level: int, prefix: str = "") -> None:
        """A section with its heading; ``before`` names the files of one task among several."""
        if section is None:
            return
        anchor = self.new_anchor(f"{prefix} {section.title}")
        self.contents.append((level, anchor, section.title))
        self.body.append(
            f'<section aria-labelledby="{anchor}"><h{level} id="{anchor}">{escape(section.title)}'
            f"</h{level}>{section.html}</section>"
        )
        file_prefix = f"{slugify(prefix)}-" if prefix else ""
        self.figures |= {f"{file_prefix}{name}": chart for name, chart in section.figures.items()}
        self.tables |= {f"{file_prefix}{name}": cells for name, cells in section.tables.items()}

    def add_explorer(self, task: TaskView, level: int, prefix: str, max_runs: int) -> bool:
        """The explorer of a task, if it has views and the page has room for it."""
        shown_first = _shown_first(task)
        snapshots = {m.title: m.snapshots[0] for m in task.methods if m.snapshots}
        explored_titles = [
            t for t in snapshots if t in list(dict.fromkeys([*shown_first, *snapshots]))[:max_runs]
        ]
        if not snapshots:
            return True
        anchor = self.new_anchor(f"{prefix} Explorer")
        section = render_explorer_section(
            {t: snapshots[t] for t in explored_titles}, shown_first, anchor, level
        )
        if self.explorer_chars and self.explorer_chars + len(section) > MAX_EXPLORER_CHARS:
            return False
        self.explorer_chars += len(section)
        self.contents.append((level, anchor, "Explorer"))
        self.body.append(section)
        return True


def render_report(
    runs: RunCollection,
    title: str = "",
    certificate_scope: CertificateScope = "every",
    on_start: Callable[[int], None] = lambda count: None,
    on_certificate: Callable[[Run], None] = lambda run: None,
) -> Page:
    """The report of these runs, grouped by experiment, task, method and seed.

    ``certificates`` of every method take seconds each; the few are those of the best method and the
    default. ``start`` hears how many there are to make, ``watch`` of each that is made.
    """
    chapters = group_runs(runs)
    runs_to_certify = select_runs_to_certify(chapters, certificate_scope)
    on_start(len(runs_to_certify))
    certificates = certify_runs(runs_to_certify, on_certificate)
    builder = _PageBuilder()
    for chapter in chapters:
        _write_chapter(builder, chapter, certificates, is_only_chapter=len(chapters) == 1)
    if builder.explorer_chars:
        builder.body.append(render_assets())
    name = title or _title(chapters)
    page = Template(read_asset("page.html")).substitute(
        title=escape(name),
        lead=_lead(chapters, runs),
        contents=_render_contents(builder),
        style=render_page_css(),
        body="\n".join(builder.body),
        script=read_asset("page.js"),
    )
    return Page(page, builder.figures, builder.tables, _terminal_verdicts(chapters, certificates))


def _title(chapters: Sequence[Chapter]) -> str:
    first = chapters[0]
    own = first.has_user_tables and len(first.tasks) == 1
    name = first.tasks[0].title if own else first.text.title
    return f"cida: {name}" + (" and more" if len(chapters) > 1 else "")


def _lead(chapters: Sequence[Chapter], runs: RunCollection) -> str:
    """What all is about; with several chapters each says it for itself."""
    parts = [_chapter_lead(chapters[0])] if len(chapters) == 1 else []
    if len(chapters) > 1:
        names = "; ".join(_chapter_name(chapter) for chapter in chapters)
        parts.append(f"<p class='lead'>{len(runs)} runs side by side: {escape(names)}.</p>")
    return "".join(parts) + render_list(_skip_messages(runs), "notice")


def _skip_messages(runs: RunCollection) -> list[str]:
    folders = runs.incomplete_folders
    return [f"{folder} is left out: it was cut short; run it again." for folder in folders]


def _chapter_name(chapter: Chapter) -> str:
    preset = f", preset {chapter.preset}" if chapter.preset else ""
    return f"{chapter.text.title}{preset}"


def _chapter_lead(chapter: Chapter) -> str:
    best = render_best_method(chapter.tasks[0]) if len(chapter.tasks) == 1 else ""
    parts = [f"<p class='lead'>{escape(chapter.text.lead)} {best}</p>"]
    if chapter.is_simulated:
        parts.append(f"<p class='notice'>{escape(SIMULATED_NOTICE)}</p>")
    if chapter.has_user_tables:
        for run in chapter.runs:
            parts += [f"<p class='notice'>{escape(w)}</p>" for w in _messages(run, "warnings")]
    return "".join(parts)


def _messages(run: Run, name: str) -> list[str]:
    """The lines that a run of `cida fit` printed."""
    return [] if run.record.fit is None else run.record.fit.messages.get(name, [])


def _write_chapter(
    builder: _PageBuilder,
    chapter: Chapter,
    certificates: Certificates,
    is_only_chapter: bool,
) -> None:
    level = 2
    prefix = ""
    if not is_only_chapter:
        prefix = _chapter_name(chapter)
        anchor = builder.new_anchor(prefix)
        builder.contents.append((2, anchor, prefix))
        builder.body.append(f'<h2 id="{anchor}">{escape(prefix)}</h2>{_chapter_lead(chapter)}')
        level = 3
    builder.add(build_results_section(chapter), level, prefix)
    for task in chapter.tasks:
        if len(chapter.tasks) == 1:
            _write_task(builder, chapter, task, certificates, level, prefix)
        else:
            anchor = builder.new_anchor(f"{prefix} {task.title}")
            builder.contents.append((level, anchor, task.title))
            best = render_best_method(task)
            builder.body.append(f'<h{level} id="{anchor}">{escape(task.title)}</h{level}>')
            builder.body.append(f"<p>{best}</p>" if best else "")
            name = f"{prefix} {task.name.rpartition('/')[2]}".strip()
            _write_task(builder, chapter, task, certificates, level + 1, name)
    builder.add(_build_figures_section(chapter, level + 1), level, prefix)
    builder.add(build_provenance_section(chapter), level, prefix)


def _write_task(
    builder: _PageBuilder,
    chapter: Chapter,
    task: TaskView,
    certificates: Certificates,
    level: int,
    prefix: str,
) -> None:
    # The only task of a page has all its runs in the explorer, one of several a few.
    has_explorer = builder.add_explorer(
        task,
        level,
        prefix,
        MAX_EXPLORER_RUNS_SINGLE_TASK if level == 2 else MAX_EXPLORER_RUNS_PER_TASK,
    )
    if chapter.has_user_tables:
        builder.add(_build_understood_section(task), level, prefix)
        builder.add(build_predictions_section(task, level + 1), level, prefix)
    builder.add(build_accuracy_section(task, level + 1), level, prefix)
    builder.add(build_expected_score_section(task, level + 1), level, prefix)
    builder.add(build_confusion_section(task, level + 1), level, prefix)
    builder.add(build_certificate_section(task, certificates, level + 1), level, prefix)
    builder.add(build_doctor_section(task), level, prefix)
    builder.add(build_losses_section(task, level + 1), level, prefix)
    builder.add(build_encodings_section(task, level + 1), level, prefix)
    builder.body.append(_render_missing_sections(task, has_explorer))


def _shown_first(task: TaskView) -> list[str]:
    """The best, Source-Only or what stands for it, and the default or another."""
    by_key = {m.key: m for m in task.methods}
    others = [by_key[name] for name in ("default", "histogram") if name in by_key]
    candidates = [
        task.methods[0],
        task.main_method,
        *others,
        *(m for m in task.methods if not m.is_oracle),
    ]
    return list(dict.fromkeys(m.title for m in candidates if m.snapshots))[:3]


def _build_understood_section(task: TaskView) -> Section | None:
    """What was understood of a user's table, and what training came to, by run."""
    runs = [(method.title, method.runs[0]) for method in task.methods]
    is_shared = len({tuple(_messages(run, "data")) for _, run in runs}) == 1
    parts = [render_list(_messages(runs[0][1], "data"))] if is_shared else []
    for title, run in runs:
        lines = [
            *([] if is_shared else _messages(run, "data")),
            *_messages(run, "results"),
        ]
        name = f"<p><b>{escape(title)}</b></p>" if len(runs) > 1 else ""
        parts.append(name + render_list(lines) if lines else "")
    return Section("What it came to", "".join(parts)) if any(parts) else None


def _render_missing_sections(task: TaskView, has_explorer: bool) -> str:
    """Which sections are not there, and why."""
    without_snapshot = [m.title for m in task.methods if not m.snapshots]
    sentences = []
    if not has_explorer:
        sentences.append("No room for another explorer: make a report of this task's runs alone.")
    if without_snapshot:
        sentences.append(
            "Explorer, confusion, encodings and certificate are missing for "
            f"{', '.join(without_snapshot)}: "
            "these runs kept no view.safetensors; run them again to have them."
        )
    without_encoding = [
        m.title for m in task.methods if m.snapshots and all(v.z is None for v in m.snapshots)
    ]
    if without_encoding:
        sentences.append(
            f"{', '.join(without_encoding)}: these methods have no encoding to look at."
        )
    if not any(view.expected for m in task.methods for view in m.snapshots):
        sentences.append(
            "No expected accuracy was kept with these runs: cida fit and cida reproduce --expected "
            "make it, and in Python model.expected_score(X, y, domain_index=u)."
        )
    return render_list(sentences, "soft missing")


def _build_figures_section(chapter: Chapter, level: int) -> Section | None:
    if chapter.manifest is None or chapter.folder is None:
        return None
    figures = chapter.manifest.read_figures(chapter.folder)
    if not figures:
        return None
    return Section(
        "Figures of the experiment", render_images(figures, chapter.text.figures_note, level)
    )


def _render_contents(builder: _PageBuilder) -> str:
    """Links to the sections; of a long page to its main parts alone."""
    max_level = 3 if len(builder.contents) <= MAX_CONTENTS_LINKS else 2
    items = "".join(
        f'<li><a href="#{place}">{escape(title)}</a></li>'
        for level, place, title in builder.contents
        if level <= max_level
    )
    return f"<ul>{items}</ul>"


def _terminal_verdicts(chapters: Sequence[Chapter], certificates: Certificates) -> list[str]:
    """The verdicts for a terminal: one line a method, and each fault once."""
    lines = []
    for chapter in chapters:
        for task in chapter.tasks:
            for method in task.methods:
                run = method.runs[0]
                certificate = run_certificate(run, certificates)
                name = f"{method.title}: " if len(task.methods) > 1 else ""
                lines += [f"{name}{certificate.summary()[0]}"] if certificate is not None else []
                faults = dict.fromkeys(
                    str(finding)
                    for one in method.runs
                    for p in one.fitted_runs
                    for finding in p.diagnoses
                )
                lines += [f"{name}{fault}" for fault in faults]
    return lines
