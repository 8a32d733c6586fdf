"""Faults of the game, each told by its own signs; the rules are tried from cause to effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from cida.diagnostics.course import Course
from cida.diagnostics.facts import Facts
from cida.diagnostics.findings import Finding
from cida.training.health import ABOVE, COLLAPSED, KNOWN, ONE_CLASS, SEVERAL_CLASSES, WEAK_PULL

__all__ = ["GAME_FAULTS", "one_class_far_away"]

# Set on the worlds circle, sine, plane, ladder and irrelevant_index, seeds 100 to 105, healthy and
# with faults planted, and on no other world (docs/doctor.md).
LEARNT = 0.5  # of the blind prediction loss, above which the source was hardly learnt
TELLABLE = 0.25  # of it less is what neighbours in x leave
STRONG_PULL = 0.85  # of the gradient in z is the adversary's
TIMES_USUAL = 5.0  # the game's usual lambda_d, or a fifth of it
OFTEN_ABOVE = 0.3  # of the events
SELDOM_FELT = 0.2  # of the looks
READABLE = 0.3  # of V[u] in z, by a straight line
IN_SIGHT = 0.25  # of it in the directions in which z spreads
USUAL_STEPS_OF_D = 2
MANY_STEPS_OF_D = 5
BY_HEART = 0.25  # of what D reads of u it learnt on the very rows of the round
WIDENED = 0.35  # of u is read in z at some time, with a curriculum
FALLING = 0.12  # of the whole fall happens in the last fifth of the way
HARDLY_FELL = 0.05  # of the blind loss
SLOW_RATE = 1e-4
USUAL_RATE = 5e-4
USUAL_STEPS = 6000
NEAR_TO_FAR = 0.9

Rule = Callable[[Course, Facts], Iterator[Finding]]


# --- signs that several rules read ---------------------------------------------------------------


def _about_index(course: Course, facts: Facts) -> bool:
    """Whether the adversary's loss says what z tells of u: not that of merged groups of rows."""
    if facts.conditional or not facts.adapts:
        return False
    return facts.uses_head or not any(event.ceilings for event in course.events)


def _still_known(course: Course, facts: Facts) -> float | None:
    """The share of u that is read in z in the last fifth, where it is too much."""
    share = course.known(0.8) if _about_index(course, facts) else None
    return share if share is not None and share >= KNOWN else None


def _unlearnt(course: Course, facts: Facts) -> float | None:
    """The share of the blind loss that is left on the source, where neighbours in x do better."""
    last = course.prediction()
    if last is None or facts.neighbours_loss is None or not facts.blind_loss:
        return None
    left, tells = last / facts.blind_loss, facts.neighbours_loss / facts.blind_loss
    return left if left >= LEARNT and left - tells >= TELLABLE else None


def _by_heart(course: Course) -> float:
    """What D gains on the rows of a round, as a share of all that its loss is below the ceiling."""
    shares = []
    for event in course.within(0.2, 1.0):
        for name, ceiling in event.ceilings.items():
            gap = ceiling - event.losses.get(name, ceiling)
            if "gained" in event.health and gap > ABOVE:
                shares.append(event.health["gained"] / gap)
    return median(shares) if shares else 0.0


def _longer(facts: Facts) -> str:
    return f"Raise steps from {facts.steps} to {max(USUAL_STEPS, 3 * facts.steps)}."


# --- the rules -----------------------------------------------------------------------------------


def _lagging(course: Course, facts: Facts) -> Iterator[Finding]:
    if not _about_index(course, facts):
        return
    read, above = facts.index_explained, course.above(ABOVE)
    harms = read is None or read >= READABLE or _unlearnt(course, facts) is not None
    if above >= OFTEN_ABOVE and harms:
        yield Finding(
            "discriminator-lagging",
            f"The discriminator's loss was above its ceiling at {above:.0%} of the events: it "
            "plays worse than a belief that ignores z, and the encoder exploits that.",
            _stronger(facts) if facts.ceiling else "Set ceiling=True.",
        )
        return
    most, overlooked = course.most_known(), _overlooked(course, facts)
    if most is not None and overlooked is not None:
        yield Finding(
            "discriminator-lagging",
            f"The discriminator never read more than {most:.0%} of the index in z, where a "
            f"straight line reads {overlooked:.0%}: the encoder had nothing to hide from.",
            _stronger(facts),
        )


