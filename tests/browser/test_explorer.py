"""The explorer in a real browser: a slider, pictures, words and sizes."""

import re

import numpy as np
import pytest

# --- a slider ------------------------------------------------------------------------------------


def test_the_slider_moves_boundary_points_and_figures(look, open_file, circle_page):
    page = open_file(circle_page)
    look.slide(page, 0.1)
    near = [look.pixels(page, c) for c in (".ex-plane", ".ex-cloud")]
    words = page.locator(".ex-panel").first.inner_text()
    look.slide(page, 0.9)
    far = [look.pixels(page, c) for c in (".ex-plane", ".ex-cloud")]
    assert all(look.apart(a, b) > 0.5 for a, b in zip(near, far, strict=True))
    assert page.locator(".ex-panel").first.inner_text() != words
    look.slide(page, 0.1)
    assert (
        look.apart(look.pixels(page, ".ex-plane"), near[0]) == 0
    )  # nothing is left of where u was


def test_between_two_stops_is_a_frame_between_theirs(look, open_file, circle_page, circle_views):
    page = open_file(circle_page)
    stops = circle_views["Default"].plane.stops[0]
    frames = []
    for u in (stops[14], (stops[14] + stops[15]) / 2, stops[15]):
        look.slide(page, u)
        frames.append(look.pixels(page, ".ex-plane"))
    first, middle, last = frames
    assert 0 < look.apart(first, middle) < look.apart(first, last)
    assert 0 < look.apart(middle, last) < look.apart(first, last)


def test_the_figure_is_the_accuracy_of_the_rows_near(look, open_file, circle_page, circle_views):
    page = open_file(circle_page)
    look.slide(page, 0.6)
    look.settle(page)
    for number, title in enumerate(("Default", "Source-Only")):
        view = circle_views[title]
        weight = np.exp(-(((view.u[:, 0] - 0.6) / 0.035) ** 2) / 2)
        wanted = np.average(view.predicted.argmax(1) == view.truth, weights=weight)
        figure = page.locator(".ex-figure").nth(number).inner_text()
        assert float(figure.split()[0]) == pytest.approx(100 * wanted, abs=0.6)
        mean = np.average(view.predicted[:, 1], weights=weight)
        share = page.locator(".ex-panel").nth(number).locator(".ex-share").nth(1).inner_text()
        assert float(share.split()[0]) == pytest.approx(100 * mean, abs=0.8)


def test_the_keyboard_alone_will_do(look, open_file, circle_page):
    page = open_file(circle_page)
    page.keyboard.press("Tab")
    focused = "document.activeElement.getAttribute('aria-label') || document.activeElement.type"
    assert page.evaluate(focused) == "Play along u"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "range"
    page.keyboard.press("Home")
    assert look.shown_value(page) == 0
    before = look.pixels(page, ".ex-plane")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert look.shown_value(page) == pytest.approx(0.1)
    assert look.apart(look.pixels(page, ".ex-plane"), before) > 0
    page.keyboard.press("ArrowDown")
    assert look.shown_value(page) == pytest.approx(0.09)
    page.keyboard.press("PageUp")
    assert look.shown_value(page) == pytest.approx(0.19)
    page.keyboard.press("End")
    assert look.shown_value(page) == 1
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Space")  # past the colours, on the first run's box
    assert look.titles(page) == ["Source-Only", "again"]


def test_source_is_marked_on_the_track(open_file, circle_page):
    page = open_file(circle_page)
    rail = page.locator(".ex-rail").bounding_box()
    band = page.locator(".ex-source").bounding_box()
    assert band["x"] == pytest.approx(rail["x"], abs=1)
    assert band["width"] / rail["width"] == pytest.approx(5 / 29, abs=0.01)


def test_play_plays_and_stops(look, open_file, circle_page):
    page = open_file(circle_page)
    look.slide(page, 0.2)
    button = page.get_by_role("button", name="Play along u")
    button.focus()
    page.keyboard.press("Space")
    look.wait_until(page, "value > 0.24")
    page.get_by_role("button", name="Stop along u").click()
    stopped = look.shown_value(page)
    page.wait_for_timeout(200)
    assert look.shown_value(page) == stopped > 0.2
    look.slide(page, 0.99)
    button.click()
    look.wait_until(page, "value < 0.97")  # there and back
    look.slide(page, 0.5)  # a hand on the slider stops it
    page.wait_for_timeout(200)
    assert look.shown_value(page) == 0.5
    button.wait_for()


