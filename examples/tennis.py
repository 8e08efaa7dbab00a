"""Skills of tennis players from who beat whom."""

import numpy as np
from common import DATA, save, timed, title
from matplotlib.figure import Figure

import cavity as cv
from cavity.engine.plots import plot_convergence, plot_graph
from cavity.models import skills


def load():
    """Winners, losers and names of players."""
    winner, loser = np.loadtxt(DATA / "tennis_games.csv", delimiter=",", skiprows=1, dtype=int).T - 1
    names = (DATA / "tennis_players.csv").read_text().replace("-", " ").splitlines()
    return winner, loser, names


def plot_ranking(names, skill, count=40):
    """The best `count` players with means and 90 % intervals."""
    order = np.argsort(-skill.mean)[:count]
    low, high = skill.interval(0.9)
    figure = Figure(figsize=(6.5, 0.19 * count + 1.0), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    place = np.arange(count)
    axes.hlines(place, low[order], high[order], color="#33658a", linewidth=2)
    axes.plot(skill.mean[order], place, "o", color="#d1603d", markersize=4)
    axes.set_yticks(place, [f"{names[i]}  {rank + 1}" for rank, i in enumerate(order)], fontsize=8)
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_xlabel("skill: mean and 90 % interval")
    axes.set_title(f"ATP tennis 2011: the best {count} of {len(names)} players", fontsize=10)
    axes.grid(axis="x", color="#e3e6ea")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure


def main():
    """Runs the example. Returns the posterior."""
    winner, loser, names = load()
    title(f"Player skills: {len(winner)} tennis matches of {len(names)} players")
    data, model, sizes = {"winner": winner, "loser": loser}, skills(), {"player": len(names)}
    posterior = timed(lambda: cv.infer(model, data, sizes=sizes))
    print(posterior.explain(), posterior.summary(), sep="\n\n")

    skill = posterior["skill"]
    low, high = skill.interval(0.9)
    print("\nrank  player                      skill  90 % interval")
    for rank, i in enumerate(np.argsort(-skill.mean)[:20], start=1):
        print(f"{rank:4}  {names[i]:24}  {skill.mean[i]:7.3f}  {low[i]:6.3f} to {high[i]:.3f}")

    save(plot_graph(posterior), "tennis_graph")
    save(plot_ranking(names, skill), "tennis_ranking")
    save(plot_convergence(posterior), "tennis_convergence")
    return posterior
