"""The mixtures of the source: Gaussian components of unknown weights, means and precisions, in one dimension or more.

Weights are uniform on the simplex, precisions Gamma(1, .11) or Wishart, and the precision of a mean is a multiple of
its component's: .01 ("narrow") or 1e-6 ("broad"). Source: paquet2007thesis.
"""

import common

# isort: split
import numpy as np

import cavity as cv

NARROW, BROAD = 1e-2, 1e-6
SETS = {  # the folder and the file, the columns, and what to divide by
    "galaxy": ("mixture_galaxy", "galaxies_MASS_82.csv", (0,), 1000.0),
    "enzyme": ("mixture_enzyme", "enzyme_245.csv", (0,), 1.0),
    "acidity": ("mixture_acidity", "acidity_155.csv", (0,), 1.0),  # of 155 lakes, in logarithms (R's mixAK)
    "old faithful": ("mixture_faithful", "faithful_272x2.csv", (0, 1), 1.0),
}
METHODS = {"VMP": "vmp", "power 1/2": cv.power(0.5), "EP": "ep"}


def mixture(x, number, ratio):
    """The model and its data."""
    x = np.asarray(x, float)
    model = cv.Model(f"{number} components")
    n, k = model.plate("n"), model.plate("k", number)
    share = model.random("share", cv.dirichlet(np.ones(number)))
    if x.ndim == 1:
        precision = model.random("precision", cv.gamma(1.0, 0.11), plates=k)
        mean = model.random("mean", cv.gaussian(0.0, precision=ratio * precision), plates=k)
        outcome = cv.gaussian
    else:
        size = x.shape[1]
        scale = np.full((size, size), 0.01) + 0.1 * np.eye(size)
        precision = model.random("precision", cv.wishart(2.0, rate=2.0 * scale), plates=k)
        mean = model.random("mean", cv.vector_gaussian(np.zeros(size), precision=ratio * precision), plates=k)
        outcome = cv.vector_gaussian
    z = model.random("z", cv.categorical(share), plates=n)
    model.random("x", outcome(mean[z], precision=precision[z]))
    return model, {"x": x}


def there(arguments):
    """The names of the sets whose files are among the data; what is missing is told."""
    data = common.folder(arguments, SETS["galaxy"][0]).parent
    missing = [name for name, (where, *_) in SETS.items() if not (data / where).exists()]
    if missing:
        print(f"Not among the data, left out: {', '.join(missing)}.")
    return [name for name in SETS if name not in missing]


def real(arguments, name):
    """The numbers of one of `SETS`; the velocity that some tables misprint is set right."""
    where, file, columns, unit = SETS[name]
    path = common.folder(arguments, where, file)
    x = np.loadtxt(path, delimiter=",", skiprows=1, usecols=columns) / unit
    return np.where(np.isclose(x, 26.690), 26.960, x) if name == "galaxy" else x
