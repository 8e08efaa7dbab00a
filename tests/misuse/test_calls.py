"""Calls that do not fit, of everything public: each is a CallError that says how it is called, and a TypeError too."""

import copy
import functools
import inspect
import pickle

import pytest
from of_verbs import DATA, coin, posterior, program

import cavity as cv
from cavity import kernels, models, moves, names_elsewhere, workers
from cavity.engine.answers.inferred import Inferred
from cavity.engine.answers.next_prior import Beliefs, Contribution
from cavity.engine.batched import Batch
from cavity.engine.checks.loo import LeaveOneOut
from cavity.engine.checks.nuts import Check
from cavity.engine.checks.trust import Trust
from cavity.engine.evidence.integrated import Integrated
from cavity.engine.files.saved_posterior import Saved
from cavity.factors.calls import OPERATORS, call_checked, is_checked, methods_checked

ANSWERS = (Batch, Beliefs, Check, Contribution, Inferred, Integrated, LeaveOneOut, Saved, Trust, models.Skills)
INNER = {"along", "by_parts"}  # what the library alone calls


def functions():
    """Everything that users call by a name of a module."""
    for room in (cv, models, kernels, moves, workers):
        names = getattr(room, "__all__", ["matern32", "linear", "white", "ray"])
        found = {name: getattr(room, name) for name in names if hasattr(room, name)}
        yield from ((f"{room.__name__}.{name}", own) for name, own in found.items() if inspect.isfunction(own))


def methods():
    """Those that the classes of answers define, and what makes them where users do."""
    public = [
        own for name in cv.__all__ if inspect.isclass(own := getattr(cv, name)) and not issubclass(own, Exception)
    ]
    for kind in (*public, *ANSWERS):
        for name, own in inspect.getmembers(kind, inspect.isfunction):
            ours = inspect.unwrap(own).__module__.startswith("cavity") and inspect.unwrap(own).__name__ != "method"
            if ours and (not name.startswith("_") or name == "__call__") and name not in INNER:
                yield f"{kind.__name__}.{name}", functools.partial(own, object())


def takes_any_name(own):
    inner = own.func if isinstance(own, functools.partial) else own
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(inner).parameters.values())


EVERY = {**dict(functions()), **dict(methods())}


@pytest.mark.parametrize("name", [name for name, own in EVERY.items() if not takes_any_name(own)])
def test_an_argument_that_there_is_not_is_told(name):
    own = EVERY[name]
    inner = own.func if isinstance(own, functools.partial) else own
    if inspect.signature(inner).return_annotation in ("Term", "Switch", "Mixture", "Ordered"):
        m = cv.Model()
        with pytest.raises(cv.ModelError, match="no nonsense="):
            m.random("x", own(nonsense=1))
        return
    with pytest.raises(cv.CallError, match="there is no nonsense=") as told:
        own(nonsense=1)
    assert isinstance(told.value, TypeError)
    assert isinstance(told.value, cv.ModelError)
    assert "It is called as" in str(told.value)


def test_many_are_called():
    assert len(EVERY) > 200
    assert {"cavity.infer", "Posterior.sample", "Program.__call__", "Marginal.quantile", "Model.plate"} <= {*EVERY}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: cv.infer(coin()), "data= must be given"),
        (lambda: cv.infer(coin(), DATA, iterations=3), "Here it is max_iterations="),
        (lambda: cv.infer(coin(), DATA, "ep"), "Say what 'ep' is, by name"),
        (lambda: cv.sample(coin(), DATA, num_warmup=3), "Here it is warmup="),
        (lambda: cv.Model("a", 2), r"Model\('a', 2\): it takes 1 argument by place"),
        (lambda: cv.Schedule(lop="double"), "Here it is loop="),
        (lambda: cv.power(), "alpha= must be given"),
        (lambda: cv.index(), "plate= must be given"),
        (lambda: kernels.matern32(lengthscale=1.0), "Here it is scale="),
        (lambda: posterior().sample(draws=3), r"posterior.sample\(draws=3\): there is no draws=. Here it is n="),
        (lambda: posterior().check(tune=3), "Here it is warmup="),
        (lambda: posterior().check("nuts", 5, warmup=3), "takes 1 argument by place; found 2"),
        (lambda: posterior()["a"].interval(hdi_prob=0.9), "Here it is probability="),
        (lambda: posterior()["a"].sel("York"), r"marginal.sel\(\*\*labels\)"),
        (lambda: program()(), r"program\(\): data= must be given"),
        (lambda: program()(DATA, random_state=1), "Here it is seed="),
        (lambda: cv.load(), "path= must be given"),
        (lambda: coin().random("q"), "term= must be given"),
        (lambda: models.Skills().fit(["a"], ["b"]), "Say what \\['b'\\] is, by name: winners=, losers="),
        (lambda: models.Skills(beta=1.0), r"Skills\(beta=1.0\): there is no beta="),
    ],
)
def test_what_is_meant_is_named(call, told):
    with pytest.raises(cv.CallError, match=told):
        call()


