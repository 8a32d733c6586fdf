"""What reports say of each experiment beside its numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["SIMULATED_NOTICE", "USER_TABLES_TEXT", "ExperimentText", "experiment_text"]


@dataclass(frozen=True)
class ExperimentText:
    """A title, what it is about, what the columns of its tables and what its figures are."""

    title: str
    lead: str = ""
    columns_note: str = ""
    figures_note: str = ""


SIMULATED_NOTICE = (
    "SIMULATED: these people exist in a computer alone. The paper's numbers below ours are of real "
    "people, and are there to show the form of its table, not to be beaten."
)
COLUMNS_NOTE = (
    "In bold the best mean of those without target labels. gain: points over Source-Only; of the "
    "gap: the gain's share of the oracle's."
)
TOY_COLUMNS_NOTE = (
    "all: source and target domains together; fresh: points drawn anew from the same domains; "
    "record: the public record."
)
TOY_FIGURES_NOTE = (
    "Red dots and blue crosses are the two classes as predicted, a green frame holds the labelled "
    "source, black lines are the boundary of an RBF support vector machine fitted to each method's "
    "predictions at the same fitting accuracy. Bands run from the worst seed to the best."
)
CIRCLE_TEXT = ExperimentText(
    "Circle",
    "30 domains named by a continuous index u. Labels exist in the first 6; the other 24 are the "
    "target, where no label is used.",
    TOY_COLUMNS_NOTE,
    TOY_FIGURES_NOTE,
)
SINE_TEXT = replace(
    CIRCLE_TEXT,
    title="Sine",
    lead="12 domains named by a continuous index u. Labels exist in the first 5; the other 7 are "
    "the target, where no label is used.",
)
ROTATING_TEXT = ExperimentText(
    "Rotating MNIST",
    "Digits turned by any angle; the angle is the index u. Labels exist from 0 to 45 degrees; from "
    "45 to 360 there are none.",
    "The column 45 is the target from 45 to 90 degrees, and so on; target is their mean. Rows that "
    "begin with paper are its Table 1.",
    "Accuracy is over all seeds, and bands run from the worst to the best; what else is drawn is "
    "the first seed's. The source is shaded or boxed in green. A digit comes turned by u, and the "
    "transformer turns it further, by the learned angle. Turning it back by u is right, or by u "
    "less any constant c, since alignment cannot tell one common place from another: c is where "
    "the source is put. Off by: the mean distance from the right answer on the target. Who has all "
    "labels has no need to turn. Encodings are drawn on their first two principal components.",
)
SLEEP_TEXT = ExperimentText(
    "",
    "The stage of sleep (awake, light, deep or REM) from 30 seconds of a breathing belt. Labels "
    "exist for the source people; the target people, of other ages, have none.",
    "Accuracy in %, on target people who were not trained on. " + COLUMNS_NOTE + " kappa: Cohen's, "
    "agreement beyond chance; then the recall of each stage.",
    "Means over all seeds. The source's ages are shaded in green.",
)
TABLE_COLUMNS_NOTE = (
    "Accuracy in %, on one half of the target rows, all of which were trained on without their "
    "labels; source: on the rows trained on. " + COLUMNS_NOTE + " The oracle has the labels of the "
    "other half."
)
AGE_FIGURES_NOTE = (
    "Means over all seeds, in cells along the age. The source's ages are shaded in green."
)
NHANES_TEXT = ExperimentText(
    "Sex from 17 measurements, across ages",
    "NHANES 2017-18: body and blood values of 6,507 people. Labels exist up to the age of 20; "
    "what tells men from women then keeps drifting with age.",
    TABLE_COLUMNS_NOTE,
    AGE_FIGURES_NOTE,
)
SUPPORT2_TEXT = ExperimentText(
    "Death within 180 days, across ages",
    "SUPPORT2: 9,105 seriously ill patients and what was known of them by day 3. Labels exist "
    "up to the age of 55. The gap between no adaptation and an oracle is small here: there is "
    "little to win, and the table shows whether something is lost.",
    TABLE_COLUMNS_NOTE,
    AGE_FIGURES_NOTE,
)
KING_COUNTY_TEXT = ExperimentText(
    "House prices across King County",
    "21,613 sales; the index is latitude and longitude, labels exist in the eastern third. "
    "Dear for its neighbourhood: above the median of the 400 nearest. Above the median of all "
    "is the example where the label itself depends on the place, and invariance does harm.",
    TABLE_COLUMNS_NOTE + " The regression's figure is R² in %.",
    "Means over all seeds in cells of the map; source houses in green.",
)
LADDER_TEXT = ExperimentText(
    "The moment ladder",
    "Three switches: the label is the product of two. The third repeats the label in the source, "
    "in the middle of the range, and tells the side of u in the target, where p(u|z) of the two "
    "sides differs in its mean, only in its variance, only in its skewness, or only as a whole. A "
    "head that sees the difference makes the encoder let go of the shortcut.",
    "Accuracy in % on the target. "
    + COLUMNS_NOTE
    + " left of u: the bias-corrected squared distance "
    "correlation of z and u. Where the encoder begins as the shortcut, seen at the start: how far "
    "below its ceiling a discriminator at its best gets there (or the dependence), and gradient at "
    "the start: the norm of what it tells the encoder.",
    "Means over all seeds. The source is shaded in green.",
)
WORLDS_TEXT = ExperimentText(
    "Small worlds, and the defaults",
    "One world for each way in which an index can matter, or not. The default is the estimator "
    "with no arguments.",
    "Accuracy in % on the target, of the regression R² in %. " + COLUMNS_NOTE + " left of u: the "
    "bias-corrected squared distance correlation of z and u.",
    "Means over all seeds. The source is shaded in green.",
)
SELECTION_TEXT = ExperimentText(
    "Which run to keep, without target labels",
    "Heads and weights of the adversarial loss over six worlds: good runs and bad ones. Validators "
    "score them without a label of the target; here their scores meet the truth.",
    "First the target accuracy of each run in %, the mean over seeds. Then, for each validator: "
    "Spearman's correlation of its score with the accuracy; how often the run that it keeps is "
    "within 1 point of the best of its group, and how far below it is; the correlation in each "
    "world.",
    "Every run as a point; the one that is kept, in a group of runs on the same data, has a ring.",
)
RESTARTS_TEXT = ExperimentText(
    "The best of four games",
    "The estimator with no arguments, once with one game and once with four, of which it keeps one "
    "by a validator that sees no label of the target.",
    "Accuracy in % on the target. " + COLUMNS_NOTE,
    "Means over all seeds. The source is shaded in green.",
)
USER_TABLES_TEXT = ExperimentText(
    "Models of your own table",
    "No target label was seen: how right a model is on the target nobody can say from the table "
    "alone. What can be said without them is here.",
    "held-out source: on source rows that were not trained on. expected: the accuracy to expect on "
    "the target, told without its labels.",
)

_TEXT_BY_EXPERIMENT = {
    "circle": CIRCLE_TEXT,
    "sine": SINE_TEXT,
    "rotating-mnist": ROTATING_TEXT,
    "rotating-digits": replace(ROTATING_TEXT, title="Rotating Digits"),
    "sleep-intra": replace(SLEEP_TEXT, title="Sleep staging across ages"),
    "sleep-cross": replace(SLEEP_TEXT, title="Sleep staging across studies"),
    "sleep-multi": replace(SLEEP_TEXT, title="Sleep staging along several indices"),
    "nhanes": NHANES_TEXT,
    "support2": SUPPORT2_TEXT,
    "king-county": KING_COUNTY_TEXT,
    "moments": LADDER_TEXT,
    "worlds": WORLDS_TEXT,
    "selection": SELECTION_TEXT,
    "restarts": RESTARTS_TEXT,
}


def experiment_text(experiment: str) -> ExperimentText:
    """The words on an experiment; one of somebody else's has its name alone."""
    return _TEXT_BY_EXPERIMENT.get(experiment) or ExperimentText(experiment or "Runs")
