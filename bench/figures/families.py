# SPDX-License-Identifier: Apache-2.0
"""All figures, in the page's order."""
from . import blocks, chain256, clusters, messages, noise, offload, racks, schedules, waiting, windows

FAMILIES = (schedules, clusters, chain256, blocks, messages, waiting, offload, noise, windows, racks)
FIGURES = [figure for family in FAMILIES for figure in family.FIGURES]
