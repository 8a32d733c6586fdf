"""Your own table: from columns to predictions where there are no labels, in a Pipeline.

    python examples/own_table.py

A hospital knows the outcome of its patients up to the age of 50 and wants it up to 90. The table is
made here, so that the answer is known. Numbers with missing values, categories and booleans go
through a `ColumnTransformer`; the age goes to the model beside them, as the index.
"""

# %% A table: what is measured drifts with age, and so does what is normal.
import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cida import CIDAClassifier

rng = np.random.default_rng(0)
rows = 3000
age = rng.integers(18, 91, rows)
ill = rng.random(rows) < 0.5
table = pd.DataFrame(
    {
        "age": age,
        "pressure": 100 + 0.5 * age + 9 * ill + rng.normal(0, 5, rows),
        "pulse": 60 + 0.3 * age + 6 * ill + rng.normal(0, 5, rows),
        "glucose": 80 + 0.4 * age + rng.normal(0, 8, rows),
        "smoker": rng.random(rows) < 0.3,
        "ward": rng.choice(["north", "south", "west"], rows),
    }
)
table.loc[rng.random(rows) < 0.1, "pulse"] = np.nan
truth = np.where(ill, "ill", "well")
outcome = np.where(age <= 50, truth, None)  # None: not known
print(table.head().to_string(), end="\n\n")

# %% Columns to numbers. Holes get an indicator, and no label is looked at.
numbers = ["pressure", "pulse", "glucose", "smoker"]
columns = ColumnTransformer(
    [
        (
            "numbers",
            make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler()),
            numbers,
        ),
        ("wards", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["ward"]),
    ]
)


# %% The model last. With metadata routing on, the index finds its way to it through the pipeline.
def pipeline(**settings):
    model = CIDAClassifier(steps=1000, random_state=0, **settings)
    return Pipeline([("columns", columns), ("model", model)])


target = age > 50
with sklearn.config_context(enable_metadata_routing=True):
    for title, settings in {
        "Source-Only, age unseen": {"discriminator": None, "coordinates": "raw"},
        "Default": {},
    }.items():
        fitted = pipeline(**settings).fit(table, outcome, domain_index=table["age"])
        found = fitted.predict(table[target], domain_index=table["age"][target])
        print(f"{title:<24} {accuracy_score(truth[target], found):.1%} right above 50")

# %% The same from the command line, with no line of Python. An empty outcome is the target:
#
#     table.assign(outcome=outcome).to_csv("patients.csv", index=False)
#
#     cida fit patients.csv --label outcome --index age --out runs/patients
#     cida predict runs/patients patients.csv --out predicted.csv
