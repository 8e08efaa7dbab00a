"""What the examples share: where data and pictures are, and timing."""

import time
from pathlib import Path

HERE = Path(__file__).parent
DATA = HERE / "data"
PICTURES = HERE.parent / "demo"


def timed(infer):
    """Calls `infer` twice: compilation is the difference. Prints the times and returns the posterior."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        posterior = infer()
        posterior.log_evidence  # noqa: B018 - JAX answers before it has computed: asking for a number waits for it
        seconds.append(time.perf_counter() - start)
    first, run = seconds
    sweeps = posterior.iterations
    print(f"time: compile {first - run:.2f} s, run {1e3 * run:.1f} ms, {sweeps} sweeps of {1e3 * run / sweeps:.2f} ms")
    return posterior


def save(figure, name):
    """Writes a figure to demo/."""
    PICTURES.mkdir(exist_ok=True)
    figure.savefig(PICTURES / f"{name}.png", bbox_inches="tight", pad_inches=0.1)
    print(f"wrote demo/{name}.png")


def title(text):
    """A heading."""
    print(f"\n{text}\n{'=' * len(text)}\n")
