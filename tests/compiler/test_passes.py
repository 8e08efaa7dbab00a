"""Passes are pure, from a draft to a draft, and a plan's blocks are of classes that the engine knows."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import cavity as cv
from cavity.compiler.algebra.known import ungathered
from cavity.compiler.blocks.base import Block
from cavity.compiler.blocks.energy import EnergyBlock
from cavity.compiler.graph import Draft, Plan
from cavity.compiler.methods import AUTO
from cavity.compiler.passes.given import Part
from cavity.compiler.passes.schedule import schedule
from cavity.compiler.plan import PASSES, make_plan
from cavity.engine.blocks.kinds import KINDS


def games(m):
    """Sites, with margins that are integrated out, and skills that share one belief."""
    player, game = m.plate("player", 3), m.plate("game", 4)
    winner, loser = (m.input(name, cv.index(player), plates=game) for name in ("winner", "loser"))
    skill = m.random("skill", cv.gaussian(0.0, variance=0.5), plates=player)
    m.constrain(m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0)) > 0)
    return ()


def between(m):
    """Constraints that become one interval."""
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.constrain(x > 0)
    m.constrain(x < 1)
    return ()


def loop(m):
    """Tables that become one network."""
    a, b = m.random("a", cv.bernoulli(0.3)), m.random("b", cv.bernoulli(0.6))
    for name in ("c", "d"):
        m.let(name, a | b if name == "c" else a & b)
    return ("c", "d")


def missing(m):
    """A factor that is split into cases, an energy, and a variable that is computed forward."""
    n = m.plate("n", 3)
    scale = m.random("scale", cv.gamma(shape=2.0, rate=1.0))
    x = m.random("x", cv.gaussian(0.0, precision=scale), plates=n)
    m.random("y", cv.gaussian(x, variance=1.0))
    m.random("later", cv.gaussian(x, variance=1.0))
    return ("x", "y")


def states(m):
    """A chain with a random parameter."""
    drift = m.random("drift", cv.gaussian(0.0, variance=1.0))
    t = m.plate("t", 3)
    prior = cv.gaussian(0.0, variance=1.0)
    x = m.chain("x", over=t, first=prior, then=lambda previous: cv.gaussian(previous + drift, variance=1.0))
    m.random("y", cv.gaussian(x, variance=1.0))
    return ("y",)


def mixed(m):
    """A switch under EP: slots."""
    clean = m.random("clean", cv.bernoulli(0.5))
    mean = m.random("mean", cv.gaussian(0.0, variance=1.0))
    m.random("x", cv.switch(clean, cv.gaussian(mean, variance=1.0), cv.gaussian(0.0, variance=9.0)))
    return ("x",)


MODELS = {build.__name__: build for build in (games, between, loop, missing, states, mixed)}


def first_draft(name):
    model = cv.Model(name)
    observed = MODELS[name](model)
    incomplete = frozenset({"x"} if name == "missing" else ())
    sizes = {plate: size for plate, (size, _) in model.sizes.items()}
    return Draft(model, frozenset(observed), incomplete, AUTO, sizes=sizes)


def contents(value):
    """A value with its records taken apart, down to what is compared by identity."""
    if isinstance(value, (Draft, Block)):
        return [(field.name, contents(getattr(value, field.name))) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        return [(key, contents(part)) for key, part in value.items()]
    return [contents(part) for part in value] if isinstance(value, (tuple, list)) else value


@pytest.mark.parametrize("name", MODELS)
def test_a_pass_leaves_its_draft_as_it_is_and_makes_the_same_again(name):
    draft = first_draft(name)
    for each in PASSES:
        before = contents(draft)
        after, again = each.step(draft), each.step(draft)
        assert type(after) is Draft, each
        assert contents(draft) == before, each
        assert [str(block.choice) for block in after.blocks] == [str(block.choice) for block in again.blocks], each
        draft = after
    plan = schedule(draft)
    made = make_plan(draft.model, first_draft(name).observed, first_draft(name).missing, sizes=draft.sizes)
    assert type(plan) is type(made) is Plan
    assert [(type(b), b.name, b.choice) for b in plan.blocks] == [(type(b), b.name, b.choice) for b in made.blocks]


def test_passes_have_names_of_their_own():
    assert len({each.name for each in PASSES}) == len(PASSES)
    assert " ".join(map(str, PASSES)).split()[:4] == ["check", "roles", "pairs", "choose"]


def concrete(base):
    for made in base.__subclasses__():
        yield from concrete(made)
        if not inspect.isabstract(made):
            yield made


def test_the_engine_knows_every_class_of_blocks():
    """A block sends messages, as its class says how, or it is an energy."""
    assert set(KINDS) == {made for made in concrete(Block) if made is not EnergyBlock}


@pytest.mark.parametrize("made", sorted({*concrete(Block)}, key=lambda made: made.__name__))
def test_blocks_are_frozen(made):
    assert made.__dataclass_params__.frozen
    assert "kind" not in {field.name for field in dataclasses.fields(made)}


@pytest.mark.parametrize("name", MODELS)
def test_a_block_sends_messages_to_what_has_a_belief(name):
    draft = first_draft(name)
    plan = make_plan(draft.model, draft.observed, draft.missing, sizes=draft.sizes)
    for block in plan.blocks:
        assert set(block.independent) <= set(block.plates)
        assert set(block.parameters) <= set(block.latent) <= set(plan.latent)
        assert {ungathered(element).name for element in block.elements} <= set(plan.latent)


@pytest.mark.parametrize("name", ["x (case 0)", "x (case study)", "x given", "x prior 0"])
def test_a_given_belief_takes_the_place_of_its_own_factors_alone(name):
    """What belongs to a variable is not read from names: one that is called as a case is shown stays what it is."""
    m = cv.Model()
    x = m.random("x", cv.switch(m.random("z", cv.bernoulli(0.5)), *(cv.gaussian(k, variance=1.0) for k in (-1.0, 1.0))))
    other = m.random(name, cv.gaussian(5.0, variance=1.0))
    m.random("y", cv.gaussian(x + other, variance=1.0))
    plan = make_plan(m, frozenset({"y"}), method="vmp", given=frozenset({Part(("x",))}))
    assert sorted(block.source for block in plan.blocks) == sorted(["x", name, "y", "z"])
    before = make_plan(m, frozenset({"y"}), method="vmp")
    assert [block.name for block in before.blocks if block.source == "x"] == ["x (case 0)", "x (case 1)"]
