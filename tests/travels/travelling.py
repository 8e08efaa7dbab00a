"""What other processes do: a small inference by NumPy or by machine code, and a chain."""

import cavity as cv

DATA = {"y": [1.0, 2.0, 4.0]}


def model():
    m = cv.Model("level")
    n = m.plate("n")
    a = m.random("a", cv.gaussian(0.0, variance=4.0))
    m.random("y", cv.gaussian(a, variance=1.0), plates=n)
    return m


def evidence(execution="auto"):
    """Its log evidence, or what was raised."""
    try:
        return cv.infer(model(), DATA, execution=execution).log_evidence
    except cv.CavityError as error:
        return f"{type(error).__name__}: {error}"


def chain(_):
    """What a sampler says."""
    try:
        return float(cv.sample(model(), DATA, draws=3, warmup=1, chains=1, progress=False).mean("a"))
    except cv.CavityError as error:
        return f"{type(error).__name__}: {error}"


def mean_of(posterior):
    """Of a posterior that came from elsewhere."""
    return float(posterior["a"].mean)


def posterior_of(sent, data):
    """Of a model that came from elsewhere."""
    return cv.infer(sent, data)


def log_evidence_of(sent, data):
    """The same, its log evidence."""
    return posterior_of(sent, data).log_evidence
