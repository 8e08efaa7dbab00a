"""The report in a browser without a window: at two widths, dark and light, measured by what the browser has laid out.

A page of the test holds the report in a frame of each width, asks for sizes, colours and focus, and writes what it
found into itself; the report has no script of its own.
"""

import contextlib
import html
import json
import os
import re
import shutil
import signal
import subprocess

import numpy as np
import pytest

import cavity as cv

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
PATIENCE = 120.0
WIDTHS = (360, 1280)
SCHEMES = {"dark": "0", "light": "1"}
pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed here")]

MEASURE = """
const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
const light = colour => numbers(colour).slice(0, 3).map(v => v / 255)
  .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (view, node) => {
  for (let one = node; one; one = one.parentElement) {
    const colour = view.getComputedStyle(one).backgroundColor, parts = numbers(colour);
    if (parts.length < 4 || parts[3] > 0) return colour;
  }
  return "rgb(255, 255, 255)";
};
const contrast = (view, node, own) => {
  const [a, b] = [light(own), light(behind(view, node))].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
};
function measured(frame) {
  const view = frame.contentWindow, page = view.document, root = page.documentElement;
  for (const one of page.querySelectorAll("details")) one.open = true;
  const texts = [...page.querySelectorAll("p, td, th, h1, h2, h3, summary, caption, a, pre, li, dt, dd")];
  const inside = node => node.closest(".wide") !== null;
  const leaves = texts.filter(node => node.textContent.trim() && node.getClientRects().length);
  const wide = [...page.querySelectorAll("[tabindex='0'], summary, a[href]")];
  const focused = wide.filter(node => { node.focus(); return page.activeElement === node; });
  const pictures = [...page.querySelectorAll("svg")].map(node => node.getBoundingClientRect());
  return {
    width: root.clientWidth, scrolls: root.scrollWidth, dark: view.matchMedia("(prefers-color-scheme: dark)").matches,
    paper: view.getComputedStyle(page.body).backgroundColor,
    outside: leaves.filter(node => !inside(node) && node.getBoundingClientRect().right > root.clientWidth + 1)
      .map(node => node.textContent.slice(0, 60)),
    contrast: Math.min(...leaves.map(node => contrast(view, node, view.getComputedStyle(node).color))),
    texts: leaves.length, keys: wide.length, focused: focused.length,
    pictures: pictures.length, flat: pictures.filter(one => one.width < 40 || one.height < 20).length,
    headings: [...page.querySelectorAll("h1, h2")].map(node => node.textContent),
  };
}
window.addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map(measured);
  document.getElementById("found").textContent = JSON.stringify(found);
});
"""


def posterior():
    m = cv.Model("line")
    n, city = m.plate("n"), m.plate("city")
    x, where = m.input("x", cv.real, plates=n), m.input("where", cv.index(city), plates=n)
    slope = m.random("slope", cv.gaussian(0.0, variance=10.0))
    level = m.random("level", cv.gaussian(0.0, variance=10.0), plates=city)
    m.random("y", cv.gaussian(level[where] + slope * x, variance=1.0))
    x = np.random.default_rng(0).normal(size=60)
    places = np.array(["York", "Leeds", "a city whose name is as long as names of cities ever are"])[np.arange(60) % 3]
    return cv.infer(m, {"x": x, "where": places, "y": 2.0 * x + np.arange(60) % 3})


def run(arguments):
    """What the browser prints, and what it says on the side; it and all that it started end here."""
    made = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        return made.communicate(timeout=PATIENCE)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(made.pid, signal.SIGKILL)
        made.wait(timeout=10)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    posterior().report(path, draws=50)
    return path


@pytest.fixture(scope="module", params=SCHEMES)
def seen(request, report, tmp_path_factory):
    """What was measured at each width, and the messages of the console."""
    place = tmp_path_factory.mktemp("browser")
    text = html.escape(report.read_text(encoding="utf-8"), quote=True)
    frames = "".join(f'<iframe width="{width}" height="900" srcdoc="{text}"></iframe>' for width in WIDTHS)
    page = place / "page.html"
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><script>{MEASURE}</script>{frames}<pre id="found"></pre>',
        encoding="utf-8",
    )
    printed, aside = run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--enable-logging=stderr", f"--user-data-dir={place / 'profile'}", "--window-size=1400,1000",
            f"--blink-settings=preferredColorScheme={SCHEMES[request.param]}", "--virtual-time-budget=10000",
            "--dump-dom", page.as_uri(),
        ]
    )  # fmt: skip
    found = re.search(r'<pre id="found">(.+?)</pre>', printed, re.DOTALL)
    assert found, aside[-2000:]
    return (
        request.param,
        json.loads(html.unescape(found[1])),
        [line for line in aside.splitlines() if "CONSOLE" in line],
    )


def test_the_console_is_empty(seen):
    assert seen[2] == []


@pytest.mark.parametrize("number", range(len(WIDTHS)))
def test_nothing_runs_out_of_the_page(seen, number):
    one = seen[1][number]
    assert one["width"] <= WIDTHS[number]
    assert one["scrolls"] <= one["width"] + 1
    assert one["outside"] == []


def test_the_scheme_of_the_reader_is_followed_and_text_can_be_read(seen):
    scheme, found, _ = seen
    for one in found:
        assert one["dark"] == (scheme == "dark")
        shade = sum(map(float, re.findall(r"[\d.]+", one["paper"])[:3])) / 3.0
        assert shade < 80.0 if scheme == "dark" else shade > 200.0
        assert one["texts"] > 100
        assert one["contrast"] >= 4.5


def test_the_keyboard_reaches_all_that_moves_or_opens(seen):
    for one in seen[1]:
        assert one["keys"] > 10
        assert one["focused"] == one["keys"]


def test_pictures_are_drawn_and_widths_change_the_layout_alone(seen):
    narrow, wide = seen[1]
    assert narrow["pictures"] == wide["pictures"] > 4
    assert narrow["flat"] == wide["flat"] == 0
    assert narrow["headings"] == wide["headings"]
    assert narrow["texts"] == wide["texts"]


def test_a_picture_of_the_screen_is_made(report, tmp_path):
    picture = tmp_path / "screen.png"
    run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1280,1000", f"--screenshot={picture}",
            report.as_uri(),
        ]
    )  # fmt: skip
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 20_000
