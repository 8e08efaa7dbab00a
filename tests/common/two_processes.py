"""What each of two processes does for tests/engine/cluster/test_two_processes.py: models by one device and by two."""

from __future__ import annotations

import json
import os
import sys
import warnings

import dealt_models
import jax

import cavity as cv

MESH = jax.make_mesh((jax.device_count(),), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
SHARE = 0.4  # of the rows, which the first process has of its own: uneven


def own(data, names):
    """The rows of this process."""
    rows = len(data[names[0]])
    first = int(SHARE * rows)
    part = slice(first) if jax.process_index() == 0 else slice(first, rows)
    return {name: value[part] if name in names else value for name, value in data.items()}


def told(posterior):
    return {
        "evidence": float(posterior.log_evidence),
        "sweeps": int(posterior.iterations),
        "means": dealt_models.means(posterior),
    }


def main(place, *asked):
    warnings.simplefilter("ignore")
    found = {}
    for name in asked:
        make, options, rows = dealt_models.CASES[name]
        model, data, more = make()
        alone = cv.infer(model, data, **options, **more)
        both = cv.infer(model, data, **options, **more, mesh=MESH)
        found[name] = {"alone": told(alone), "both": told(both)}
        if name in ("logistic, ep", "mixture, vmp", "skills"):
            found[name]["own"] = told(cv.infer(model, own(data, rows), **options, **more, mesh=MESH))
    with open(os.path.join(place, f"{jax.process_index()}.json"), "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
