# SPDX-License-Identifier: Apache-2.0
"""What the papers measured, modelled: data, pictures and tables of docs/figures.md.
scripts/figures is the way in."""
