# SPDX-License-Identifier: Apache-2.0
"""All figures, in the page's order."""

from . import (
    blocks,
    breakdown,
    chain256,
    clusters,
    concurrent,
    core_direct,
    cosmos,
    cost,
    messages,
    noise,
    offload,
    paths,
    racks,
    schedules,
    slow,
    waiting,
    windows,
)

FAMILIES = (
    schedules,
    clusters,
    slow,
    chain256,
    breakdown,
    blocks,
    messages,
    cosmos,
    concurrent,
    waiting,
    core_direct,
    offload,
    noise,
    windows,
    racks,
    paths,
    cost,
)
FIGURES = [figure for family in FAMILIES for figure in family.FIGURES]