def _overlooked(course: Course, facts: Facts) -> float | None:
    """What a straight line reads of u in z and D never did.

    Either in the directions in which z spreads, where no capable D would overlook it once the
    source is learnt; or in any direction, where the encoder hardly ever felt an adversary.
    """
    wide, any_way, felt = facts.index_in_sight, facts.index_explained, course.felt()
    most = course.most_known() or 0.0
    learnt = _unlearnt(course, facts) is None
    if wide is not None and wide >= IN_SIGHT and 2 * most < wide and learnt:
        return wide
    never = felt is not None and felt <= SELDOM_FELT and most < KNOWN
    return any_way if never and any_way is not None and any_way >= READABLE else None


def _stronger(facts: Facts) -> str:
    steps = facts.discriminator_steps
    return (
        "Give the discriminator wider layers, such as Histogram(hidden=(128, 128, 128)), or raise "
        f"discriminator_steps from {steps} to {max(2 * steps, 2 * USUAL_STEPS_OF_D)}."
    )


def _lambda_too_large(course: Course, facts: Facts) -> Iterator[Finding]:
    left, pull = _unlearnt(course, facts), course.pull()
    if left is None or not facts.adapts or facts.discriminator_steps >= MANY_STEPS_OF_D:
        return
    much = facts.lambda_d >= TIMES_USUAL * facts.usual_lambda
    strong = pull is not None and pull >= STRONG_PULL and (much or not _is_constant(facts))
    hidden = (course.known(0.8) or 0.0) < KNOWN
    if (strong and hidden) or (much and (strong or hidden)):
        felt = "" if pull is None else f", and {pull:.0%} of the gradient in z was the adversary's"
        lower = min(facts.usual_lambda, facts.lambda_d / 10)
        yield Finding(
            "lambda-too-large",
            f"The source was not learnt: {left:.0%} of the blind prediction loss is left{felt}.",
            f"Lower lambda_d from {facts.lambda_d:g} to {lower:g}.",
        )


def _is_constant(facts: Facts) -> bool:
    """Whether all rows have nearly the same encoding."""
    if facts.encoding_spread is None or facts.encoding_size is None:
        return False
    return facts.encoding_spread <= COLLAPSED * facts.encoding_size


def _collapsed(course: Course, facts: Facts) -> Iterator[Finding]:
    if not _is_constant(facts):
        return
    if facts.weight_decay > 0.1:
        fix = f"Lower weight_decay from {facts.weight_decay:g} to 0."
    elif facts.own_encoder:
        fix = "Give another encoder: no ReLU on z, and weights that tell rows apart from the start."
    else:
        lower = min(USUAL_RATE, facts.learning_rate / 5)
        fix = f"Lower learning_rate from {facts.learning_rate:g} to {lower:g}."
    yield Finding(
        "encoder-collapsed",
        f"All rows have nearly the same encoding: z spreads by {facts.encoding_spread:.2g} around "
        f"a length of {facts.encoding_size:.2g}.",
        fix,
    )


def _lambda_too_small(course: Course, facts: Facts) -> Iterator[Finding]:
    share, pull = _still_known(course, facts), course.pull()
    if share is None:
        return
    little = TIMES_USUAL * facts.lambda_d <= facts.usual_lambda
    if little or (pull is not None and pull < WEAK_PULL):
        felt = "" if pull is None else f", and {pull:.1%} of the gradient in z was the adversary's"
        higher = max(facts.usual_lambda, 10 * facts.lambda_d)
        yield Finding(
            "lambda-too-small",
            f"z still tells {share:.0%} of the index{felt}.",
            f"Raise lambda_d from {facts.lambda_d:g} to {higher:g}.",
        )


