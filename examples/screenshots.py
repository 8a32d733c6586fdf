"""The pictures of the report and its explorer that README and docs show.

    make screenshots

Runs what they are of if it is not there yet (`cida demo`, three methods on Rotating MNIST with
training digits held out, as a development run), and looks at the reports in the machine's own
Chromium.
"""

import argparse
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MARGIN = 24  # pixels around a part of the page
DEMO = ["demo", "--out", "runs/demo"]
DIGITS = ["reproduce", "rotating-mnist", "--protocol", "development", "--first-seed", "100"]
DIGITS += ["--seeds", "1", "--methods", "source-only", "cida", "histogram", "--no-figures"]
DIGITS += ["--out", "runs/screenshots-mnist"]


def report_of(words):
    """The report that this command leaves; the command is run if there is none yet."""
    report = Path(words[words.index("--out") + 1]) / "report.html"
    if not report.is_file():
        subprocess.run([sys.executable, "-m", "cida", *words], check=True)
    return report.resolve()


@contextmanager
def chromium():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        sys.exit("no browser was found; run 'make browser', or install Chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


def look(browser, report, scheme="light", height=1000):
    page = browser.new_page(viewport={"width": 1160, "height": height}, color_scheme=scheme)
    page.goto(report.as_uri())
    return page


def take(page, path, selector=None):
    page.evaluate("document.activeElement.blur()")
    page.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    whole = {}
    if selector is not None:
        box = page.locator(selector).first.bounding_box()
        edges = {"x": box["x"] - MARGIN, "y": box["y"], "height": box["height"] + MARGIN}
        whole = {"clip": {**edges, "width": box["width"] + 2 * MARGIN}, "full_page": True}
    page.screenshot(path=path, **whole)
    print(path)


def main():
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--out", type=Path, default=Path("docs/figures"))
    folder = reader.parse_args().out
    points, digits = report_of(DEMO), report_of(DIGITS)
    with chromium() as browser:
        take(look(browser, points, height=860), folder / "report.png")
        page = look(browser, points)
        page.locator("input[type=range]").first.fill("0.62")
        take(page, folder / "explorer.png", ".explorer")
        page = look(browser, digits, scheme="dark")
        page.locator("[role=slider]").first.focus()
        page.keyboard.press("PageUp")
        take(page, folder / "explorer-digits.png", ".explorer")


if __name__ == "__main__":
    main()