def test_with_reduced_motion_play_goes_in_steps(look, open_file, circle_page):
    page = open_file(circle_page, reduced_motion="reduce")
    look.slide(page, 0.2)
    seen = page.evaluate(
        """async () => {
            document.querySelector(".ex-play").click();
            const seen = new Set();
            const end = performance.now() + 1500;
            while (performance.now() < end) {
                seen.add(document.querySelector(".ex-value").textContent);
                await new Promise(requestAnimationFrame);
            }
            return [...seen];
        }"""
    )
    assert seen == ["0.24", "0.28"]  # a step at once, the next after 0.9 seconds


def test_checkboxes_choose_the_runs_side_by_side(look, open_file, circle_page):
    page = open_file(circle_page)
    assert look.titles(page) == ["Default", "Source-Only", "again"]
    tops = {page.locator(".ex-panel").nth(k).bounding_box()["y"] for k in range(3)}
    assert len(tops) == 1

    def box(name):
        return page.get_by_role("checkbox", name=name, exact=True)

    box("Source-Only").uncheck()
    box("and again").check()
    assert look.titles(page) == ["Default", "again", "and again"]
    box("Source-Only").check()
    assert look.titles(page) == ["Default", "Source-Only", "again", "and again"]
    assert look.apart(look.pixels(page, ".ex-plane", 0), look.pixels(page, ".ex-plane", 2)) < 0.5


def test_encodings_are_coloured_by_class_or_by_u(look, open_file, circle_page):
    page = open_file(circle_page)
    plane, cloud = look.pixels(page, ".ex-plane"), look.pixels(page, ".ex-cloud")
    page.get_by_role("radio", name="u", exact=True).check()
    assert look.apart(look.pixels(page, ".ex-cloud"), cloud) > 0.1
    assert look.apart(look.pixels(page, ".ex-plane"), plane) == 0


# --- schemes, sizes, words -----------------------------------------------------------------------


def test_pictures_follow_the_scheme_and_the_pages_own_theme(look, open_file, circle_page):
    page = open_file(circle_page, color_scheme="light")
    light = look.pixels(page, ".ex-plane")
    page.emulate_media(color_scheme="dark")
    dark = look.pixels(page, ".ex-plane")
    assert look.apart(light, dark) > 5
    page.emulate_media(color_scheme="light")
    assert look.apart(look.pixels(page, ".ex-plane"), light) == 0
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert look.apart(look.pixels(page, ".ex-plane"), dark) == 0


@pytest.mark.parametrize(
    "size",
    [
        {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2},  # 1280 at 200 %
        {"viewport": {"width": 360, "height": 700}},
    ],
)
@pytest.mark.parametrize("name", ["circle", "hours", "plane", "digits"])
def test_it_fits_at_200_percent_and_on_a_telephone(look, open_file, request, name, size):
    page = open_file(request.getfixturevalue(f"{name}_page"), **size)
    look.settle(page)
    assert look.overflow(page) <= 0
    drawn = page.locator("canvas").evaluate_all("all => all.map(c => c.clientWidth)")
    assert min(drawn) > 100


def test_panels_stack_on_a_telephone(open_file, circle_page):
    page = open_file(circle_page, viewport={"width": 360, "height": 700})
    lefts = {page.locator(".ex-panel").nth(k).bounding_box()["x"] for k in range(3)}
    assert len(lefts) == 1


def test_pictures_have_words_and_changes_are_told_when_all_is_still(look, open_file, circle_page):
    page = open_file(circle_page)
    look.slide(page, 0.3)
    told = page.locator("[aria-live=polite]")
    page.wait_for_function("document.querySelector('.ex-told').textContent.startsWith('u 0.30')")
    figure = page.locator(".ex-figure").first.inner_text()
    assert f"Default: {figure} right" in told.text_content()
    for canvas in page.get_by_role("img").all():
        assert re.search(
            r"at u 0\.30\..*(right|nobody|trained)", canvas.get_attribute("aria-label")
        )
    slider = page.get_by_role("slider", name="u")
    assert slider.get_attribute("aria-valuetext") == "u 0.30"


def test_print_has_the_frame_of_every_panel_and_no_buttons(look, open_file, circle_page):
    page = open_file(circle_page, viewport={"width": 360, "height": 700})
    page.emulate_media(media="print")
    assert not page.locator(".ex-play").is_visible()
    assert all(look.pixels(page, ".ex-plane", k).std() > 1 for k in range(3))
