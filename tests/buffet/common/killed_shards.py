"""What each process does for tests/buffet/test_shards.py where one of them is killed before it has written its file."""

import os
import signal
import sys

import jax
import shards_by_processes

from cavity.engine.mcmc import run as driver


def main(place, dies):
    write = driver._write

    def then_die(path, plan, now):
        if dies and jax.process_index() == 1 and now.done == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        write(path, plan, now)

    driver._write = then_die
    shards_by_processes.main(place, checkpoint=os.path.join(place, "chain"), every=0.0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "dies")
