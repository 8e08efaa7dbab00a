"""An observed category picks an entry of the expected logarithms: the energy of the one-hot rule, without its table."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import cavity as cv
from cavity.engine.blocks.energy import block_energy
from cavity.engine.run.machine import Machine
from cavity.engine.values.plated import Placed
from cavity.engine.values.scope import Scope
from cavity.factors.moments import Category, Simplex

TOPICS, CLASSES, TOKENS, DOCUMENTS = 3, 50, 40, 4


def topics():
    m = cv.Model("topics")
    topic, document, token = m.plate("topic", TOPICS), m.plate("document", DOCUMENTS), m.plate("token", TOKENS)
    source = m.input("source", cv.index(document), plates=token)
    theta = m.random("theta", cv.dirichlet(np.ones(TOPICS)), plates=document)
    phi = m.random("phi", cv.dirichlet(np.full(CLASSES, 0.1)), plates=topic)
    z = m.random("z", cv.categorical(theta[source]))
    m.random("word", cv.categorical(phi[z]))
    return m


def by_document():
    """The probabilities share a plate with the words, but not all of theirs."""
    m = cv.Model("by document")
    document, token = m.plate("document", DOCUMENTS), m.plate("token", TOKENS // DOCUMENTS)
    phi = m.random("phi", cv.dirichlet(np.full(CLASSES, 0.1)), plates=document)
    m.random("word", cv.categorical(phi), plates=(document, token))
    return m


def machine_of(model):
    sizes = {name: size for name, (size, _) in model.sizes.items()}
    return Machine(cv.compile(model, observed=["word"], method="vmp").plan, sizes)


def words(shape=(TOKENS,)):
    return np.random.default_rng(0).integers(CLASSES, size=shape)


def block_and_scope(machine, data):
    block = next(block for block in machine.graph.blocks if block.name == "word")
    rng = np.random.default_rng(1)
    found = {}
    for name in block.latent:
        shape = machine.plates_shape(name)
        if name == "phi":
            found[name] = Simplex(jnp.asarray(np.log(rng.dirichlet(np.ones(CLASSES), size=shape))))
        else:
            found[name] = Category(jnp.asarray(rng.dirichlet(np.ones(TOPICS), size=shape)))
    return block, machine.scope({name: jnp.asarray(array) for name, array in data.items()}, found)


def dense(block, scope: Scope):
    """The same energy with the outcome as one-hot moments of a belief."""
    word = scope.data["word"]
    outcome = Category(jax.nn.one_hot(word, CLASSES, dtype=float))
    hidden = {name: array for name, array in scope.data.items() if name != "word"}
    moments = {**scope.moments, "word": Placed(outcome, block.out.plates)}
    return block_energy(block, dataclasses.replace(scope, data=hidden, moments=moments))


@pytest.mark.parametrize("case", ["topics", "by document", "missing"])
def test_the_energy_and_its_gradient_are_those_of_one_hot_moments(case):
    if case == "by document":
        model, data = by_document(), {"word": words((DOCUMENTS, TOKENS // DOCUMENTS))}
    else:
        model, data = topics(), {"word": words(), "source": np.arange(TOKENS) % DOCUMENTS}
    with jax.enable_x64(True):
        machine = machine_of(model)
        if case == "missing":
            data["word present"] = (np.arange(TOKENS) % 5 > 0).astype(float)
        block, scope = block_and_scope(machine, data)

        def gathered(moments):
            return block_energy(block, scope.with_moments(moments))

        def one_hot(moments):
            return dense(block, scope.with_moments(moments))

        here, there = (jax.value_and_grad(f)(scope.moments) for f in (gathered, one_hot))
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(there), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-13, atol=1e-13)


def sizes(jaxpr):
    for equation in jaxpr.eqns:
        yield from (variable.aval.size for variable in equation.outvars)
        for inner in jaxprs_in_params(equation.params):
            yield from sizes(inner)


def test_no_array_has_tokens_times_words():
    with jax.enable_x64(True):
        machine = machine_of(topics())
        block, scope = block_and_scope(machine, {"word": words(), "source": np.arange(TOKENS) % DOCUMENTS})
        gradient = jax.grad(lambda moments: block_energy(block, scope.with_moments(moments)))
        traced = jax.make_jaxpr(gradient)(scope.moments)
    assert max(sizes(traced.jaxpr)) <= max(TOKENS * TOPICS, TOPICS * CLASSES)
