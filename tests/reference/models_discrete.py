"""The programs of discrete.json."""

from __future__ import annotations

import numpy as np
from runner import Setup

import cavity as cv


def two_coins(case):
    m = cv.Model("two coins")
    first = m.random("first", cv.bernoulli(0.5))
    second = m.random("second", cv.bernoulli(0.5))
    m.let("both", first & second)
    return m


def general(case):
    m = cv.Model("handedness")
    general = m.random("general", cv.bernoulli(0.5))
    p = m.random("p", cv.beta(0.72, 0.08))
    m.random("student", cv.switch(general, cv.bernoulli(0.9), cv.bernoulli(p)), plates=m.plate("n"))
    return m


def same_population(case):
    m = cv.Model("handedness of two groups")
    same = m.random("same", cv.bernoulli(0.5))
    p, q = (m.random(name, cv.beta(0.72, 0.08)) for name in "pq")
    m.random("student", cv.bernoulli(p), plates=m.plate("students"))
    m.random("lecturer", cv.switch(same, cv.bernoulli(p), cv.bernoulli(q)), plates=m.plate("lecturers"))
    return m


def three_nodes(case):
    m = cv.Model("loop")
    weight = m.input("weight", cv.unit, plates=m.plate("equal", 2))
    nodes = [m.random(name, cv.bernoulli(p)) for name, p in zip("abc", (0.6, 0.3, 0.2), strict=True)]
    for i, j in ((0, 1), (1, 2), (0, 2)):
        equal = m.let(f"equal {i}{j}", nodes[i] == nodes[j])
        m.random(f"edge {i}{j}", cv.bernoulli(weight[equal]))
    return m


def wet_grass(case):
    m = cv.Model("wet grass")
    cloudy = m.random("cloudy", cv.bernoulli(0.5))
    sprinkler = m.random("sprinkler", cv.switch(cloudy, cv.bernoulli(0.1), cv.bernoulli(0.5)))
    rain = m.random("rain", cv.switch(cloudy, cv.bernoulli(0.8), cv.bernoulli(0.2)))
    sprays = m.random("sprays", cv.bernoulli(0.9))
    soaks = m.random("soaks", cv.bernoulli(0.9))
    m.let("wet", (sprinkler & sprays) | (rain & soaks))
    return m


def balls(case):
    most, noise = 8, case["parameters"]["noise"]
    m = cv.Model("ball counting")
    number, ball, draw = m.plate("number", most), m.plate("ball", most), m.plate("draw")
    pick = m.input("pick", cv.simplex(most), plates=number)
    rate = m.input("rate", cv.unit, plates=m.plate("colour", 2))
    count = m.random("count", cv.categorical(np.full(most, 1.0 / most)))
    blue = m.random("blue", cv.bernoulli(0.5), plates=ball)
    picked = m.random("picked", cv.categorical(pick[count]), plates=draw)
    m.random("seen", cv.bernoulli(rate[blue[picked]]))
    picks = np.tril(np.ones((most, most)))
    picks /= picks.sum(axis=1, keepdims=True)
    return Setup(m, {"pick": picks, "rate": [noise, 1.0 - noise], **case["data"]})
