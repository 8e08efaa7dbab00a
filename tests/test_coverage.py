"""Coverage: the page is current, every numeric factor of Infer.NET has a construct that auto serves, and they run."""

import inspect

import numpy as np
import pytest
from doc_scripts import DOCS, load

import cavity as cv

coverage = load("make_coverage")


def test_the_page_is_current():
    assert coverage.renewed() == coverage.PAGE.read_text(), "run python docs/make_coverage.py"


def test_every_factor_of_theirs_has_a_construct_or_a_reason():
    for entry in coverage.ROWS:
        assert set(entry["ours"]) <= set(coverage.CONSTRUCTS), entry
        assert entry["ours"] or entry["reason"], entry
        text = any(word in entry["theirs"] + entry["arguments"] for word in ("String", "Char", "Enum"))
        of_distributions = any(word in entry["arguments"] for word in ("CanGet", "ITruncatableDistribution"))
        assert bool(entry["ours"]) != (text or of_distributions), entry


def most_random(name):
    """The pattern with the most random arguments that auto serves."""
    construct = coverage.CONSTRUCTS[name]
    served = (p for p in coverage.patterns(construct) if coverage.served(construct, p, "auto")[0] is not None)
    return next(served, None)


@pytest.mark.parametrize("name", coverage.CONSTRUCTS)
def test_auto_serves_every_construct(name):
    assert most_random(name) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", coverage.CONSTRUCTS)
def test_every_construct_runs(name):
    use = coverage.use(coverage.CONSTRUCTS[name], most_random(name))
    posterior = cv.infer(use.model, use.data, sizes=use.sizes)
    assert posterior.converged, posterior.diagnosis
    for variable in use.model.randoms:
        if variable not in use.data:
            assert np.all(np.isfinite(posterior[variable].mean)), variable


def test_the_language_page_names_the_whole_vocabulary():
    """Every function of the front door that makes a term or an expression stands in the section on the vocabulary."""
    page = (DOCS / "language.md").read_text()
    section = page[page.index("## Vocabulary") : page.index("## Answers")]
    makers = ("cavity.factors.", "cavity.compiler.language.functions")
    functions = {name for name in cv.__all__ if inspect.isfunction(getattr(cv, name))}
    words = {name for name in functions if getattr(cv, name).__module__.startswith(makers)}
    domains = {name for name in words if getattr(cv, name).__module__ == "cavity.factors.domains"}
    assert {"gaussian", "softmax", "switch", "factor"} <= words - domains
    assert not {name for name in words - domains if f"`{name}(" not in section}
    assert not {name for name in domains if f"`cv.{name}(" not in page}
