"""Reports and parts of notebooks: whole pages, read as a browser reads them, with the numbers of the posterior."""

import re
import sys
import warnings

import numpy as np
import pytest
from read_html import Page
from small_models import mean_model, skills

import cavity as cv
from cavity.engine.html.styles import DARK, LIGHT, MARKS, TEXT, part, style_sheet
from cavity.models.trees.tree import Tree

EVIL = '<script>alert("x")</script>&\'"\x00'


def line(name="line", points=40):
    m = cv.Model(name)
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    start = m.random("start", cv.gaussian(0.0, variance=10.0))
    slope = m.random("slope", cv.gaussian(0.0, variance=10.0))
    m.random("y", cv.gaussian(start + slope * x, variance=1.0), plates=n)
    x = np.random.default_rng(0).normal(size=points)
    y = 1.0 + 2.0 * x + np.random.default_rng(1).normal(size=points)
    return cv.infer(m, {"x": x, "y": np.where(np.arange(points) == 3, np.nan, y)})


def evil():
    m = cv.Model(EVIL)
    n = m.plate(f"plate {EVIL}")
    a = m.random(f"a {EVIL}", cv.gaussian(0.0, variance=1.0))
    m.random(f"b {EVIL}", cv.gaussian(a, variance=1.0), plates=n)
    return cv.infer(m, {f"b {EVIL}": [0.5, 1.0]})


def games():
    data = {"winner": [0, 1, 0, 2], "loser": [1, 2, 2, 3]}
    return cv.infer(skills(), data, sizes={"player": 4})


def dice():
    m = cv.Model("dice")
    weights = m.random("weights", cv.dirichlet([1.0, 2.0, 0.5]))
    m.random("x", cv.categorical(weights), plates=m.plate("n"))
    m.random("next", cv.categorical(weights), plates=m.plate("later", 50))
    return cv.infer(m, {"x": [0, 1, 1, 0, 2, 1]})


def coins():
    m = cv.Model("coins")
    coin = m.random("coin", cv.bernoulli(0.25))
    m.constrain(coin | m.random("other", cv.bernoulli(0.5)))
    return cv.infer(m, {})


MADE = {"line": line, "evil": evil, "games": games, "dice": dice, "coins": coins}
SECTIONS = [
    "Model", "Data", "Plan", "Convergence", "Marginals", "Predictive checks", "Evidence by factor", "Trust", "Versions",
]  # fmt: skip


@pytest.fixture(scope="module")
def posteriors():
    return {name: make() for name, make in MADE.items()}


@pytest.fixture(scope="module")
def texts(posteriors, tmp_path_factory):
    place = tmp_path_factory.mktemp("reports")
    for name, posterior in posteriors.items():
        posterior.report(place / f"{name}.html", draws=50)
    return {name: (place / f"{name}.html").read_text(encoding="utf-8") for name in MADE}


@pytest.fixture(scope="module")
def chains():
    return cv.sample(mean_model(), {"x": [1.0, 2.0, 5.0]}, draws=40, chains=2, progress=False)


def tree(leaves):
    """A comb, whose branch points follow each other."""
    parent = [*range(leaves, 2 * leaves - 1), 2 * leaves - 2, -1, *range(leaves, 2 * leaves - 2)]
    depth = [np.inf] * leaves + list(np.linspace(0.1, 3.0, leaves - 1))
    return Tree(np.array(parent), np.array(depth), tuple(f"leaf {i} {EVIL}" for i in range(leaves)))


