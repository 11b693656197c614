"""Compiled loops of weighted k-means in one dimension, where clusters are intervals of the sorted values."""

from __future__ import annotations

import numpy as np

from kernels.jit import njit

LLOYD_ROUNDS = 50
_ROUNDS = LLOYD_ROUNDS


@njit
def prefix_sums(values: np.ndarray, weights: np.ndarray, order: np.ndarray, sums: np.ndarray) -> None:
    """sums float64 [3, n + 1]: of w, w x and w x^2 over the first values in ascending order."""
    mass, first, second = 0.0, 0.0, 0.0
    sums[:, 0] = 0.0
    for place in range(order.size):
        x, w = np.float64(values[order[place]]), np.float64(weights[order[place]])
        mass, first, second = mass + w, first + w * x, second + w * x * x
        sums[0, place + 1], sums[1, place + 1], sums[2, place + 1] = mass, first, second


@njit
def merge_points(values: np.ndarray, order: np.ndarray, points: int, ends: np.ndarray) -> int:
    """Merge sorted neighbours to at most points + 1 runs; ends int64 receives 0 and every run's end.

    A run covers an equal share of ranks and range together, so that neither the crowd in the middle nor the
    few in the tails lose their order. Gives the number of runs.
    """
    n = order.size
    low, high = np.float64(values[order[0]]), np.float64(values[order[n - 1]])
    wide = high - low if high > low else 1.0
    count, last = 0, 0
    ends[0] = 0
    for place in range(1, n):
        share = place / n + (np.float64(values[order[place]]) - low) / wide
        run = int(share * points / 2)
        if run != last:
            count, last = count + 1, run
            ends[count] = place
    ends[count + 1] = n
    return count + 1


@njit
def best_intervals(sums: np.ndarray, ends: np.ndarray, runs: int, k: int, starts: np.ndarray) -> None:
    """The k intervals of runs with least weighted squared error; starts int64 [k + 1] of sorted values.

    Dynamic programming over clusters. The best start of the last cluster never moves back as values join, so
    it is searched between those of neighbours, coarse to fine. Source: Wu 1991; Grønlund et al. 2017.
    """
    cost, open_cost = np.empty(runs + 1), np.empty(runs + 1)
    split = np.zeros((k, runs + 1), np.int64)
    mass, first, second = sums[0][ends[: runs + 1]], sums[1][ends[: runs + 1]], sums[2][ends[: runs + 1]]
    cost[0] = 0.0
    for i in range(1, runs + 1):
        cost[i] = second[i] - first[i] * first[i] / mass[i]
    largest = 1
    while largest * 2 <= runs:
        largest *= 2
    for m in range(1, k):
        for j in range(runs + 1):
            open_cost[j] = cost[j] - second[j]
        _add_cluster(mass, first, second, open_cost, m, largest, cost, split[m])
    starts[k] = ends[runs]
    last = runs
    for m in range(k - 1, -1, -1):
        last = split[m, last]
        starts[m] = ends[last]


@njit
def _add_cluster(
    mass: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    open_cost: np.ndarray,
    m: int,
    largest: int,
    cost: np.ndarray,
    split: np.ndarray,
) -> None:
    """From costs of m clusters to those of m + 1, with the start of the last one."""
    runs = mass.size - 1
    for i in range(min(m, runs) + 1):
        cost[i], split[i] = 0.0, i
    step = largest
    while step >= 1:
        for i in range(step, runs + 1, 2 * step):
            if i <= m:
                continue
            low = max(split[i - step], m)
            high = min(split[i + step] if i + step <= runs else i - 1, i - 1)
            best, at = np.inf, low
            for j in range(low, high + 1):
                moment = first[i] - first[j]
                error = open_cost[j] - moment * moment / (mass[i] - mass[j])
                if error < best:
                    best, at = error, j
            cost[i], split[i] = best + second[i], at
        step //= 2


@njit
def refine(values: np.ndarray, order: np.ndarray, sums: np.ndarray, starts: np.ndarray) -> None:
    """Lloyd's rounds on the sorted values themselves: every value to the nearest centre, centres anew."""
    k = starts.size - 1
    centres = np.empty(k)
    for _ in range(_ROUNDS):
        _means(values, order, sums, starts, centres)
        moved = False
        for m in range(1, k):
            place = _first_above(values, order, 0.5 * (centres[m - 1] + centres[m]))
            moved = moved or place != starts[m]
            starts[m] = place
        if not moved:
            return


@njit
def _means(
    values: np.ndarray, order: np.ndarray, sums: np.ndarray, starts: np.ndarray, centres: np.ndarray
) -> None:
    """Weighted means; an empty cluster repeats the one before it."""
    for m in range(centres.size):
        a, b = starts[m], starts[m + 1]
        if b > a:
            centres[m] = (sums[1, b] - sums[1, a]) / (sums[0, b] - sums[0, a])
        else:
            centres[m] = centres[m - 1] if m else np.float64(values[order[0]])


@njit
def _first_above(values: np.ndarray, order: np.ndarray, limit: float) -> int:
    """How many sorted values are at most `limit`."""
    low, high = 0, order.size
    while low < high:
        middle = (low + high) // 2
        if values[order[middle]] <= limit:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def cluster_rows(
    values: np.ndarray, weights: np.ndarray, order: np.ndarray, points: int, centres: np.ndarray
) -> None:
    """centres float64 [rows, k], ascending, of values and positive weights float32 [rows, n]."""
    n, k = values.shape[1], centres.shape[1]
    sums, ends, starts = np.empty((3, n + 1)), np.empty(points + 3, np.int64), np.empty(k + 1, np.int64)
    for row in range(values.shape[0]):
        prefix_sums(values[row], weights[row], order[row], sums)
        runs = merge_points(values[row], order[row], points, ends)
        best_intervals(sums, ends, runs, k, starts)
        refine(values[row], order[row], sums, starts)
        _means(values[row], order[row], sums, starts, centres[row])


@njit
def nearest_codes(values: np.ndarray, table: np.ndarray, codes: np.ndarray) -> None:
    """codes uint8 [rows, n] of the nearest entry, the lower of two equal ones; table float32 ascending."""
    for row in range(values.shape[0]):
        source, entries, target = values[row], table[row], codes[row]
        target[:] = 0
        for entry in range(1, entries.size):
            middle = np.float32(0.5) * (entries[entry - 1] + entries[entry])
            for i in range(source.size):
                target[i] += np.uint8(source[i] > middle)
