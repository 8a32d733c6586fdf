"""Runs read from their folders, and put in order."""

import json
import shutil

import pytest

from cida.report import read_runs
from cida.report.build import group_runs


def test_a_folder_holds_runs_at_any_depth(circle_folder, tmp_path):
    shutil.copytree(circle_folder, tmp_path / "deep/er")
    assert len(read_runs([tmp_path])) == 6
    (run,) = read_runs([tmp_path / "deep/er/cida-seed100"])
    assert (run.method, run.title, run.seed) == ("cida", "CIDA (L2)", 100)
    assert run.result.seed == 100
    assert run.fitted_run.history[-1].step == 25
    assert run.snapshot.z.shape[0] == len(run.snapshot.u)


def test_a_run_named_twice_is_there_once(circle_folder):
    once = circle_folder / "cida-seed100"
    runs = read_runs([once, circle_folder, once / ".." / once.name])
    assert len(runs) == 6
    assert runs.runs[0].folder == once


def test_methods_are_in_the_tables_order_and_seeds_together(circle_runs):
    (chapter,) = group_runs(circle_runs)
    (task,) = chapter.tasks
    assert [m.key for m in task.methods] == ["source-only", "cida", "histogram"]
    assert [[run.seed for run in m.runs] for m in task.methods] == [[100, 101]] * 3
    assert (chapter.experiment, chapter.preset, task.name) == ("circle", "demo", "circle")


def test_runs_of_one_table_are_methods_of_one_task(ward_folder, tmp_path):
    shutil.copytree(ward_folder, tmp_path / "other")
    (chapter,) = group_runs(read_runs([ward_folder, tmp_path / "other"]))
    (task,) = chapter.tasks
    assert task.title == "outcome along hour"
    assert [m.title for m in task.methods] == ["run (auto)", "other (auto)"]
    assert len({m.key for m in task.methods}) == 2


def as_source_only(folder):
    words = json.loads((folder / "run.json").read_text())
    words["method"] = "source-only"
    (folder / "run.json").write_text(json.dumps(words))


def test_runs_of_ones_own_tables_keep_the_order_they_are_named_in(ward_folder, tmp_path):
    plain = tmp_path / "plain"
    shutil.copytree(ward_folder, plain)
    as_source_only(plain)
    named = {ward_folder: "run (auto)", plain: "plain (source-only)"}
    for order in ([ward_folder, plain], [plain, ward_folder]):
        (chapter,) = group_runs(read_runs(order))
        assert [m.title for m in chapter.tasks[0].methods] == [named[path] for path in order]


def test_folders_of_one_name_are_told_apart_by_those_they_lie_in(ward_folder, tmp_path):
    places = [tmp_path / name for name in ("a/x", "a/y", "b/x")]
    for place in places:
        shutil.copytree(ward_folder, place)

    def titles(folders):
        (chapter,) = group_runs(read_runs(folders))
        return [m.title for m in chapter.tasks[0].methods]

    assert titles([places[0], places[2]]) == ["a (auto)", "b (auto)"]
    assert titles(places) == ["a/x (auto)", "a/y (auto)", "b/x (auto)"]


def test_recipes_of_one_name_that_differ_are_told_apart_by_their_folders(circle_folder, tmp_path):
    long = tmp_path / "long"
    shutil.copytree(circle_folder / "cida-seed100", long / "cida-seed100")
    words = json.loads((long / "cida-seed100/run.json").read_text())
    words["settings"]["steps"] = 9999
    (long / "cida-seed100/run.json").write_text(json.dumps(words))
    (chapter,) = group_runs(read_runs([circle_folder, long]))
    titles = [m.title for m in chapter.tasks[0].methods]
    assert titles[1:3] == [f"CIDA (L2) ({circle_folder.name})", "CIDA (L2) (long)"]


