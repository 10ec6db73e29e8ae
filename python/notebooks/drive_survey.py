# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A spectrum survey from a car
#
# A monitoring team drives through a town with a receiver that sweeps 48 bands. Streets are all it
# can reach; between them nothing is measured. Which transmitters are there, and how strong are they
# off the road?
#
# The town is simulated (three transmitters, shadowing of 6 dB), so that the answer can be checked.

# %%
import matplotlib.pyplot as plt
import numpy as np

import portolan

town = portolan.simulate((96, 96), cell_m=10.0, bands=48, emitters=3, decorrelation_m=300.0, seed=11)
streets = [(5, 5), (90, 5), (90, 35), (5, 35), (5, 65), (90, 65), (90, 90), (5, 90)]
readings = portolan.sense(town, path=streets, every=2, seed=11)
readings

# %% [markdown]
# `field` tells transmitters apart by their spectra and gives each its own path loss and shadowing.
# Kriging does not model transmitters. Held-out boxes of the town ask both the question that
# matters here: how good is the map away from the road?

# %%
portolan.validate(readings, ["kriging", "field"], split="blocks", emitters=3)

# %%
model = portolan.fit(readings, "field", emitters=3)
model.emitters.round(2)

# %%
grid = (96, 96, 10.0, 0.0, 0.0)
drawn = model.map(grid=grid)
kriged = portolan.fit(readings, "kriging").map(grid=grid)
band = int(np.argmax(town["power_db"].values.max(axis=(1, 2))))
figure, axes = plt.subplots(1, 4, figsize=(16, 3.8), sharex=True, sharey=True, constrained_layout=True)
limits = dict(vmin=float(town["power_db"][band].quantile(0.02)), vmax=float(town["power_db"][band].max()))
for axis, (title, field) in zip(
    axes,
    [("truth", town["power_db"]), ("field", drawn["power_db"]), ("kriging", kriged["power_db"])],
):
    field[band].plot(ax=axis, add_colorbar=False, **limits)
    axis.set_title(title)
axes[0].plot(readings.places[:, 0], readings.places[:, 1], "w.", markersize=1)
axes[1].plot(model.emitters.x_m, model.emitters.y_m, "r+", markersize=12)
drawn["spread_db"][band].plot(ax=axes[3], cmap="magma", vmin=0)
axes[3].set_title("spread of field")
plt.show()

# %%
scores = {name: portolan.score(some, town, readings=readings) for name, some in (("field", drawn), ("kriging", kriged))}
for name, found in scores.items():
    covered = found["coverage_90_unmeasured"]
    print(f"{name:8} SSIM {found['ssim']:.3f}, {found['rmse_db']:.2f} dB, 90 % interval covers {100 * covered:.0f} %")
assert scores["field"]["rmse_db"] < scores["kriging"]["rmse_db"]
