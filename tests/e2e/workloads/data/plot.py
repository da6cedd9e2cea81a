# SPDX-License-Identifier: Apache-2.0
"""matplotlib: a figure with text as PNG, SVG and PDF; the PNG is read back."""
import pathlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.image
import matplotlib.pyplot as plt

there = pathlib.Path("/workspace/output")
folder = there if there.is_dir() else pathlib.Path(".")

figure, axes = plt.subplots(figsize=(4, 3), dpi=100)
axes.plot([0, 1, 2, 3], [0, 1, 4, 9], color="red", linewidth=4)
axes.set_title("Tide über $x^2$")
for kind in ("png", "svg", "pdf"):
    figure.savefig(folder / f"tide.{kind}")
picture = matplotlib.image.imread(folder / "tide.png")
red = (picture[..., 0] > 0.9) & (picture[..., 1] < 0.1)
print("picture", picture.shape, "has a red line:", 500 < int(red.sum()) < 5000)
print("svg", (folder / "tide.svg").read_text().lstrip().startswith("<?xml"))
print("pdf", (folder / "tide.pdf").read_bytes()[:5])
