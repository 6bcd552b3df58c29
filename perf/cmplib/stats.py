# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Medians with 95 % intervals by bootstrap: no assumption about how times are
# distributed. The same numbers give the same interval: the seed is fixed.
import random
import statistics
from typing import NamedTuple

RESAMPLES = 4000
SEED = 20240229
TAIL = 0.025  # left out at each end

# The median is outside of the range of n values with a chance of 2^(1-n):
# fewer than these have no 95 % interval.
MIN_VALUES = 6


class Estimate(NamedTuple):
    median: float
    low: float
    high: float
    num: int

    @property
    def has_interval(self):
        return self.num >= MIN_VALUES


def quantile(ordered, share):
    """By linear interpolation between neighbours."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above]
                                               - ordered[below])


def estimate(values):
    """The median and the 95 % percentile interval of resampled medians; the
    least and the most of values that are too few for one."""
    values = list(values)
    if not values:
        raise ValueError("no values")
    if len(values) < MIN_VALUES:
        return Estimate(statistics.median(values), min(values), max(values),
                        len(values))
    rng = random.Random(SEED)
    medians = sorted(
        statistics.median(rng.choices(values, k=len(values)))
        for _ in range(RESAMPLES))
    return Estimate(statistics.median(values), quantile(medians, TAIL),
                    quantile(medians, 1 - TAIL), len(values))


def ratio(theirs, ours):
    """How many times as fast ours are: of pairs taken one after the other,
    so that what disturbs the machine for longer than a pair cancels out."""
    if len(theirs) != len(ours):
        raise ValueError(f"{len(theirs)} and {len(ours)} are not pairs")
    return estimate(a / b for a, b in zip(theirs, ours))
