# SPDX-License-Identifier: Apache-2.0
"""A small data analysis: a year of measurements of a beach, a table and a plot.

    cay run examples/analysis.py

Prints the table and leaves beach.png in /workspace/output, from where it comes back to the
current folder.  Outside a sandbox it writes to the current folder itself.
"""

import pathlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd


def measure(days=365, seed=7):
    """A made-up year: warm in summer, more visitors when it is warm and dry."""
    random = np.random.default_rng(seed)
    date = pd.date_range("2025-01-01", periods=days, freq="D")
    season = np.sin((date.day_of_year.to_numpy() - 105) / 365 * 2 * np.pi)
    water = 17 + 7 * season + random.normal(0, 0.6, days)
    rain = random.gamma(0.6, 4, days) * (1.2 - 0.5 * season)
    visitors = random.poisson(np.clip(30 * (water - 12), 0, None) / (1 + rain / 5))
    return pd.DataFrame({"date": date, "water": water, "rain": rain, "visitors": visitors})


def by_month(data):
    table = data.groupby(data["date"].dt.month).agg(
        water=("water", "mean"), rain=("rain", "sum"), visitors=("visitors", "sum"))
    table.index = [f"2025-{month:02d}" for month in table.index]
    return table.round({"water": 1, "rain": 0})


def plot(data, path):
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(8, 5), dpi=120)
    above.plot(data["date"], data["water"].rolling(7, min_periods=1).mean(), color="tab:blue")
    above.set_ylabel("water, °C")
    below.bar(data["date"], data["visitors"], width=1.0, color="tab:orange")
    below.set_ylabel("visitors")
    figure.suptitle("A year at the beach")
    figure.tight_layout()
    figure.savefig(path)


def main():
    data = measure()
    print(by_month(data).to_string())
    slope, start = np.polyfit(data["water"], data["visitors"], 1)
    print(f"\nEach degree brings {slope:.0f} visitors a day more.")

    output = pathlib.Path("/workspace/output")
    path = (output if output.is_dir() else pathlib.Path.cwd()) / "beach.png"
    plot(data, path)
    print(f"The plot is in {path.name}.")


main()
