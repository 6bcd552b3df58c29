# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Bytes that a collective cannot do without, by the size a rank: of its
# contribution (all_gather) or its output (reduce_scatter), else of the whole
# vector. Bus bandwidth is that of nccl-tests.
from typing import Callable, NamedTuple


class Shape(NamedTuple):
    """So many ranks on each of so many nodes."""
    nodes: int
    ranks_per_node: int

    @property
    def ranks(self):
        return self.nodes * self.ranks_per_node


class Volume(NamedTuple):
    bus: Callable   # bytes that bus bandwidth counts
    moved: Callable  # bytes that arrive at all ranks together
    node: Callable  # bytes that must arrive at a node from others


VOLUMES = {
    "all_gather": Volume(
        bus=lambda s, b: (s.ranks - 1) * b,
        moved=lambda s, b: s.ranks * (s.ranks - 1) * b,
        node=lambda s, b: (s.ranks - s.ranks_per_node) * b),
    "reduce_scatter": Volume(
        bus=lambda s, b: (s.ranks - 1) * b,
        moved=lambda s, b: s.ranks * (s.ranks - 1) * b,
        node=lambda s, b: (s.ranks - s.ranks_per_node) * b),
    "all_reduce": Volume(
        bus=lambda s, b: 2 * (s.ranks - 1) / s.ranks * b,
        moved=lambda s, b: 2 * (s.ranks - 1) * b,
        node=lambda s, b: 2 * (s.nodes - 1) / s.nodes * b),
    "broadcast": Volume(
        bus=lambda s, b: b,
        moved=lambda s, b: (s.ranks - 1) * b,
        # The root's node needs none; all others need all.
        node=lambda s, b: b if s.nodes > 1 else 0),
}


def ideal_seconds(collective, shape, size, goodput):
    """What the links allow; 0 where no link limits."""
    if goodput == 0:
        return 0.0
    return VOLUMES[collective].node(shape, size) / goodput