def _overpowering(course: Course, facts: Facts) -> Iterator[Finding]:
    share, left, steps = (
        _still_known(course, facts),
        _unlearnt(course, facts),
        facts.discriminator_steps,
    )
    many = steps >= MANY_STEPS_OF_D
    if not facts.adapts or (share is None and not (many and left is not None)):
        return
    if not many and _by_heart(course) < BY_HEART:
        return
    if share is None:
        found = f"The encoder did nothing but hide: {left:.0%} of the blind prediction loss is left"
    else:
        found = f"The discriminator reads {share:.0%} of the index in z to the end"
    yield Finding(
        "discriminator-overpowering",
        f"{found}, with {steps} of its steps to each of the encoder's.",
        f"Lower discriminator_steps from {steps} to {USUAL_STEPS_OF_D}."
        if steps > USUAL_STEPS_OF_D
        else "Raise batch_size, so that it cannot learn the rows of a round by heart.",
    )


def _curriculum_too_fast(course: Course, facts: Facts) -> Iterator[Finding]:
    share = course.most_known() if _about_index(course, facts) else None
    if facts.curriculum <= 0 or share is None or share < WIDENED:
        return
    yield Finding(
        "curriculum-too-fast",
        f"The index range widened over {facts.curriculum:.0%} of {facts.steps} steps, and up to "
        f"{share:.0%} of the index could be read in z: rows came before nearer ones were aligned.",
        f"Raise curriculum from {facts.curriculum:g} to {NEAR_TO_FAR:g}."
        if facts.curriculum < NEAR_TO_FAR / 2
        else _longer(facts),
    )


def _not_converged(course: Course, facts: Facts) -> Iterator[Finding]:
    left, falling, fell = _unlearnt(course, facts), course.still_falling(), course.fell()
    fix = _longer(facts)
    if facts.learning_rate < SLOW_RATE:
        fix = f"Raise learning_rate from {facts.learning_rate:g} to {USUAL_RATE:g}."
    if left is not None and falling is not None and fell is not None and facts.blind_loss:
        if left > 1 and facts.learning_rate > USUAL_RATE:
            fix = f"Lower learning_rate from {facts.learning_rate:g} to {USUAL_RATE:g}."
        if falling >= FALLING or fell <= HARDLY_FELL * facts.blind_loss:
            yield Finding(
                "not-converged",
                f"The source was not learnt yet when training ended: {left:.0%} of the blind "
                "prediction loss is left.",
                fix,
            )
            return
    share = _still_known(course, facts)
    if share is not None and not facts.label_shift:
        yield Finding(
            "not-converged",
            f"The game had not come to rest when training ended: z still tells {share:.0%} of the "
            "index.",
            fix,
        )


GAME_FAULTS: tuple[Rule, ...] = (
    _lagging,
    _lambda_too_large,
    _collapsed,
    _lambda_too_small,
    _overpowering,
    _curriculum_too_fast,
    _not_converged,
)


# --- what may come of any ------------------------------------------------------------------------


def one_class_far_away(facts: Facts) -> Iterator[Finding]:
    """One class is predicted for nearly all rows far from the source, and not in the source."""
    near, far = facts.same_source, facts.same_far
    if near is None or far is None or far < ONE_CLASS or near > SEVERAL_CLASSES:
        return
    if not facts.adapts:
        fix = "Adapt to the target: discriminator='auto'."
    elif facts.index_mode != "auto" and not facts.own_encoder:
        fix = "Let the encoder follow the index: index_in_encoder='auto'."
    elif facts.curriculum < NEAR_TO_FAR / 2:
        fix = f"Go from near to far: raise curriculum from {facts.curriculum:g} to {NEAR_TO_FAR:g}."
    else:
        fix = _longer(facts)
    yield Finding(
        "predictions-collapsed",
        f"{far:.0%} of the target rows farthest from the source are predicted as one class, and "
        f"{near:.0%} of the source rows.",
        fix,
    )