@pytest.mark.parametrize(
    ("owner", "name", "told"),
    [
        (posterior, "stdev", r"posterior\['a'\].mean, .sd"),
        (posterior, "a", r"brackets: posterior\['a'\]"),
        (posterior, "get_samples", r"posterior.sample\(n\)"),
        (posterior, "sumary", "Did you mean `posterior.summary`"),
        (lambda: posterior()["a"], "stdev", r"marginal\.sd"),
        (lambda: posterior()["a"], "cdf", r"marginal\.prob\(lambda"),
        (lambda: posterior()["a"], "covariance_of", "Did you mean `marginal.covariance`"),
        (coin, "fit", r"cv\.infer\(model, data\)"),
        (coin, "deterministic", r"m\.let\(name, expression\)"),
        (program, "infer", r"program\(data\)"),
        (program, "qqqqqq", "It has batch"),
        (models.Skills, "players_", r"after skills\.fit"),
        (models.Skills, "win_probability", r"skills\.predict_proba"),
    ],
)
def test_what_an_attribute_is_called_here(owner, name, told):
    thing = owner()
    assert not hasattr(thing, name)
    with pytest.raises(AttributeError, match=told):
        getattr(thing, name)


@pytest.mark.parametrize("shown", names_elsewhere.ATTRIBUTES)
def test_no_attribute_that_there_is_is_told_to_be_elsewhere(shown):
    kinds = {"posterior": cv.Posterior, "marginal": cv.Marginal, "model": cv.Model, "program": cv.Program}
    kinds["skills"] = models.Skills
    own = set(dir(kinds.get(shown, cv.Samples)))
    if shown != "samples":  # which share the table of posteriors
        assert own.isdisjoint(names_elsewhere.ATTRIBUTES[shown])


def test_what_is_half_made_has_no_attributes_and_does_not_run_in_circles():
    for kind in (cv.Posterior, cv.Marginal, cv.Model, cv.Program, Batch):
        with pytest.raises(AttributeError, match="no such attribute"):
            object.__new__(kind).nobody
        assert not hasattr(object.__new__(kind), "__deepcopy__x")


def test_an_attribute_error_inside_a_property_is_told_as_it_was():
    @methods_checked("thing")
    class Thing:
        @property
        def broken(self):
            return [].nowhere

    with pytest.raises(AttributeError, match="'list' object has no attribute 'nowhere'"):
        Thing().broken


def test_a_type_error_of_what_is_called_is_its_own():
    @call_checked
    def adds(value):
        return value + "text"

    with pytest.raises(TypeError, match="unsupported operand") as told:
        adds(1)
    assert not isinstance(told.value, cv.CavityError)


def test_signatures_docstrings_and_pickles_stay():
    assert list(inspect.signature(cv.infer).parameters)[:2] == ["model", "data"]
    assert list(inspect.signature(cv.Schedule).parameters) == ["factors", "variables", "rows", "loop"]
    assert cv.infer.__doc__.startswith("The posterior of")
    assert pickle.loads(pickle.dumps(cv.infer)) is cv.infer
    assert copy.deepcopy(posterior()["a"]).mean == posterior()["a"].mean
    assert all(is_checked(vars(cv.Model)[name]) for name in ("plate", "random", *OPERATORS[:1]))
