"""The demonstration: three models on real data; prints what was chosen and found, and writes pictures to demo/."""

import time

import iris
import old_faithful
import tennis


def main():
    """Runs the three examples."""
    start = time.perf_counter()
    for example in (iris, tennis, old_faithful):
        example.main()
    print(f"\nall done in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
