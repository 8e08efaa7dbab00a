"""The beta-Bernoulli prior of which rows have which features, and its stick-breaking form."""

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked


@call_checked
def indian_buffet(features: int, construction: str = "beta-bernoulli", mass: float | str = 1.0) -> cv.Model:
    """Which rows have which features: with many features an Indian buffet process of that mass.

    `features` is their number, `construction` "beta-bernoulli" or "stick-breaking". With the first, `activity_k ~
    Beta(mass / features, 1)` and `active_nk ~ Bernoulli(activity_k)`: given `active`, the posterior Beta(mass /
    features + m_k, 1 + rows - m_k) is exact. With the second activities decrease, `activity_k = stick_1 .. stick_k` of
    `stick ~ Beta(mass, 1)`: the process itself, cut off after so many features. Beliefs about sticks are those of a
    bound (`cumprod`).

    `mass` is a positive number or "learned", with the prior Gamma(1, 1). Random: `active` (row, feature), usually
    observed; `activity` (feature), or `stick`; `mass`. Returns the model. Raises ModelError for another word
    or number. Source: griffiths2011indian, teh2007stick.
    """
    if construction not in ("beta-bernoulli", "stick-breaking"):
        raise cv.ModelError(f'construction= is "beta-bernoulli" or "stick-breaking"; found {construction!r}.')
    if mass != "learned" and not (not isinstance(mass, str) and 0.0 < mass < np.inf):
        raise cv.ModelError(f'mass= is a positive number or "learned"; found {mass!r}.')
    m = cv.Model("indian buffet")
    row, feature = m.plate("row"), m.plate("feature", features)
    total = m.random("mass", cv.gamma(shape=1.0, rate=1.0)) if mass == "learned" else mass
    if construction == "beta-bernoulli":
        activity = m.random("activity", cv.beta(total / features, 1.0), plates=feature)
    else:
        stick = m.random("stick", cv.beta(total, 1.0), plates=feature)
        activity = m.let("activity", cv.cumprod(stick, over=feature))
    m.random("active", cv.bernoulli(activity), plates=(row, feature))
    return m
