"""What a series is expected to be on a day, by the days before it.

On a logarithmic scale a series is a level, that of its weekday, and a profile of the hours of the day, each a median
over days, so that a bad day does not move it. Workdays and weekends, and then single weekdays, have profiles of their
own as far as there are days to tell. What a certain bin of the day always has beyond its hour, such as a job at two
o'clock, is learnt too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sealane.pipeline.anomalies.measures import BINS_A_DAY, BINS_AN_HOUR, Floats, Measure
from sealane.pipeline.anomalies.observed import Observed
from sealane.pipeline.anomalies.robust import MAD_TO_SIGMA, known_or, median, rolled, sigma

HISTORY_DAYS = 28
"""What a day is expected by: four of each weekday."""
HISTORY_DAYS_FEWEST = 7
"""Before each weekday was seen, the first Sunday would be an anomaly."""
LEVEL_DAYS = 3
"""The level is that of the last days, by their median: one that stays is the expected one from the third day on."""
WINDOWS = (1, 3, 12, 36)
"""What is scored, in bins: a single one, a quarter of an hour, an hour and three. What is too little for one bin to be
told from noise, such as the silence of a small topic, is plain over hours."""

_HOURS = 24
_SHRINK_DAYS = 2.0
_SPREAD_DAYS = 7.0
_WILD = 4.0
_WEEKDAY_OF_1970 = 3
_SATURDAY = 5
_GROUPS = (slice(0, _SATURDAY), slice(_SATURDAY, 7), *(slice(day, day + 1) for day in range(7)))
_LEVEL_NOISE = (0.05, 0.3)

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Baseline:
    """Of one day."""

    expected: Floats
    """For each bin; of a share, the share."""
    spreads: dict[int, Floats]
    """By window, for each bin: on the measure's scale, without its floor."""


