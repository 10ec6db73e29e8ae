"""Estimators behave as scikit-learn's do."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import portolan
from portolan import _native

ALL: list[type[portolan.Estimator]] = [
    portolan.Auto,
    portolan.Btd,
    portolan.Dgm,
    portolan.Field,
    portolan.InverseDistance,
    portolan.Kriging,
    portolan.Linear,
    portolan.NaiveUnn,
    portolan.Nearest,
    portolan.ThinPlate,
    portolan.Unn,
]
QUICK: dict[str, dict[str, Any]] = {
    "Unn": {"iterations": 20, "start_iterations": 30, "emitters": 1},
    "NaiveUnn": {"iterations": 20},
    "Dgm": {"iterations": 10, "start_iterations": 10, "draws": 8, "starts": 1, "emitters": 1},
    "Btd": {"iterations": 10, "emitters": 1},
}


def survey(sensors: int = 60, bands: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Levels that fall off with the distance from one transmitter, with a little noise."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 30, (sensors, 2))
    distance = np.hypot(*(places - [11.0, 17.0]).T)
    levels = -40 - 25 * np.log10(1 + distance)[:, None] - 3.0 * np.arange(bands)
    return places, levels + rng.normal(0, 0.5, levels.shape)


def make(kind: type[portolan.Estimator]) -> portolan.Estimator:
    return kind(**QUICK.get(kind.__name__, {}))


@pytest.mark.parametrize("kind", ALL)
def test_every_method_fits_predicts_and_survives_a_pickle(kind: type[portolan.Estimator]) -> None:
    places, levels = survey()
    levels[3, 1] = np.nan
    before = levels.copy(), places.copy()
    fitted = make(kind).fit(places, levels)
    assert np.array_equal(before[0], levels, equal_nan=True)
    assert np.array_equal(before[1], places)
    at = np.array([[10.0, 10.0], [21.5, 3.25]])
    found = fitted.predict(at)
    assert found.shape == (2, 3) and np.isfinite(found).all()
    assert np.abs(found - np.nanmean(levels, axis=0)).max() < 40
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(at), found)


@pytest.mark.parametrize("kind", ALL)
def test_every_option_of_the_register_is_a_parameter(kind: type[portolan.Estimator]) -> None:
    options = {name: options for name, _, _, _, options in _native.methods()}[kind._method]
    parameters = set(inspect.signature(kind).parameters)
    assert {name for name, _, _ in options} == parameters - {"random_state", "emitters", "grid", "transmitters"}
    takes = {name: takes for name, _, _, takes, _ in _native.methods()}[kind._method]
    assert ("transmitters" in parameters) == takes
    copied = clone(make(kind))
    assert copied.get_params() == make(kind).get_params()


def test_a_spread_comes_with_the_levels_where_there_is_one() -> None:
    places, levels = survey(bands=1)
    kriging = portolan.Kriging().fit(places, levels[:, 0])
    found, spread = kriging.predict(places[:5] + 0.3, return_std=True)
    assert found.shape == spread.shape == (5,) and (spread > 0).all()
    with pytest.raises(ValueError, match="knows no spread"):
        portolan.Nearest().fit(places, levels).predict(places, return_std=True)


def test_cross_validation_over_places_and_a_search_for_options() -> None:
    places, levels = survey()
    blocks = (places[:, 0] // 10 + 3 * (places[:, 1] // 10)).astype(int)
    scores = cross_val_score(
        portolan.Kriging(), places, levels, groups=blocks, cv=GroupKFold(3),
        scoring="neg_root_mean_squared_error",
    )
    assert (scores > -6).all()
    search = GridSearchCV(portolan.Kriging(), {"trend": ["constant", "linear"]}, cv=3)
    search.fit(places, levels)
    assert search.best_score_ > 0.5
    kilometres = FunctionTransformer(lambda x: 1000.0 * x)
    piped = make_pipeline(kilometres, portolan.ThinPlate()).fit(places / 1000, levels)
    assert piped.score(places / 1000, levels) > 0.99


def test_a_reading_that_was_taken_often_counts_more() -> None:
    places = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0], [5.0, 5.0]])
    levels = np.array([-60.0, -60.0, -60.0, -60.0, -50.0])
    options: dict[str, Any] = {"nugget": 4.0, "sill": 20.0, "decorrelation": 10.0}
    light = portolan.Kriging(**options).fit(places, levels, sample_weight=np.ones(5))
    heavy = portolan.Kriging(**options).fit(places, levels, sample_weight=np.array([1, 1, 1, 1, 50.0]))
    at = np.array([[5.0, 5.5]])
    assert heavy.predict(at)[0] > light.predict(at)[0] + 0.2


@pytest.mark.parametrize(
    ("places", "levels", "said"),
    [
        ([[0.0, 0.0], [1.0, np.nan]], [1.0, 2.0], "NaN"),
        ([[0.0, 0.0], [1.0, 1.0]], [1.0, np.inf], "infinity"),
        ([[0.0, 0.0], [1.0, 1.0]], [np.nan, np.nan], "nothing was read"),
        ([[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0, 3.0], "inconsistent"),
    ],
)
def test_wrong_input_is_a_value_error_that_says_what_is_wrong(
    places: Any, levels: Any, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        portolan.Kriging().fit(np.array(places), np.array(levels))


def test_wrong_options_are_refused_with_the_register_s_own_words() -> None:
    places, levels = survey()
    with pytest.raises(ValueError, match="covariance"):
        portolan.Kriging(covariance="wavy").fit(places, levels)
    with pytest.raises(TypeError):
        portolan.Kriging(waviness=1)  # type: ignore[call-arg]


ANYWHERE: list[type[portolan.Estimator]] = [
    portolan.InverseDistance,
    portolan.Kriging,
    portolan.Nearest,
    portolan.ThinPlate,
]


@pytest.mark.parametrize("kind", ANYWHERE)
def test_other_than_two_coordinates_where_distances_are_enough(kind: type[portolan.Estimator]) -> None:
    rng = np.random.default_rng(0)
    for coordinates in (1, 3, 4):
        places = rng.uniform(0, 10, (80, coordinates))
        levels = -60 - 2.0 * places[:, :1] + np.array([0.0, 5.0])
        levels[4, 1] = np.nan
        fitted = kind().fit(places, levels)
        assert np.abs(fitted.predict(places[:3]) - levels[:3]).max() < 1.5
        again = pickle.loads(pickle.dumps(fitted))
        assert np.array_equal(again.predict(places + 0.1), fitted.predict(places + 0.1))
    with pytest.raises(ValueError, match="maps the plane"):
        portolan.Field().fit(places, levels)


#: The checks of scikit-learn whose data has other than two columns: methods of the plane refuse it.
OTHER_THAN_TWO = {
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_nan_inf",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_predict1d",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_regressor_data_not_an_array",
    "check_regressor_multioutput",
    "check_regressors_int",
    "check_regressors_no_decision_function",
    "check_regressors_train",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weights_list",
    "check_supervised_y_2d",
}


def told(error: BaseException | None) -> str:
    """What an error says, and what the errors behind it said."""
    return "" if error is None else f"{error} {told(error.__cause__ or error.__context__)}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ALL)
def test_scikit_learns_own_checks(kind: type[portolan.Estimator]) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    results = check_estimator(make(kind), on_fail=None, on_skip=None)
    assert len(results) > 40
    failed = [result for result in results if result["status"] == "failed"]
    if kind in ANYWHERE:
        assert not failed, failed
    for result in failed:
        assert result["check_name"] in OTHER_THAN_TWO, result
        assert "maps the plane" in told(result["exception"]), result
