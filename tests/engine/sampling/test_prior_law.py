"""Geweke's successive conditional sampler: where nothing is observed the law of every parameter is its prior.

A sweep then draws the outcomes given the parameters and the parameters given the outcomes, each by the moves that data
would have. The distribution function of the prior makes every parameter uniform: its mean and its spread are compared
in standard errors, from effective sizes. Source: geweke2004getting.
"""

import dataclasses

import arviz
import jax
import numpy as np
import pytest
from scipy import stats

import cavity as cv
from cavity.engine.data.rules_of_arguments import bind_checked
from cavity.engine.sampling.joint import Joint
from cavity.engine.sampling.sample import chains_of

FAR = 4.5  # standard errors


def mean_of_a_gaussian(m):
    a = m.random("a", cv.gaussian(1.0, sd=2.0))
    m.random("y", cv.gaussian(a, sd=1.0))
    return {"a": stats.norm(1, 2)}, {"a": "Gaussian"}


def precision_of_a_gaussian(m):
    t = m.random("t", cv.gamma(3.0, 2.0))
    m.random("y", cv.gaussian(0.0, precision=t))
    return {"t": stats.gamma(3, scale=0.5)}, {"t": "Gamma conditional"}


def variance_of_a_gaussian(m):
    v = m.random("v", cv.inverse_gamma(4.0, 3.0))
    m.random("y", cv.gaussian(0.0, variance=v))
    return {"v": stats.invgamma(4, scale=3)}, {"v": "inverse Gamma"}


def sd_of_a_gaussian(m):
    s = m.random("s", cv.half_normal(2.0))
    m.random("y", cv.gaussian(0.0, sd=s))
    return {"s": stats.halfnorm(scale=2)}, {"s": "slice"}


def student(m):
    a, s = m.random("a", cv.gaussian(1.0, sd=2.0)), m.random("s", cv.gamma(3.0, 2.0))
    m.random("y", cv.student_t(4.0, a, s))
    return {"a": stats.norm(1, 2), "s": stats.gamma(3, scale=0.5)}, {"a": "Gaussian", "s": "slice"}


def degrees_of_freedom(m):
    d = m.random("d", cv.gamma(4.0, 1.0))
    m.random("y", cv.student_t(d, 0.0, 1.0))
    return {"d": stats.gamma(4)}, {"y": "Gaussian", "d": "slice"}


def laplace(m):
    a, s = m.random("a", cv.gaussian(1.0, sd=2.0)), m.random("s", cv.gamma(3.0, 2.0))
    m.random("y", cv.laplace(a, s))
    return {"a": stats.norm(1, 2), "s": stats.gamma(3, scale=0.5)}, {"a": "Gaussian"}


def logistic(m):
    a = m.random("a", cv.gaussian(1.0, sd=2.0))
    m.random("y", cv.bernoulli(cv.logistic(a)))
    return {"a": stats.norm(1, 2)}, {"a": "Gaussian"}


def trials(m):
    a = m.random("a", cv.gaussian(1.0, sd=2.0))
    m.random("y", cv.binomial(3, cv.logistic(a)))
    return {"a": stats.norm(1, 2)}, {"a": "Gaussian", "y": "whole numbers"}


def many_trials(m):
    a = m.random("a", cv.gaussian(1.0, sd=2.0))
    m.random("y", cv.binomial(300, cv.logistic(a)))
    return {"a": stats.norm(1, 2)}, {"a": "slice"}  # a Polya-Gamma number of 300 would be slower


def probit(m):
    a = m.random("a", cv.gaussian(0.3, sd=1.0))
    m.random("y", cv.bernoulli(cv.probit(a)))
    return {"a": stats.norm(0.3, 1)}, {"a": "Gaussian", "y": "table"}


def ordered_probit(m):
    a = m.random("a", cv.gaussian(0.3, sd=1.0))
    m.random("y", cv.ordered_probit(a, np.array([-0.7, 0.9])))
    return {"a": stats.norm(0.3, 1)}, {"a": "Gaussian", "y": "table"}


def chance(m):
    p = m.random("p", cv.beta(2.0, 3.0))
    m.random("y", cv.bernoulli(p))
    return {"p": stats.beta(2, 3)}, {"p": "Beta"}


