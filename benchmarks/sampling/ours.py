"""The models in cavity; `sampler(case)` draws from the posterior by `cv.sample`."""

import cases
import numpy as np

import cavity as cv


def hierarchical(data):
    m = cv.Model("hierarchical")
    group, each = m.plate("group"), m.plate("each")
    centre = m.random("centre", cv.gaussian(0.0, sd=10.0))
    between = m.random("between", cv.gamma(shape=2.0, rate=1.0))
    within = m.random("within", cv.gamma(shape=2.0, rate=1.0))
    effect = m.random("effect", cv.gaussian(centre, precision=between), plates=group)
    m.random("y", cv.gaussian(effect, precision=within), plates=(group, each))
    return m, data


def regression(link):
    def made(data):
        m = cv.Model("regression")
        row = m.plate("row")
        w = m.random("w", cv.vector_gaussian(np.zeros(cases.WEIGHTS), covariance=4.0 * np.eye(cases.WEIGHTS)))
        x = m.input("x", cv.vector(cases.WEIGHTS), plates=row)
        m.random("y", cv.bernoulli(link(cv.dot(w, x))))
        return m, data

    return made


def classes(m):
    k = m.plate("k", cases.STATES)
    return k, m.random("centre", cv.gaussian(0.0, sd=5.0), plates=k)


def mixture(data):
    m = cv.Model("mixture")
    row = m.plate("row")
    k, centre = classes(m)
    precision = m.random("precision", cv.gamma(shape=2.0, rate=1.0), plates=k)
    share = m.random("share", cv.dirichlet(np.ones(cases.STATES)))
    z = m.random("z", cv.categorical(share), plates=row)
    m.random("y", cv.gaussian(centre[z], precision=precision[z]))
    return m, data


def factors(data):
    m = cv.Model("factors")
    column, sample, k = m.plate("column"), m.plate("sample"), cases.FACTORS
    loading = m.random("loading", cv.vector_gaussian(np.zeros(k), covariance=np.eye(k)), plates=column)
    score = m.random("score", cv.vector_gaussian(np.zeros(k), covariance=np.eye(k)), plates=sample)
    noise = m.random("noise", cv.gamma(shape=2.0, rate=1.0), plates=column)
    m.random("y", cv.gaussian(cv.dot(loading, score), precision=noise), plates=(column, sample))
    return m, data


def hmm(data):
    m = cv.Model("hidden Markov model")
    t = m.plate("t")
    k, centre = classes(m)
    precision = m.random("precision", cv.gamma(shape=2.0, rate=1.0))
    change = m.random("change", cv.dirichlet(np.ones(cases.STATES)), plates=k)
    start = cv.categorical(np.full(cases.STATES, 1.0 / cases.STATES))
    z = m.chain("z", over=t, first=start, then=lambda last: cv.categorical(change[last]))
    m.random("y", cv.gaussian(centre[z], precision=precision))
    return m, data


def topics(data):
    m = cv.Model("topics")
    document, token, topic = m.plate("document", cases.DOCUMENTS), m.plate("token"), m.plate("topic", cases.TOPICS)
    theta = m.random("theta", cv.dirichlet(np.full(cases.TOPICS, 0.5)), plates=document)
    phi = m.random("phi", cv.dirichlet(np.full(cases.WORDS, 0.1)), plates=topic)
    z = m.random("z", cv.categorical(theta[m.input("of", cv.index(document), plates=token)]))
    m.random("word", cv.categorical(phi[z]))
    return m, {"of": data["document"], "word": data["word"]}


MODELS = {
    "hierarchical normal": hierarchical,
    "probit regression": regression(cv.probit),
    "logistic regression": regression(cv.logistic),
    "mixture of normals": mixture,
    "factor model": factors,
    "hidden Markov model": hmm,
    "topics": topics,
}


def sampler(case):
    model, data = MODELS[case](cases.DATA[case])

    def sample(draws, warmup, seed):
        found = cv.sample(model, data, draws=draws, warmup=warmup, chains=1, seed=seed, progress=False)
        names = set(found.names) if hasattr(found, "names") else set(model.randoms)
        return {n: found[n] for n in names if n in model.randoms and n not in data}

    return sample
