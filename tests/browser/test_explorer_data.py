"""The explorer in a real browser: a dial, two sliders, digits, numbers, dates, no truth."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import rotate

from cida.selection.expected_score import ExpectedScore

# --- a dial --------------------------------------------------------------------------------------


def test_the_dial_wraps_by_keys(look, open_file, hours_page):
    page = open_file(hours_page)
    dial = page.get_by_role("slider", name="hour")
    dial.focus()
    page.keyboard.press("End")
    assert 23 < float(dial.get_attribute("aria-valuenow")) < 24
    before = look.pixels(page, ".ex-cloud")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert 0 <= float(dial.get_attribute("aria-valuenow")) < 1
    assert (
        0 < look.apart(look.pixels(page, ".ex-cloud"), before) < 8
    )  # next to it, and not a day away
    page.keyboard.press("PageDown")
    assert 21 < float(dial.get_attribute("aria-valuenow")) < 24
    assert dial.get_attribute("aria-valuetext").startswith("hour 2")


@pytest.mark.parametrize("touch", [False, True])
def test_the_dial_can_be_dragged_across_the_seam(open_file, hours_page, touch):
    page = open_file(hours_page, has_touch=touch)
    dial = page.locator(".ex-dial")
    box = dial.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    places = [(x + 45 * np.sin(a), y - 45 * np.cos(a)) for a in np.linspace(-0.6, 0.6, 8)]
    seen = []
    if touch:
        for place in (places[0], places[-1]):
            page.touchscreen.tap(*place)
            seen.append(float(dial.get_attribute("aria-valuenow")))
    else:
        page.mouse.move(*places[0])
        page.mouse.down()
        for place in places:
            page.mouse.move(*place)
            seen.append(float(dial.get_attribute("aria-valuenow")))
        page.mouse.up()
    hours_of = [24 * (a / (2 * np.pi)) for a in (-0.6, 0.6)]
    assert seen[0] == pytest.approx(24 + hours_of[0], abs=0.3)
    assert seen[-1] == pytest.approx(hours_of[1], abs=0.3)


def test_the_dial_plays_round_and_round(look, open_file, hours_page):
    page = open_file(hours_page)
    page.locator(".ex-dial").focus()
    page.keyboard.press("End")
    page.get_by_role("button", name="Play round hour").click()
    look.wait_until(page, "value > 0.2 && value < 12")


# --- other data ----------------------------------------------------------------------------------


def test_an_index_of_two_columns_has_two_sliders(look, open_file, plane_page):
    page = open_file(plane_page)
    assert page.get_by_role("slider").count() == 2
    assert page.locator(".ex-along").count() == 0
    frames = []
    for place in ((0.1, 0.1), (0.9, 0.1), (0.9, 0.9)):
        look.slide(page, place[0], 0)
        look.slide(page, place[1], 1)
        frames.append(look.pixels(page, ".ex-plane"))
    assert look.apart(frames[0], frames[1]) > 0.3
    assert look.apart(frames[1], frames[2]) > 0.3


def test_two_columns_also_have_a_map_to_point_at(look, open_file, plane_page):
    page = open_file(plane_page)
    box = page.locator(".ex-pad").bounding_box()
    before = look.pixels(page, ".ex-plane")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    assert [look.shown_value(page, k) for k in (0, 1)] == pytest.approx([0.5, 0.5], abs=0.02)
    page.mouse.move(box["x"] + box["width"] - 7, box["y"] + 500)  # below: held at the edge
    page.mouse.up()
    assert [look.shown_value(page, k) for k in (0, 1)] == pytest.approx([1, 0], abs=0.02)
    assert look.apart(look.pixels(page, ".ex-plane"), before) > 0.3


def tile(frame, across, row):
    """The square of the first image: as it comes (row 0) or as it is left (row 1), its opacity."""
    cell = frame.shape[1] / across
    middle_x, middle_y, half = cell / 2, (0.46, 1.36)[row] * cell, int(0.43 * cell)
    top, left = round(middle_y) - half, round(middle_x) - half
    return frame[max(top, 0) : top + 2 * half, left : left + 2 * half, 3]


def alike(first, second):
    return np.corrcoef(first.ravel(), second.ravel())[0, 1]


def test_digits_come_turned_by_u_and_are_left_turned_by_the_learned_angle(
    look, open_file, digits_page, digits_view
):
    page = open_file(digits_page)
    dial = page.get_by_role("slider", name="angle")
    dial.focus()
    page.keyboard.press("Home")
    upright = tile(look.pixels(page, ".ex-digits"), 6, 0)
    for _ in range(25):
        page.keyboard.press("ArrowUp")
    assert float(dial.get_attribute("aria-valuenow")) == 90
    frame = look.pixels(page, ".ex-digits")
    assert alike(tile(frame, 6, 0), np.rot90(upright)) > 0.97  # anticlockwise
    turned = digits_view.rotated_images
    angle = turned.angle[0, list(turned.stops).index(90)]
    left = rotate(upright, 90 + angle, reshape=False, order=1)
    assert alike(tile(frame, 6, 1), left) > 0.95
    words = page.locator(".ex-digits")
    code = turned.predicted[:, list(turned.stops).index(90)].argmax(1)
    right = sum(digits_view.classes[c] == str(n) for c, n in zip(code, turned.labels, strict=True))
    page.wait_for_function("document.querySelector('.ex-told').textContent.includes('angle 90')")
    assert f"{right} of {len(code)} images right" in words.get_attribute("aria-label")


def test_numbers_have_a_mean_prediction_and_a_distance(look, open_file, page_of, regression_view):
    page = open_file(page_of("regression", {"Default": regression_view}))
    look.slide(page, 5)
    look.settle(page)
    weight = np.exp(-(((regression_view.u[:, 0] - 5) / (0.035 * 10)) ** 2) / 2)
    off = np.average(
        np.abs(regression_view.predicted[:, 0] - regression_view.truth), weights=weight
    )
    figure = page.locator(".ex-figure").inner_text()
    assert float(figure.removeprefix("± ")) == pytest.approx(off, abs=0.02)
    mean = np.average(regression_view.predicted[:, 0], weights=weight)
    assert float(page.locator(".ex-share").inner_text()) == pytest.approx(mean, abs=0.02)


def test_where_nobody_knows_it_says_so_or_what_is_expected(look, open_file, page_of, circle_views):
    view = circle_views["Default"]
    cell = ExpectedScore(0.5, 0.8, 0.91, 0.85, 0.97, 100, is_within_calibration=False)
    unknown = replace(view, truth=np.full(len(view.truth), np.nan), expected=(cell,))
    page = open_file(page_of("unknown", {"Default": unknown}))
    found = {}
    for u in (0.05, 0.6, 0.95):
        look.slide(page, u)
        look.settle(page)
        found[u] = page.locator(".ex-top .ex-figure, .ex-said").all_inner_texts()
    assert found[0.05] == ["-", "trained on these labels"]
    assert found[0.6] == ["≈ 91 %", "expected, 85 % to 97 %, farther than was checked"]
    assert found[0.95] == ["?", "nobody knows: no labels near"]


def test_dates_are_dates_on_the_slider(open_file, page_of, circle_views):
    view = circle_views["Default"]
    dated = replace(view, u=np.round(19000 + 700 * view.u), is_date=(True,), plane=None)
    page = open_file(page_of("dates", {"Default": dated}))
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator(".ex-value").inner_text() == "2022-01-08"
    page.keyboard.press("ArrowRight")
    assert page.locator(".ex-value").inner_text() == "2022-01-15"
    assert slider.get_attribute("aria-valuetext") == "u 2022-01-15"