def faults(text):
    """What is wrong with a page or a part of one: for readers, for screen readers, and for those who are offline."""
    page, found = Page(text), []
    ids = page.values("id")
    found += [f"{one} is there twice" for one in {one for one in ids if ids.count(one) > 1}]
    found += [f"{one} leads nowhere" for one in page.values("href") if one.removeprefix("#") not in ids]
    found += [f"{one} labels nothing" for one in page.values("aria-labelledby") if one not in ids]
    found += [f"<{e.name}> runs or loads" for e in page.all("script", "link", "iframe", "img", "object", "embed")]
    found += [f"{key} runs" for e in page.elements for key in e.attributes if key.startswith("on")]
    found += ["another page"] * len(re.findall(r"(?:https?:)?//\w|url\(|@import", text))
    for picture in page.all("svg"):
        told = picture.attributes.get("aria-label", "")
        if picture.attributes.get("role") != "img" or len(told) < 20:
            found.append(f"a picture without words: {told!r}")
    for cell in page.all("th"):
        if cell.attributes.get("scope") not in ("row", "col"):
            found.append(f"{cell.text} is the head of neither row nor column")
    for frame in [e for e in page.elements if "wide" in e.attributes.get("class", "").split()]:
        if frame.attributes.get("tabindex") != "0" or not frame.attributes.get("aria-label"):
            found.append("a frame that the keyboard does not reach")
    levels = [int(e.name[1]) for e in page.all("h1", "h2", "h3", "h4")]
    found += [f"h{b} after h{a}" for a, b in zip([0, *levels], levels, strict=False) if b > a + 1]
    if re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]", text):
        found.append("a character that no page may hold")
    return found


# whole pages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MADE)
def test_reports_are_sound_pages(name, texts):
    page = Page(texts[name])
    assert faults(texts[name]) == []
    assert page.declared.lower() == "doctype html"
    assert page.all("html")[0].attributes["lang"] == "en"
    assert [e.text for e in page.all("h2")] == SECTIONS
    assert (
        len(page.all("h1"))
        == len(page.all("main"))
        == len(page.all("title")) - len(page.all("svg")) - sum(e.name == "g" for e in page.elements)
    )
    assert "default-src 'none'" in texts[name]