def fit(history: Observed, measure: Measure) -> Baseline | None:
    """What to expect of the day that begins where the history stops. None while there is too little of it."""
    assert history.stop % BINS_A_DAY == 0
    history = history.between(history.stop - HISTORY_DAYS * BINS_A_DAY, history.stop).whole_days()
    days = len(history.values) // BINS_A_DAY
    known = ~np.isnan(history.values.reshape(days, BINS_A_DAY))
    if np.count_nonzero(known.any(axis=1)) < HISTORY_DAYS_FEWEST:
        return None
    weekdays = (history.first // BINS_A_DAY + _WEEKDAY_OF_1970 + np.arange(days + 1)) % 7
    levels, profiles = _season(_hourly(history, measure), weekdays[:days], measure)
    found = _by_the_hour(_levels_expected(levels.levels, measure), levels.of_weekdays, profiles, weekdays)
    expected = np.maximum(np.exp(found) - measure.offset, 0)
    past, today = expected[: days * BINS_A_DAY], expected[days * BINS_A_DAY :]
    trials = history.trials
    usual = _usual_beyond(measure, history.values, past if trials is None else past * trials, days)
    past, today = past * np.tile(usual, days), today * usual
    is_alike = (weekdays[:days] >= _SATURDAY) == (weekdays[days] >= _SATURDAY)
    spreads = {
        window: _spread(residuals(measure, history.values, past, trials, window).reshape(days, -1), is_alike)
        for window in WINDOWS
    }
    if measure.counted:
        usually = median(past.reshape(days, -1)[is_alike if is_alike.any() else slice(None)], axis=0)
        growth = known_or(today / np.maximum(usually, measure.offset), 1.0)
        spreads = {window: _grown(spread, growth) for window, spread in spreads.items()}
    return Baseline(today, spreads)


def residuals(measure: Measure, values: Floats, expected: Floats, trials: Floats | None, window: int) -> Floats:
    """By how much each bin, together with those before it in the window, is beyond what is expected, on the scale."""
    if trials is not None:
        expected = expected * trials
    if measure.counted:
        expected = np.where(np.isnan(values), np.nan, expected)
        return measure.scaled(rolled(values, window)) - measure.scaled(rolled(expected, window))
    return rolled(measure.scaled(values) - measure.scaled(expected), window) / window


# --- the season -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Levels:
    levels: Floats
    """Of each day, as if all weekdays were the same."""
    of_weekdays: Floats
    """What is added for each weekday, from Monday on."""


def _hourly(history: Observed, measure: Measure) -> Floats:
    """Days by hours, as logarithms. Counts by their mean, which tells of small ones what a median does not."""
    values = history.values.reshape(-1, _HOURS, BINS_AN_HOUR)
    if history.trials is not None:
        trials = np.nansum(history.trials.reshape(values.shape), axis=(1, 2))
        share = np.nansum(values, axis=(1, 2)) / np.maximum(trials, 1)
        daily = np.where(trials > 0, np.log(share + measure.offset), np.nan)
        return np.repeat(daily[:, None], _HOURS, axis=1)
    if not measure.counted:
        return np.log(median(values, axis=2) + measure.offset)
    known = np.count_nonzero(~np.isnan(values), axis=2)
    means = np.nansum(values, axis=2) / np.maximum(known, 1)
    return np.where(known > 0, np.log(means + measure.offset), np.nan)


def _season(hourly: Floats, weekdays: Ints, measure: Measure) -> tuple[_Levels, Floats]:
    """The levels, and the profile of each weekday."""
    levels = median(hourly, axis=1)
    if not measure.seasonal:
        return _Levels(levels, np.zeros(7)), np.zeros((7, _HOURS))
    profile = np.zeros(_HOURS)
    for _ in range(2):
        profile = known_or(median(hourly - levels[:, None], axis=0), 0.0)
        levels = median(hourly - profile, axis=1)
    left = hourly - levels[:, None] - profile
    profiles = np.tile(profile, (7, 1))
    for group in _GROUPS:
        chosen = (weekdays >= group.start) & (weekdays < group.stop)
        weight = np.count_nonzero(chosen) / (np.count_nonzero(chosen) + _SHRINK_DAYS)
        of_group = weight * _agreed(left[chosen])
        left[chosen] -= of_group
        profiles[group] += of_group
    around = _around_weeks(levels)
    of_weekdays = known_or(np.array([median(around[:, weekdays == day]) for day in range(7)]), 0.0)
    return _Levels(levels - of_weekdays[weekdays], of_weekdays), profiles


def _agreed(days: Floats) -> Floats:
    """What days have in common, hour by hour. One says nothing yet, and of two the one that says less is believed: the
    other may have had an anomaly.
    """
    if len(days) < 2:
        return np.zeros(days.shape[1:])
    if len(days) > 2:
        return known_or(median(days, axis=0), 0.0)
    one, other = known_or(days, 0.0)
    return np.where(one * other > 0, np.sign(one) * np.fmin(np.abs(one), np.abs(other)), 0.0)


def _around_weeks(levels: Floats) -> Floats:
    """Each day's level beyond that of a week, which has each weekday once: of the week that ends with the day, of the
    one around it, and of the one that it begins. Where a level has changed, not all of them are mixed up by it.
    """
    weeks = median(np.lib.stride_tricks.sliding_window_view(levels, 7), axis=1)
    begins = np.arange(len(levels)) - np.array([[6], [3], [0]])
    return levels - weeks[np.clip(begins, 0, len(weeks) - 1)]


def _levels_expected(levels: Floats, measure: Measure) -> Floats:
    """For each day, and the one after the last, the level that the days before it give; NaN before the first.

    What a level is usually wrong by belongs to the spread. A day on which the level has changed does not: there, its
    own level is taken, or a series would be deaf for weeks after a change. (Not of shares: of a day with one burst of
    errors, all of the day's share is higher.)
    """
    is_known = ~np.isnan(levels)
    last_ones = np.concatenate([np.full(LEVEL_DAYS, np.nan), levels[is_known]])
    medians = median(np.lib.stride_tricks.sliding_window_view(last_ones, LEVEL_DAYS), axis=1)
    found = medians[np.concatenate([[0], np.cumsum(is_known)])]
    if not measure.seasonal:
        return found
    wrong = levels - found[:-1]
    has_changed = np.abs(wrong) > np.clip(3 * MAD_TO_SIGMA * median(np.abs(wrong)), *_LEVEL_NOISE)
    found[:-1][has_changed] = levels[has_changed]
    return found


def _by_the_hour(levels: Floats, of_weekdays: Floats, profiles: Floats, weekdays: Ints) -> Floats:
    """The expectation of each bin: on a line through the middles of the hours of its day. Where a day ends another one
    begins, and nothing says that Sunday night goes over into Monday.
    """
    hours = (levels + of_weekdays[weekdays])[:, None] + profiles[weekdays]
    return (hours @ _LINES).ravel()


def _lines() -> Floats:
    """How much each hour of a day has to do with each of its bins."""
    middle = (np.arange(BINS_A_DAY) + 0.5) / BINS_AN_HOUR - 0.5
    before = np.clip(np.floor(middle), 0, _HOURS - 2).astype(np.int64)
    found = np.zeros((_HOURS, BINS_A_DAY))
    found[before, np.arange(BINS_A_DAY)] = 1 - (middle - before)
    found[before + 1, np.arange(BINS_A_DAY)] = middle - before
    return found


_LINES = _lines()


# --- what is left -----------------------------------------------------------------------------------------------------


def _usual_beyond(measure: Measure, values: Floats, expected: Floats, days: int) -> Floats:
    """What each bin of the day usually is of the line through the hours, as a factor, where that is no chance."""
    if not measure.seasonal:
        return np.ones(BINS_A_DAY)
    left = (measure.scaled(values) - measure.scaled(expected)).reshape(days, BINS_A_DAY)
    count = np.count_nonzero(~np.isnan(left), axis=0)
    noise = max(float(known_or(sigma(left), 0.0)), measure.noise)
    is_sure = np.abs(median(left, axis=0)) > 3 * 1.25 * noise / np.sqrt(np.maximum(count, 1))
    factor = median(((values + measure.offset) / (expected + measure.offset)).reshape(days, BINS_A_DAY), axis=0)
    return np.where(is_sure, factor, 1.0)


def _grown(spread: Floats, growth: Floats) -> Floats:
    """The spread of counts that are so many times what they were: beyond that of chance, which is 1 on their scale, it
    grows with them.
    """
    beyond = np.maximum(spread**2 - 1, 0)
    return np.sqrt(np.minimum(spread**2, 1) + beyond * growth)


def _spread(left: Floats, is_alike: npt.NDArray[np.bool_]) -> Floats:
    """For each bin of the day: that of its hour on days of its kind, as far as there are days to tell them apart."""
    overall = float(known_or(sigma(left), 0.0))
    tame = np.clip(left, -_WILD * overall, _WILD * overall)[is_alike]
    alike = len(tame)
    if not alike:
        return np.full(BINS_A_DAY, overall)
    of_kind = float(known_or(sigma(tame), overall)) ** 2
    of_kind = (alike * of_kind + _SHRINK_DAYS * overall**2) / (alike + _SHRINK_DAYS)
    by_hour = tame.reshape(alike, _HOURS, BINS_AN_HOUR).swapaxes(0, 1).reshape(_HOURS, -1)
    found = known_or(sigma(by_hour, axis=1), np.sqrt(of_kind)) ** 2
    found = (np.roll(found, 1) + 2 * found + np.roll(found, -1)) / 4
    blended = (alike * found + _SPREAD_DAYS * of_kind) / (alike + _SPREAD_DAYS)
    return np.repeat(np.sqrt(blended), BINS_AN_HOUR)
