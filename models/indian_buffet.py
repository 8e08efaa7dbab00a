"""The beta-Bernoulli prior of which rows have which features, and its stick-breaking form."""

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]


def indian_buffet(features: int, construction: str = "beta-bernoulli", mass: float | str = 1.0) -> cv.Model:
    """Which rows have which features: with many features an Indian buffet process of that mass.

    `features` is their number, `construction` "beta-bernoulli" or "stick-breaking". With the first, `activity_k ~
    Beta(mass / features, 1)` and `active_nk ~ Bernoulli(activity_k)`: given `active`, the posterior Beta(mass /
    features + m_k, 1 + rows - m_k) is exact. With the second feature k is active with probability `stick_1 .. stick_k`
    and `stick ~ Beta(mass, 1)`, a truncation to so many features: a row is `active` where it is `kept` by every stick
    up to k, `kept_nkl ~ Bernoulli(stick_l)`, for a Bernoulli variable of a product of more than two random numbers has
    no operator. Infer it with method="ep", which approximates: rows x features^2 booleans.

    `mass` is a positive number or "learned", with the prior Gamma(1, 1). Random: `active` (row, feature), usually
    observed; `activity` (feature), or `stick` and `kept`; `mass`. Returns the model. Raises ModelError for another word
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
        m.random("active", cv.bernoulli(activity), plates=(row, feature))
        return m
    level, number = m.plate("level", features), np.arange(features)
    stick = m.random("stick", cv.beta(total, 1.0), plates=level)
    later = m.random("later", cv.bernoulli((number > number[:, None]) * 1.0), plates=(feature, level))
    kept = m.random("kept", cv.bernoulli(stick), plates=(row, feature, level))
    m.let("active", cv.all(kept | later, over=level))
    return m
