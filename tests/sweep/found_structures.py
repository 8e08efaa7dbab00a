"""Structures in which the sweep found a fault, as they were drawn then: tables that grow draw others of a seed."""

import numpy as np
from small import Given, Named, Small, Variable

FOUND = {
    5: Small(
        seed=5,
        sizes={"n": 3, "t": 3},
        givens=(
            Given(name="x0_unit", kind="unit"),
            Given(name="x1_real", kind="real"),
            Given(name="x2_positive", kind="positive"),
            Given(name="x3_positive", kind="positive"),
            Given(name="x4_boolean", kind="boolean"),
        ),
        statements=(
            Variable(name="cou0", kind="count", term=("binomial", {"n": ("number", 4), "p": ("ref", "x0_unit")})),
            Variable(
                name="rea1",
                kind="real",
                term=(
                    "chain",
                    ("gaussian", {"mean": ("ref", "x1_real"), "variance": ("ref", "x2_positive")}),
                    ("gaussian", {"mean": ("ref", "previous"), "variance": ("ref", "x3_positive")}),
                ),
                plates=("t",),
            ),
            Variable(
                name="obs2",
                kind="category",
                term=("ordered_logistic", {"score": ("ref", "rea1"), "cutpoints": ("number", np.array([-0.6, 0.8]))}),
                observed=True,
                size=3,
            ),
            Variable(
                name="obs3",
                kind="boolean",
                term=("own_agreement", {"other": ("ref", "x4_boolean")}),
                plates=("n",),
                observed=True,
            ),
            Named(name="let4", kind="unit", expression=("logistic", ("ref", "rea1"))),
            Named(
                name="let5",
                kind="boolean",
                expression=("greater_equal", ("add", ("ref", "cou0"), ("number", 4)), ("number", 2)),
            ),
            Variable(name="pre6", kind="boolean", term=("bernoulli", {"p": ("probit", ("ref", "rea1"))})),
        ),
    ),
    16: Small(
        seed=16,
        sizes={"n": 2, "k": 2},
        givens=(
            Given(name="x0_unit", kind="unit"),
            Given(name="x1_unit", kind="unit"),
            Given(name="x2_positive", kind="positive"),
            Given(name="x3_unit", kind="unit"),
            Given(name="x4_unit", kind="unit"),
            Given(name="x5_index", kind="index", plates=("n",), to="k"),
            Given(name="x6_unit", kind="unit"),
        ),
        statements=(
            Variable(name="boo0", kind="boolean", term=("bernoulli", {"p": ("ref", "x0_unit")})),
            Variable(name="boo1", kind="boolean", term=("bernoulli", {"p": ("ref", "x1_unit")}), plates=("k",)),
            Variable(
                name="obs2",
                kind="count",
                term=("negative_binomial", {"successes": ("ref", "x2_positive"), "probability": ("ref", "x3_unit")}),
                plates=("n",),
                observed=True,
            ),
            Variable(
                name="obs3", kind="boolean", term=("bernoulli", {"p": ("ref", "x4_unit")}), plates=("n",), observed=True
            ),
            Named(name="let4", kind="boolean", expression=("xor", ("ref", "boo0"), ("not", ("ref", "boo0")))),
            Named(
                name="let5",
                kind="boolean",
                expression=("xor", ("ref", "boo1"), ("not", ("gather", ("ref", "boo1"), ("ref", "x5_index"), "k"))),
            ),
            Variable(name="pre6", kind="boolean", term=("bernoulli", {"p": ("ref", "x6_unit")}), plates=("n",)),
        ),
    ),
    20: Small(
        seed=20,
        sizes={"n": 3, "k": 2},
        givens=(
            Given(name="x0_unit", kind="unit"),
            Given(name="x1_positive", kind="positive"),
            Given(name="x2_positive", kind="positive", plates=("n",)),
            Given(name="x3_positive", kind="positive"),
            Given(name="x4_positive", kind="positive"),
        ),
        statements=(
            Variable(name="boo0", kind="boolean", term=("bernoulli", {"p": ("ref", "x0_unit")}), plates=("k",)),
            Variable(
                name="obs1",
                kind="count",
                term=("negative_binomial", {"mean": ("ref", "x1_positive"), "dispersion": ("ref", "x2_positive")}),
                plates=("n",),
                observed=True,
            ),
            Named(name="let2", kind="boolean", expression=("all", ("ref", "boo0"), "k")),
            Named(name="let3", kind="boolean", expression=("or", ("ref", "boo0"), ("any", ("ref", "boo0"), "k"))),
            Variable(
                name="pre4",
                kind="positive",
                term=("gamma", {"mean": ("ref", "x3_positive"), "variance": ("ref", "x4_positive")}),
            ),
        ),
    ),
}
