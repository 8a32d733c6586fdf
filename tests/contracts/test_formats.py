"""The JSON Schemas in docs/formats are those of the records."""

import importlib.util
import json
from pathlib import Path

import pytest

from cida.doctor import Diagnosis
from cida.doctor.diagnosis import Suggestion
from cida.runs.fit_record import DataSummary, FitFigures, FitRecord, RowSummary
from cida.runs.records import RunRecord
from cida.support import TargetSupport

FIT = FitRecord(
    DataSummary(
        label="outcome",
        n_classes=2,
        label_range=None,
        index_names=("age",),
        index_kinds=("number",),
        source=RowSummary(5, (20.0,), (50.0,)),
        target=RowSummary(5, (50.0,), (80.0,)),
    ),
    FitFigures("accuracy", 0.9, 0.5, 0.1, TargetSupport(1.0, 30.0)),
)
FORMATS = Path(__file__).parents[2] / "docs" / "formats"
SPEC = importlib.util.spec_from_file_location("make_schemas", FORMATS / "make_schemas.py")
make_schemas = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_schemas)


@pytest.mark.parametrize("name", make_schemas.RECORDS)
def test_a_schema_is_that_of_its_record(name):
    written = (FORMATS / f"{name}.schema.json").read_text()
    assert written == make_schemas.schema_text(name), "run python docs/formats/make_schemas.py"


def test_every_schema_is_listed_and_none_is_left_over():
    page = (FORMATS / "index.md").read_text()
    files = {path.name for path in FORMATS.glob("*.schema.json")}
    assert files == {f"{name}.schema.json" for name in make_schemas.RECORDS}
    assert all(f"({file})" in page for file in files)


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("run", RunRecord("circle", "cida", fit=FIT)),
        ("diagnosis", Diagnosis("lambda-too-large", {"x": 1.0}, Suggestion("lambda_d", 5.0, 1.0))),
    ],
)
def test_what_a_record_writes_has_the_fields_of_its_schema(name, record):
    schema = json.loads((FORMATS / f"{name}.schema.json").read_text())
    written = {key for key in json.loads(json.dumps(record.to_dict())) if key != "schema"}
    assert written <= set(schema["properties"])
    assert set(schema["required"]) <= written
