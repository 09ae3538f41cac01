# SPDX-License-Identifier: Apache-2.0
"""Numbers for the text below a figure."""


def span(values, digits=0):
    """The least and the most of some values: "2 to 5", or "2" where rounding leaves one."""
    values = list(values)
    low, high = f"{min(values):,.{digits}f}", f"{max(values):,.{digits}f}"
    return low if low == high else f"{low} to {high}"


def percent(values, digits=0):
    """The same of shares: "2 to 5 %"."""
    return f"{span((100 * value for value in values), digits)} %"