BAD = [
    "<p id=a></p><p id=a></p>", "<a href=https://x.org>x</a>", "<a href='#lost'>x</a>", "<svg></svg>", "<th>x</th>",
    "<h1>a</h1><h3>b</h3>", "<p onclick=f()>x</p>", "<div class=wide></div>", "<script></script>", "\x01",
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
def test_faults_are_seen(bad):
    assert faults(bad)


@pytest.mark.parametrize("bad", ["<p><b></p></b>", "<p>", "</p>", "<p a=1 a=2></p>"])
def test_what_is_not_well_formed_is_seen(bad):
    with pytest.raises(ValueError, match=r"clos|twice"):
        Page(bad)


def test_what_users_name_is_escaped(texts, posteriors):
    assert Page(texts["evil"]).all("h1")[0].text == EVIL.replace("\x00", "\ufffd")
    assert "<script" not in texts["evil"]
    assert f"b {EVIL}".replace("\x00", "\ufffd") in [e.text for e in Page(texts["evil"]).all("h3")]
    for one in (posteriors["evil"], posteriors["evil"].model, posteriors["evil"].graph, tree(4)):
        assert "<script" not in one._repr_html_()


def test_the_numbers_are_those_of_the_posterior(texts, posteriors):
    posterior = posteriors["line"]
    cells = {e.text for e in Page(texts["line"]).all("td")}
    for name in ("start", "slope"):
        assert {f"{posterior[name].mean:.5g}", f"{posterior[name].sd:.5g}"} <= cells
    assert f"{posterior.log_evidence:.8g}" in texts["line"]
    for part_of, value in posterior.evidence.items():
        assert part_of in texts["line"]
        assert f"{value:.5g}" in cells
    assert posterior.graph.blocks[0].choice.reason in {e.text for e in Page(texts["line"]).all("td")}
    assert posterior.verdict.level in {e.text for e in Page(texts["line"]).all("span")}
    assert cv.__version__ in cells
    assert cells >= {"40", "1"}  # entries of x, and the missing one of y


def checks(text):
    """Of the table of predictive checks each row, by its statistic: observed, 5 %, 95 %, and the share above."""
    part_of = text.split('id="checks"')[1].split("</section>")[0]
    page = Page(part_of[part_of.index("<table") : part_of.index("</table>") + len("</table>")])
    cells = np.array([float(e.text) for e in page.all("td")]).reshape(-1, 4)
    return dict(zip([e.text for e in page.all("th") if e.attributes["scope"] == "row"], cells, strict=True))


def test_predictive_checks_hold_what_was_observed(texts, posteriors):
    found = checks(texts["line"])
    y = np.delete(posteriors["line"].observed["y"], 3)
    assert found["mean"][0] == pytest.approx(y.mean(), rel=1e-4)
    assert found["sd"][0] == pytest.approx(y.std(), rel=1e-4)
    for observed, low, high, above in (found["mean"], found["sd"]):
        assert low < observed < high
        assert 0.05 < above < 0.95


def test_a_model_that_does_not_fit_is_seen_in_the_checks(tmp_path):
    m = cv.Model("narrow")
    mean = m.random("mean", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(mean, variance=0.01), plates=m.plate("n"))
    cv.infer(m, {"y": np.linspace(-3.0, 3.0, 30)}).report(tmp_path / "narrow.html", draws=50)
    observed, _, high, above = checks((tmp_path / "narrow.html").read_text(encoding="utf-8"))["sd"]
    assert observed > 5.0 * high
    assert above == 0.0


def test_the_same_posterior_makes_the_same_page(posteriors, texts, tmp_path):
    posteriors["line"].report(tmp_path / "again.html", draws=50)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == texts["line"]


def test_no_matplotlib_is_needed(posteriors, monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    posteriors["games"].report(tmp_path / "page.html", draws=20)
    assert Page((tmp_path / "page.html").read_text(encoding="utf-8")).all("svg")


def test_a_contradiction_is_reported_too(tmp_path):
    m = cv.Model("never")
    m.constrain(m.random("coin", cv.bernoulli(1.0)) & ~m.random("other", cv.bernoulli(1.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.CavityWarning)
        posterior = cv.infer(m, {})
        posterior.report(tmp_path / "never.html", draws=20)
    text = (tmp_path / "never.html").read_text(encoding="utf-8")
    assert faults(text) == []
    assert "contradiction" in text
    assert faults(posterior._repr_html_()) == []


def test_bad_paths_and_numbers_are_told(posteriors, tmp_path):
    with pytest.raises(cv.ModelError, match="draws"):
        posteriors["games"].report(tmp_path / "a.html", draws=0)
    with pytest.raises(OSError, match="nowhere"):
        posteriors["games"].report(tmp_path / "nowhere" / "a.html")
    assert list(tmp_path.iterdir()) == []


# parts of notebooks ---------------------------------------------------------------------------------------------------


def shown(posteriors, chains):
    for posterior in posteriors.values():
        yield from (posterior, posterior.model, posterior.graph, *posterior.values())
    yield from (chains, tree(5), tree(300), cv.Model("empty"))


def test_parts_are_sound_and_can_stand_on_one_page(posteriors, chains):
    made = [one._repr_html_() for one in shown(posteriors, chains)]
    assert len(made) > 30
    assert [faults(text) for text in made if faults(text)] == []
    assert [Page(text).values("id") for text in made if Page(text).values("id")] == []
    assert {type(text) for text in made} == {str}


def test_a_picture_of_a_model_has_all_that_it_declares(posteriors):
    for posterior in posteriors.values():
        model = posterior.model
        page = Page(model._repr_html_())
        titles = [e.text for e in page.all("title") if e.above[-1].name == "g"]
        named = [*model.inputs, *model.randoms, *model.lets]
        assert titles == [name.replace("\x00", "\ufffd") for name in named]
        circles = [e for e in page.all("circle") if e.attributes.get("class") != "stroke"]
        assert len(circles) == len(named)
        heads = [e.text for e in page.all("th") if e.attributes["scope"] == "row"]
        assert heads == [name.replace("\x00", "\ufffd") for name in [*named, *model.constraints]]


def test_observed_variables_are_shaded(posteriors):
    def shaded(text):
        """The group of a variable has its name first, then its circle."""
        page = Page(text)
        groups = [c.above[-1] for c in page.all("circle") if c.attributes.get("fill") == "var(--shade)"]
        return {t.text for t in page.all("title") if any(t.above and t.above[-1] is group for group in groups)}

    assert shaded(posteriors["line"].model._repr_html_()) == {"x"}
    assert shaded(posteriors["line"]._repr_html_()) == {"x", "y"}


def test_large_things_are_cut_and_it_is_said():
    m = cv.Model("large")
    for i in range(150):
        m.random(f"v{i}", cv.gaussian(0.0, variance=1.0))
    text = m._repr_html_()
    assert "The first 60 of 300 nodes are drawn" in text
    assert "the first 40 of 150" in text
    assert len(Page(text).all("circle")) == 30
    many = cv.infer(wide(), {})["z"]._repr_html_()
    assert "Elements in their order: all 1,000." in many
    assert "Numbers of z (the first 40 of 1,000)" in many
    assert len(many) < 60_000
    assert "60 ends stand for 300 leaves" in tree(300)._repr_html_()


def wide():
    m = cv.Model("wide")
    m.random("z", cv.gaussian(0.0, variance=1.0), plates=m.plate("n", 1000))
    return m


def test_densities_and_shares_are_drawn_to_scale(posteriors):
    page = Page(posteriors["coins"]["coin"]._repr_html_())
    widths = [float(e.attributes["width"]) for e in page.all("rect")]
    assert widths[1] / sum(widths) == pytest.approx(posteriors["coins"]["coin"].mean, abs=1e-3)
    page = Page(posteriors["line"]["slope"]._repr_html_())
    curve = np.array([p.split(",") for p in page.all("polyline")[0].attributes["points"].split()], float)
    assert curve[np.argmin(curve[:, 1]), 0] == pytest.approx(170.0, abs=1.0)  # a Gaussian's mode is in the middle


def test_chains_have_a_row_for_each_number(chains):
    page = Page(chains._repr_html_())
    rows = [e.text for e in page.all("th") if e.attributes["scope"] == "row"]
    assert len(rows) == sum(array[0, 0].size for array in chains.draws.values())
    cells = {e.text for e in page.all("td")}
    assert f"{float(chains.mean('mean')):.5g}" in cells
    assert f"{float(chains.sd('mean')):.5g}" in cells


def test_weighted_draws_are_averaged_by_their_weights(chains):
    from dataclasses import replace

    weighted = replace(chains, log_weights=np.random.default_rng(0).normal(size=chains["mean"].shape))
    cells = {e.text for e in Page(weighted._repr_html_()).all("td")}
    assert f"{float(weighted.mean('mean')):.5g}" in cells
    assert f"{float(chains.mean('mean')):.5g}" not in cells


def test_trees_have_all_their_leaves():
    words = [e.text for e in Page(tree(12)._repr_html_()).all("text")]
    assert sum(word.startswith("leaf ") for word in words) == 12


# colours --------------------------------------------------------------------------------------------------------------


def luminance(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_can_be_told_apart(palette):
    for name in TEXT:
        assert contrast(palette[name], palette["paper"]) >= 4.5, name
    assert contrast(palette["ink"], palette["shade"]) >= 4.5
    assert contrast(palette["ink"], palette["panel"]) >= 4.5
    for name in MARKS:
        assert contrast(palette[name], palette["paper"]) >= 3.0, name


def test_every_colour_that_is_used_is_in_both_palettes(texts):
    assert set(LIGHT) == set(DARK)
    used = {
        name for text in [*texts.values(), style_sheet(), part("x")] for name in re.findall(r"var\(--(\w+)\)", text)
    }
    assert used <= set(LIGHT)


def test_the_page_follows_the_system_and_a_part_the_notebook():
    assert "@media(prefers-color-scheme:dark)" in style_sheet()
    assert "data-jp-theme-light" in part("x")
    assert "data-jp-theme-light" not in style_sheet()
