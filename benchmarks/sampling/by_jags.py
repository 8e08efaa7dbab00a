"""The models in the language of JAGS, sampled by its command line program, which Debian has as a package.

The time of a run is less that of one with few draws: reading, compiling and adapting are left out.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import cases
import numpy as np

HIERARCHICAL = """model {
  centre ~ dnorm(0, 0.01)
  between ~ dgamma(2, 1)
  within ~ dgamma(2, 1)
  for (g in 1:G) {
    effect[g] ~ dnorm(centre, between)
    for (i in 1:N) { y[g, i] ~ dnorm(effect[g], within) }
  }
}"""
REGRESSION = """model {
  for (k in 1:D) { w[k] ~ dnorm(0, 0.25) }
  score <- x %*% w
  for (i in 1:N) {
    LINK(p[i]) <- score[i]
    y[i] ~ dbern(p[i])
  }
}"""
MIXTURE = """model {
  for (k in 1:K) {
    centre[k] ~ dnorm(0, 0.04)
    precision[k] ~ dgamma(2, 1)
  }
  share ~ ddirch(one)
  for (i in 1:N) {
    z[i] ~ dcat(share)
    y[i] ~ dnorm(centre[z[i]], precision[z[i]])
  }
}"""
FACTORS = """model {
  for (d in 1:D) {
    noise[d] ~ dgamma(2, 1)
    for (k in 1:K) { loading[d, k] ~ dnorm(0, 1) }
  }
  for (n in 1:N) { for (k in 1:K) { score[k, n] ~ dnorm(0, 1) } }
  for (d in 1:D) { for (n in 1:N) { y[d, n] ~ dnorm(inprod(loading[d, 1:K], score[1:K, n]), noise[d]) } }
}"""
HMM = """model {
  for (k in 1:K) {
    centre[k] ~ dnorm(0, 0.04)
    change[k, 1:K] ~ ddirch(one)
  }
  precision ~ dgamma(2, 1)
  z[1] ~ dcat(start)
  for (t in 2:N) { z[t] ~ dcat(change[z[t - 1], 1:K]) }
  for (t in 1:N) { y[t] ~ dnorm(centre[z[t]], precision) }
}"""
TOPICS = """model {
  for (d in 1:D) { theta[d, 1:K] ~ ddirch(half) }
  for (k in 1:K) { phi[k, 1:W] ~ ddirch(tenth) }
  for (i in 1:N) {
    z[i] ~ dcat(theta[document[i], 1:K])
    word[i] ~ dcat(phi[z[i], 1:W])
  }
}"""


def _sizes(case, data):
    """Sizes and constants, and data numbered from one."""
    if case == "hierarchical normal":
        return {"G": data["y"].shape[0], "N": data["y"].shape[1], **data}
    if "regression" in case:
        return {"N": len(data["y"]), "D": data["x"].shape[1], **data}
    if case == "factor model":
        return {"D": len(data["y"]), "N": data["y"].shape[1], "K": cases.FACTORS, **data}
    if case == "topics":
        numbers = {name: array + 1 for name, array in data.items()}
        constants = {"half": np.full(cases.TOPICS, 0.5), "tenth": np.full(cases.WORDS, 0.1)}
        sizes = {"D": cases.DOCUMENTS, "K": cases.TOPICS, "W": cases.WORDS, "N": len(data["word"])}
        return {**sizes, **constants, **numbers}
    constants = {"K": 3, "one": np.ones(3)} | ({"start": np.full(3, 1 / 3)} if case == "hidden Markov model" else {})
    return {"N": len(data["y"]), **constants, **data}


MODELS = {
    "hierarchical normal": (HIERARCHICAL, ["centre", "between", "within"]),
    "probit regression": (REGRESSION.replace("LINK", "probit"), ["w"]),
    "logistic regression": (REGRESSION.replace("LINK", "logit"), ["w"]),
    "mixture of normals": (MIXTURE, ["centre"]),
    "factor model": (FACTORS, ["noise", "loading"]),
    "hidden Markov model": (HMM, ["centre", "precision"]),
    "topics": (TOPICS, ["theta", "phi"]),
}
AVAILABLE = shutil.which("jags") is not None


def _dumped(name, array):
    """In the format of R's dump, columns first."""
    array = np.asarray(array)
    numbers = ",".join(repr(float(x)) for x in array.ravel(order="F"))
    if array.ndim == 0:
        return f"{name} <- {numbers}\n"
    if array.ndim == 1:
        return f"{name} <- c({numbers})\n"
    return f"{name} <- structure(c({numbers}), .Dim=c({','.join(map(str, array.shape))}))\n"


def sampler(case):
    """Draws by name, (1, draws, ...)."""
    model, watched = MODELS[case]
    data = _sizes(case, cases.DATA[case])

    def sample(draws, warmup, seed):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "model.bug").write_text(model)
            (place / "data.R").write_text("".join(_dumped(*item) for item in data.items()))
            start = f'".RNG.name" <- "base::Mersenne-Twister"\n".RNG.seed" <- {seed + 1}\n'
            (place / "start.R").write_text(start)
            script = ["load glm", "model in model.bug", "data in data.R", "compile"]
            script += ["parameters in start.R", "initialize"]
            script += [f"update {warmup}", *(f"monitor {name}" for name in watched), f"update {draws}", "coda *"]
            (place / "script.cmd").write_text("\n".join(script) + "\n")
            subprocess.run(["jags", "script.cmd"], cwd=folder, check=True, capture_output=True)
            return _read(place, draws)

    return sample


def _read(place, draws):
    """What `coda *` has written: an index of where each number begins, and all draws one below the other."""
    column = np.loadtxt(place / "CODAchain1.txt")[:, 1]
    found = {}
    for line in (place / "CODAindex.txt").read_text().splitlines():
        name, first, last = line.split()
        base, _, index = name.partition("[")
        at = tuple(int(i) for i in index.rstrip("]").split(",")) if index else ()
        found.setdefault(base, {})[at] = column[int(first) - 1 : int(last)]
    return {name: _array(entries, draws) for name, entries in found.items()}


def _array(entries, draws):
    shape = tuple(np.max(list(entries), axis=0)) if () not in entries else ()
    array = np.zeros((1, draws, *shape))
    for at, values in entries.items():
        array[(0, slice(None), *(i - 1 for i in at))] = values
    return array
