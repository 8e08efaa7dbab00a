"""Options of the test suite."""


def pytest_addoption(parser):
    parser.addoption("--update-snapshots", action="store_true", help="write the committed plan snapshots anew")
