# SPDX-License-Identifier: Apache-2.0
"""All figures, in the page's order."""
from . import blocks, clusters, messages, schedules, waiting

FIGURES = [*schedules.FIGURES, *clusters.FIGURES, *blocks.FIGURES, *messages.FIGURES, *waiting.FIGURES]
