"""Seven models with simulated data, and the numbers whose effective draws are counted: free of the order of classes."""

import numpy as np

rng = np.random.default_rng(7)
GROUPS, EACH = 50, 10
ROWS, WEIGHTS = 500, 8
STATES = 3
SAMPLES, COLUMNS, FACTORS = 200, 10, 2
DOCUMENTS, TOKENS, WORDS, TOPICS = 30, 60, 50, 3


def hierarchical():
    effect = rng.normal(2.0, 1.0, GROUPS)
    return {"y": rng.normal(effect[:, None], 0.7, (GROUPS, EACH))}


def regression(link):
    x = rng.normal(size=(ROWS, WEIGHTS))
    score = x @ np.linspace(-1.5, 1.5, WEIGHTS)
    noise = rng.normal(size=ROWS) if link == "probit" else rng.logistic(size=ROWS)
    return {"x": x, "y": (score + noise > 0).astype(int)}


def mixture():
    z = rng.choice(3, ROWS, p=[0.5, 0.3, 0.2])
    return {"y": rng.normal(np.array([-3.0, 0.0, 4.0])[z], np.array([0.7, 0.7, 1.2])[z])}


def factors():
    loading = rng.normal(size=(COLUMNS, FACTORS))
    return {"y": loading @ rng.normal(size=(FACTORS, SAMPLES)) + rng.normal(0, 0.6, (COLUMNS, SAMPLES))}


def hmm():
    z = np.zeros(ROWS, int)
    for t in range(1, ROWS):
        z[t] = rng.choice(3, p=np.full(3, 0.05) + 0.85 * (np.arange(3) == z[t - 1]))
    return {"y": rng.normal(np.array([-2.0, 0.0, 3.0])[z], 0.8)}


def topics():
    theta = rng.dirichlet(np.full(TOPICS, 0.5), DOCUMENTS)
    phi = rng.dirichlet(np.full(WORDS, 0.1), TOPICS)
    document = np.repeat(np.arange(DOCUMENTS), TOKENS)
    topic = np.array([rng.choice(TOPICS, p=theta[d]) for d in document])
    return {"document": document, "word": np.array([rng.choice(WORDS, p=phi[k]) for k in topic])}


DATA = {
    "hierarchical normal": hierarchical(),
    "probit regression": regression("probit"),
    "logistic regression": regression("logistic"),
    "mixture of normals": mixture(),
    "factor model": factors(),
    "hidden Markov model": hmm(),
    "topics": topics(),
}


def likelihood_of_words(draws, data):
    """Mean log probability of a token."""
    word = np.einsum("...dk,...kw->...dw", draws["theta"], draws["phi"])
    return {"likelihood": np.log(word[..., data["document"], data["word"]]).mean(-1)}


def of_factors(draws, data):
    """What turning the factors does not change."""
    shared = np.einsum("...dk,...dk->...d", draws["loading"], draws["loading"])
    return {"noise": draws["noise"], "shared": shared}


WATCHED = {
    "hierarchical normal": lambda draws, data: {n: draws[n] for n in ("centre", "between", "within")},
    "probit regression": lambda draws, data: {"w": draws["w"]},
    "logistic regression": lambda draws, data: {"w": draws["w"]},
    "mixture of normals": lambda draws, data: {"centre": np.sort(draws["centre"], -1)},
    "factor model": of_factors,
    "hidden Markov model": lambda draws, data: {
        "centre": np.sort(draws["centre"], -1),
        "precision": draws["precision"],
    },
    "topics": likelihood_of_words,
}
