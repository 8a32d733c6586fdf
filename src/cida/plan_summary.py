"""The sentences of a plan: what each rule of the policy says in English."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["RULE_TEXTS"]

RULE_TEXTS: Mapping[str, str] = {
    "user": "it was set",
    "no-index": "no index was given",
    "nothing-to-adapt": "there is no target, or no discriminator to adapt to it",
    "own-encoder": "the encoder is the user's own",
    "row-shape": "images and signals have encoders of their own, which take the index",
    "few-source-rows": "there are too few labelled rows for a trial",
    "periodic-index": "the index goes once round a known period and x meets itself there",
    "no-known-period": "the index does not go round a known period",
    "raw-holds": "labels hold along the index in x as it is",
    "columns-drift": "columns drift along the index, and labels hold as well in windows along it",
    "windows-hold": "labels hold better in windows along the index than in x as it is",
    "frame-holds": "labels hold much better in a frame that moves with the data",
    "linear-suffices": "next to the target a linear model is as good as a kernel model",
    "kernel-better": "next to the target a kernel model is better than a linear one",
    "moving-frame-default": "in a moving frame a network has room to learn the shape of a label",
    "rows-per-column": "it follows from the labelled rows per column",
    "index-values": "one bin for each value of the index, up to a maximum",
    "capacity-default": "it is the default of this capacity",
    "game-default": "it is the default of the game",
    "moment-head": "a head that sees a moment or two folds far domains unless they come in turn",
    "row-count": "it follows from the number of rows",
}
