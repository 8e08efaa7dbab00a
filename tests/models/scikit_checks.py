"""scikit-learn's checks of estimators: those that fit are slow, since each shape is a compilation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

WITHOUT_FIT = {
    "check_do_not_raise_errors_in_init_or_set_params", "check_estimator_cloneable", "check_estimator_repr",
    "check_estimator_tags_renamed", "check_estimators_empty_data_messages", "check_estimators_unfitted",
    "check_fit2d_1sample", "check_fit1d", "check_complex_data", "check_get_params_invariance",
    "check_mixin_order", "check_no_attributes_set_in_init", "check_parameters_default_constructible",
    "check_set_params", "check_valid_tag_types",
}  # fmt: skip


def checks(estimator: Any, prefix: str = "") -> Iterator[Any]:
    """Parameters (estimator, check) of all of scikit-learn's checks of an estimator."""
    for own, check in estimator_checks_generator(estimator):
        label = check.func.__name__
        marks = [] if label in WITHOUT_FIT else [pytest.mark.slow]
        yield pytest.param(own, check, marks=marks, id=f"{prefix}{label}")