def chances(m):
    p, n = m.random("p", cv.dirichlet([2.0, 3.0, 1.0])), m.plate("n", 3)
    m.random("y", cv.categorical(p), plates=n)
    return {"p[0]": stats.beta(2, 4)}, {"p": "Dirichlet", "y": "table"}


def mixture(m):
    n, k = m.plate("n", 2), m.plate("k", 2)
    p, mu = m.random("p", cv.beta(2.0, 3.0)), m.random("mu", cv.gaussian(0.0, sd=2.0), plates=k)
    z = m.random("z", cv.bernoulli(p), plates=n)
    m.random("y", cv.switch(z, cv.gaussian(mu[0], sd=1.0), cv.gaussian(mu[1], sd=1.0)))
    return {"p": stats.beta(2, 3), "mu[0]": stats.norm(0, 2)}, {"mu": "Gaussian", "z": "table"}


def hidden_states(m):
    t = m.plate("t", 13)  # too many states for one table
    p, q = m.random("p", cv.beta(2.0, 3.0)), m.random("q", cv.beta(4.0, 1.0))
    s = m.chain("s", over=t, first=cv.bernoulli(0.3), then=lambda b: cv.bernoulli(cv.where(b, p, q)))
    m.random("y", cv.gaussian(cv.where(s, 1.0, -1.0), sd=1.0))
    return {"p": stats.beta(2, 3), "q": stats.beta(4, 1)}, {"s": "forward filtering", "p": "Beta"}


def walk(m):
    t, r = m.plate("t", 5), m.random("r", cv.gamma(3.0, 1.0))
    x = m.chain("x", over=t, first=cv.gaussian(0.0, sd=1.0), then=lambda b: cv.gaussian(0.9 * b, precision=r))
    m.random("y", cv.gaussian(x, sd=1.0))
    return {"r": stats.gamma(3), "x[0]": stats.norm(0, 1)}, {"x": "jointly", "r": "Gamma"}


def precision_matrix(m):
    p, n = m.random("p", cv.wishart(5.0, np.eye(2))), m.plate("n", 2)
    mu = m.random("mu", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    m.random("y", cv.vector_gaussian(mu, precision=p), plates=n)
    return {"p[0,0]": stats.chi2(5)}, {"p": "Wishart", "mu": "jointly"}


def curved(m):
    h, g = m.random("h", cv.gaussian(0.0, sd=1.0)), m.random("g", cv.gaussian(0.0, sd=1.0))
    n = m.plate("n", 2)
    a = m.random("a", cv.gaussian(0.0, sd=1.0), plates=n)
    m.random("y", cv.gaussian(h * cv.sum(cv.exp(0.3 * a), over=n), sd=cv.exp(0.5 * g)))
    return {"h": stats.norm(), "g": stats.norm(), "a[0]": stats.norm()}, {"h": "Gaussian", "a": "NUTS"}


def groups(m):
    mu, t, j = m.random("mu", cv.gaussian(0.0, sd=2.0)), m.random("t", cv.gamma(6.0, 4.0)), m.plate("j", 4)
    effect = m.random("effect", cv.gaussian(mu, sd=t), plates=j)
    m.random("y", cv.gaussian(effect, sd=1.0))
    return {"mu": stats.norm(0, 2), "t": stats.gamma(6, scale=0.25)}, {"mu": "jointly", "t": "slice"}


def weibull(m):
    k, s = m.random("k", cv.gamma(5.0, 3.0)), m.random("s", cv.log_normal(0.0, sd=0.5))
    m.random("y", cv.weibull(k, s))
    return {"k": stats.gamma(5, scale=1 / 3), "s": stats.lognorm(0.5)}, {"k": "NUTS", "s": "NUTS"}


def truncated(m):
    a = m.random("a", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.truncated(cv.gaussian(a, sd=1.0), low=0.0))
    return {"a": stats.norm()}, {"a": "NUTS", "y": "NUTS"}  # the mass above the bound depends on the mean


def end_of_an_interval(m):
    b = m.random("b", cv.gamma(4.0, 1.0))
    m.random("y", cv.uniform(0.0, b))
    return {"b": stats.gamma(4)}, {"b": "slice"}  # the density jumps where b passes y


QUICK = (precision_of_a_gaussian, student, chance, truncated)
SLOW = (
    mean_of_a_gaussian, variance_of_a_gaussian, sd_of_a_gaussian, degrees_of_freedom, laplace, logistic, trials,
    many_trials, chances, mixture, hidden_states, walk, precision_matrix, curved, groups, weibull, end_of_an_interval,
    probit, ordered_probit,
)  # fmt: skip
CASES = [*QUICK, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)]


