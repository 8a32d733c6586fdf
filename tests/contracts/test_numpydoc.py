"""Docstrings of the public objects: numpydoc sections that agree with the signatures.

Public is what ``__all__`` of the packages below lists, and docs/api/index.md has the same packages.
"""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from numpydoc.validate import validate

API_INDEX = Path(__file__).parents[2] / "docs" / "api" / "index.md"
PACKAGES = (
    "cida",
    "cida.estimators",
    "cida.spaces",
    "cida.discriminators",
    "cida.games",
    "cida.networks",
    "cida.coordinates",
    "cida.datasets",
    "cida.training",
    "cida.certificate",
    "cida.doctor",
    "cida.selection",
    "cida.check",
    "cida.data",
    "cida.metrics",
    "cida.dependence",
    "cida.distributed",
)
# Classes whose methods are called or overridden by users: these have sections of their own.
FULL_METHODS = (
    "cida.CIDAClassifier",
    "cida.CIDARegressor",
    "cida.CIDASearch",
    "cida.Space",
    "cida.Discriminator",
    "cida.games.Game",
    "cida.training.Trainer",
)
SUMMARY_CHECKS = {
    "GL08",  # there is a docstring
    "SS03",  # its summary ends with a period
    "SS06",  # and is one line
}
EXCEPTION_CHECKS = {"GL08", "SS03"}
SECTION_CHECKS = SUMMARY_CHECKS | {
    "GL07",  # sections are in numpydoc's order
    "PR01",  # all parameters are documented
    "PR02",  # and no others
    "PR03",  # in the order of the signature
    "PR04",  # each with a type
    "PR07",  # and a description,
    "PR09",  # which ends with a period
    "PR10",  # and a space before the colon
    "RT01",  # what is returned is documented
    "RT03",  # with a description,
    "RT05",  # which ends with a period
}


def public_objects() -> dict[str, object]:
    """Classes and functions by their full name, each once."""
    objects, seen = {}, set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            is_documentable = inspect.isclass(value) or inspect.isfunction(value)
            if is_documentable and value.__module__.startswith("cida") and id(value) not in seen:
                seen.add(id(value))
                objects[f"{package}.{name}"] = value
    return objects


def public_methods(full_name: str, value: type) -> dict[str, set[str]]:
    """Methods and properties that cida defines, with their checks.

    Overrides without a docstring have that of the class above.
    """
    methods = {}
    for name in dir(value):
        home = next((kind for kind in value.__mro__ if name in vars(kind)), object)
        member = vars(home).get(name)
        is_method = inspect.isroutine(member) or isinstance(member, property)
        is_override = member.__doc__ is None and any(hasattr(b, name) for b in home.__bases__)
        if is_method and home.__module__.startswith("cida") and not name.startswith("_"):
            is_full = home is value and full_name in FULL_METHODS
            if not is_override:
                methods[f"{full_name}.{name}"] = SECTION_CHECKS if is_full else SUMMARY_CHECKS
    return methods


OBJECTS = public_objects()


def faults(name: str, checks: set[str]) -> list[tuple[str, str]]:
    return [error for error in validate(name)["errors"] if error[0] in checks]


def has_own_signature(value: object) -> bool:
    """Whether its parameters are cida's, and not those of torch's or typing's constructor."""
    return not inspect.isclass(value) or {"args", "kwargs"} != set(
        inspect.signature(value).parameters
    )


@pytest.mark.parametrize("name", OBJECTS)
def test_public_objects_have_the_sections_of_numpydoc(name):
    value = OBJECTS[name]
    is_exception = inspect.isclass(value) and issubclass(value, Exception)
    if is_exception:
        checks = EXCEPTION_CHECKS
    else:
        checks = SECTION_CHECKS if has_own_signature(value) else SECTION_CHECKS - {"PR01"}
    assert faults(name, checks) == []


@pytest.mark.parametrize("name", [name for name, o in OBJECTS.items() if inspect.isclass(o)])
def test_methods_of_public_classes_are_documented(name):
    methods = public_methods(name, OBJECTS[name])
    found = {method: faults(method, checks) for method, checks in methods.items()}
    assert {method: errors for method, errors in found.items() if errors} == {}


def test_docs_api_lists_the_public_packages_and_the_names_of_cida():
    text = API_INDEX.read_text()
    listed = re.search(r"autosummary::.*?```", text, re.DOTALL)[0]
    assert tuple(re.findall(r"^ *(cida[\w.]*)$", listed, re.MULTILINE)) == PACKAGES[1:]
    assert sorted(re.findall(r"^\| `(\w+)`", text, re.MULTILINE)) == sorted(
        name for name in importlib.import_module("cida").__all__ if not name.startswith("__")
    )