def test_the_same_seed_twice_is_refused(circle_folder, tmp_path):
    shutil.copytree(circle_folder / "cida-seed100", tmp_path / "again")
    with pytest.raises(ValueError, match=r"seed 100 of CIDA \(L2\) twice, in .*; leave one out"):
        group_runs(read_runs([circle_folder, tmp_path / "again"]))


def test_a_story_is_told_of_all_its_runs_or_not_at_all(circle_folder):
    (whole,) = group_runs(read_runs([circle_folder]))
    assert whole.manifest.command == "cida demo --seeds 2"
    assert whole.manifest.read_figures(circle_folder) == {"A <title>": "<svg>picture</svg>"}
    (part,) = group_runs(read_runs([circle_folder / "cida-seed100"]))
    assert part.manifest is None


def test_simulated_people_are_so_also_in_a_report_of_one_run(circle_folder, tmp_path):
    shutil.copytree(circle_folder, tmp_path / "all")
    assert not group_runs(read_runs([tmp_path / "all/cida-seed100"]))[0].is_simulated
    record = tmp_path / "all/cida-seed100/run.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "is_simulated": True}))
    assert group_runs(read_runs([tmp_path / "all/cida-seed100"]))[0].is_simulated


def test_an_older_run_without_a_view_is_read(circle_folder, tmp_path):
    shutil.copytree(circle_folder / "cida-seed100", tmp_path / "old")
    (tmp_path / "old/snapshot.safetensors").unlink()
    words = json.loads((tmp_path / "old/run.json").read_text())
    (tmp_path / "old/run.json").write_text(
        json.dumps({k: v for k, v in words.items() if k not in ("origin", "title")})
    )
    (run,) = read_runs([tmp_path / "old"])
    assert run.snapshot is None
    assert (run.task, run.title, run.command) == ("circle", "cida", "")


def test_a_run_that_was_cut_short_is_left_out_and_named(circle_folder, tmp_path):
    shutil.copytree(circle_folder, tmp_path / "all")
    (tmp_path / "all/cida-seed101/result.json").unlink()
    runs = read_runs([tmp_path / "all"])
    assert len(runs) == 5
    assert [path.name for path in runs.incomplete_folders] == ["cida-seed101"]
    with pytest.raises(ValueError, match="was cut short; run it again"):
        read_runs([tmp_path / "all/cida-seed101"])


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("run.json", "{", "run.json cannot be read"),
        ("run.json", "[]", "run.json is not as cida writes it"),
        ("result.json", "{}", "result.json is damaged"),
        ("result.json", "nonsense", "result.json is damaged"),
        ("events.jsonl", '{"step": "one"}\n', "damaged in line 1"),
        ("model.safetensors", "nonsense", "is damaged or cut short"),
        ("snapshot.safetensors", "nonsense", "is damaged or cut short"),
    ],
)
def test_a_damaged_file_is_one_sentence_that_names_it(
    circle_folder, tmp_path, file, content, words
):
    shutil.copytree(circle_folder / "cida-seed100", tmp_path / "run")
    (tmp_path / "run" / file).write_text(content)
    with pytest.raises(ValueError, match=words) as caught:
        read_runs([tmp_path / "run"])
    assert file in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_story_is_one_sentence(circle_folder, tmp_path):
    shutil.copytree(circle_folder, tmp_path / "all")
    (tmp_path / "all/manifest.json").write_text('{"schema": 1, "nonsense": 2}')
    with pytest.raises(ValueError, match=r"manifest\.json is damaged"):
        group_runs(read_runs([tmp_path / "all"]))


def test_where_there_is_nothing_one_sentence_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match="which is not there"):
        read_runs([tmp_path / "nowhere"])
    with pytest.raises(FileNotFoundError, match="which is no folder"):
        read_runs([tmp_path / "file"])
    with pytest.raises(ValueError, match=r"has no run\.json"):
        read_runs([tmp_path])
    with pytest.raises(ValueError, match="RUN is missing"):
        read_runs([])