def elements(samples, name):
    """The draws of `x`, or of one element, `x[0,0]`."""
    base, *index = name.removesuffix("]").split("[")
    return samples[base][(..., *(int(number) for part in index for number in part.split(",")))]


def distance(draws, law):
    """How many standard errors the mean and the spread of the uniform numbers are from those of a uniform one."""
    uniform = law.cdf(draws)
    far = []
    for values, mean, variance in ((uniform, 1 / 2, 1 / 12), ((uniform - 0.5) ** 2, 1 / 12, 1 / 180)):
        far.append(abs(values.mean() - mean) / np.sqrt(variance / float(np.asarray(arviz.ess(values)))))
    return max(far)


def chains(m):
    """Markov chains of all variables, though nothing is observed."""
    with jax.enable_x64(True):
        return chains_of(Joint(m, bind_checked(m, {}), everything=True), 4000, 4, 0, 500)


@pytest.mark.parametrize("case", CASES)
def test_nothing_observed_is_the_prior(case):
    m = cv.Model()
    laws, moves = case(m)
    found = chains(m)
    samples, how = found.draws, {name: move.how for move in found.moves for name in move.names}
    assert not {name: how[name] for name, word in moves.items() if word not in how[name]}
    assert {name: distance(elements(samples, name), law) for name, law in laws.items()} == pytest.approx(
        dict.fromkeys(laws, 0.0), abs=FAR
    )


def test_a_wrong_conditional_is_found(monkeypatch):
    """The law is one that a move can fail: precisions drawn with a shape too large by a half."""
    from cavity.engine.sampling.conditionals import conjugate
    from cavity.factors.families import slopes

    right = conjugate.FITS["positive"][0].read
    monkeypatch.setitem(
        conjugate.FITS,
        "positive",
        (
            slopes.Fit(
                **{
                    **vars(conjugate.FITS["positive"][0]),
                    "read": lambda slope, x: (right(slope, x)[0] + 0.5, right(slope, x)[1]),
                    "slope": lambda p, x: (p[0] - 1.5) / x - p[1],
                }
            ),
        ),
    )
    m = cv.Model()
    laws, _ = precision_of_a_gaussian(m)
    assert distance(chains(m).draws["t"], laws["t"]) > FAR


@pytest.mark.slow
def test_a_wrong_auxiliary_variable_is_found(monkeypatch):
    """The normal numbers behind ordered outcomes, as if each were one class higher or the last."""
    from cavity.engine.sampling import augmented
    from cavity.factors.discrete import ordered

    right = augmented.AUXILIARIES[ordered.probit, None]
    wrong = dataclasses.replace(
        right, draw=lambda key, out, **rest: right.draw(key, jax.numpy.minimum(out + 1, 2), **rest)
    )
    monkeypatch.setitem(augmented.AUXILIARIES, (ordered.probit, None), wrong)
    m = cv.Model()
    laws, _ = ordered_probit(m)
    assert distance(chains(m).draws["a"], laws["a"]) > FAR


def test_what_no_data_depend_on_is_drawn_from_the_model():
    """The same laws, of independent draws; a chain, a switch and a mixture of terms among them."""
    for case in (student, chances, precision_matrix, hidden_states, walk, truncated):
        m = cv.Model()
        laws, _ = case(m)
        samples = cv.sample(m, {}, draws=1000, progress=False)
        assert set(samples) == {*m.randoms, *m.lets}
        assert not {name: far for name, law in laws.items() if (far := distance(elements(samples, name), law)) > FAR}
