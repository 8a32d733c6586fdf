"""The registry of methods: each with its title, its role, and the settings that make it.

Heads and games are named by the keys of their own registries, so that nothing is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["METHODS", "REFERENCE_METHOD", "HeadBins", "Method", "Role"]


class Role(StrEnum):
    """What a method stands for in a table."""

    BASELINE = "baseline"  # adapts nothing
    ADAPTIVE = "adaptive"  # takes the index as a number
    CATEGORICAL = "categorical"  # takes domains as categories
    ORACLE = "oracle"  # is trained on target labels too


class HeadBins(StrEnum):
    """Which bins of a task a histogram head predicts."""

    HISTOGRAM = "histogram"  # narrow ones
    DOMAINS = "domains"  # one for each domain


@dataclass(frozen=True)
class Method:
    """A method's name and title, its role, and the estimator's settings that make it.

    Parameters
    ----------
    name : str
        The key in `METHODS`.
    title : str
        The name in tables.
    role : Role
        What the method stands for.
    settings : mapping
        Parameters of the estimator; ``discriminator`` and ``game`` are names.
    head_settings : mapping
        Parameters of the discriminator head.
    head_bins : HeadBins or None
        Which bins the task gives to the head.
    is_staged : bool
        Whether the task sets the number of its curriculum stages.
    """

    name: str
    title: str
    role: Role = Role.ADAPTIVE
    settings: Mapping[str, Any] = field(default_factory=dict)
    head_settings: Mapping[str, Any] = field(default_factory=dict)
    head_bins: HeadBins | None = None
    is_staged: bool = False


def _head(name: str, title: str, head: str, **settings: Any) -> Method:
    return Method(name, title, Role.ADAPTIVE, {"discriminator": head, **settings})


def _source_only(name: str, title: str, role: Role = Role.BASELINE, **settings: Any) -> Method:
    return Method(name, title, role, {"discriminator": None, **settings})


def _domain_classes(name: str, title: str, **settings: Any) -> Method:
    return Method(
        name,
        title,
        Role.CATEGORICAL,
        {"discriminator": "histogram", **settings},
        head_settings={"kernel": 0},
        head_bins=HeadBins.DOMAINS,
    )


def _binary_domain(name: str, title: str, game: str, is_staged: bool = False) -> Method:
    """An adversary of its own, which takes the layers of the head."""
    settings = {"discriminator": "histogram", "game": game}
    return Method(name, title, Role.CATEGORICAL, settings, is_staged=is_staged)


def _histogram(name: str, title: str, **settings: Any) -> Method:
    settings = {"discriminator": "histogram", **settings}
    return Method(name, title, Role.ADAPTIVE, settings, head_bins=HeadBins.HISTOGRAM)


def _game(name: str, title: str) -> Method:
    return Method(name, title, settings={"game": name})


REFERENCE_METHOD = "source-only"  # gains are measured from it

METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        _source_only(REFERENCE_METHOD, "Source-Only"),
        _source_only("source-only-windows", "Source-Only, windows along u"),
        _source_only("source-only-along", "Source-Only, norms along u"),
        _source_only("windows", "Windows along u", coordinates="windows"),
        _binary_domain("adda", "ADDA", "adda"),
        _binary_domain("dann-merged", "DANN (1 target domain)", "dann"),
        _domain_classes("dann", "DANN"),
        _domain_classes("cdann", "CDANN", game="conditional"),
        _binary_domain("mdd", "MDD", "mdd"),
        _binary_domain("cua", "CUA", "cua", is_staged=True),
        _head("cida", "CIDA (L2)", "l2"),
        _head("cida-l1", "CIDA (L1)", "l1"),
        _head("pcida", "PCIDA (Gaussian)", "gaussian"),
        _head("mixture", "PCIDA (mixture)", "mixture"),
        _head("skew", "Skew-normal", "skew"),
        _head("flow", "Flow", "flow"),
        _head("von-mises", "Von Mises", "von-mises"),
        _head("von-mises-mixture", "Von Mises mixture", "von-mises-mixture"),
        _histogram("histogram", "Histogram head"),
        _histogram("histogram-line", "Histogram head, u on a line"),
        _histogram("conditional", "Histogram head, conditional", game="conditional"),
        _histogram(
            "given-prediction", "Histogram head, given the prediction", game="given-prediction"
        ),
        _game("distance-correlation", "Distance correlation"),
        _game("hsic", "HSIC"),
        Method("auto", "Automatic"),
        Method("adaptive", "Adaptive committee"),
        Method("default", "Default"),
        Method("restarts", "Default, best of 4", settings={"n_restarts": 4}),
        _source_only("oracle", "Oracle (all labels)", Role.ORACLE),
    )
}
