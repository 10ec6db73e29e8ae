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
# # A Wi-Fi floor
#
# Somebody walks an office floor of 60 m x 25 m with a phone and notes how strong each access point
# is. The table has one line per scan and access point, as scanner apps write it. We want the map of
# every access point, how sure it is, and where to walk next.
#
# The survey is made up here so that the notebook runs anywhere: three access points, walls that
# take 4 dB, 2 dB of noise.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import portolan

rng = np.random.default_rng(4)
points = {"ap-kitchen": (8.0, 6.0), "ap-lab": (33.0, 19.0), "ap-hall": (52.0, 8.0)}
walls = [20.0, 42.0]


def level(x, y, place):
    distance = np.hypot(x - place[0], y - place[1])
    crossed = sum((x < wall) != (place[0] < wall) for wall in walls)
    return -38 - 28 * np.log10(1 + distance) - 4 * crossed


lines = []
for scan in range(140):
    x, y = rng.uniform(0, 60), rng.uniform(0, 25)
    for name, place in points.items():
        rssi = level(x, y, place) + rng.normal(0, 2)
        if rssi > -92:
            lines.append({"east": x, "north": y, "bssid": name, "rssi": round(rssi)})
survey = pd.DataFrame(lines)
survey.head()

# %% [markdown]
# A long table becomes readings in one call. Bands are access points.

# %%
readings = portolan.Readings.from_dataframe(survey, x="east", y="north", value="rssi", band="bssid")
readings

# %% [markdown]
# Which method predicts this floor best? Cross-validation compares them on held-out scans.

# %%
portolan.validate(readings, ["idw", "thin_plate", "kriging", "field"])

# %%
model = portolan.fit(readings, "kriging")
floor = model.map(cell_m=0.5, region=(0, 0, 60, 25))
floor

# %%
figure, axes = plt.subplots(2, 3, figsize=(13, 5), sharex=True, sharey=True, constrained_layout=True)
for column, name in zip(axes.T, floor.band.values):
    floor["power_dbm"].sel(band=name).plot(ax=column[0], vmin=-90, vmax=-40, cmap="viridis", add_colorbar=name == floor.band.values[-1])
    floor["spread_db"].sel(band=name).plot(ax=column[1], vmin=0, vmax=8, cmap="magma", add_colorbar=name == floor.band.values[-1])
    column[0].set_title(name)
    column[1].set_title("")
    column[0].plot(*points[name], "w*", markersize=12)
plt.show()

# %% [markdown]
# How strong is the best access point at a desk, and how sure is that? `of_reading` adds the noise
# of a single scan to what is not known of the field.

# %%
desk = [[25.0, 12.0]]
power, spread = model.predict(desk, return_std=True, of_reading=True)
best = int(np.argmax(power[0]))
print(f"{readings.names[best]}: {power[0, best]:.1f} dBm, 90 % of scans within {1.645 * spread[0, best]:.1f} dB")

# %% [markdown]
# Where should the next scans be taken?

# %%
portolan.advise(model, 5, cell_m=1.0, region=(0, 0, 60, 25))

# %%
truth = np.stack([level(floor.x.values[None, :], floor.y.values[:, None], points[name]) for name in floor.band.values])
error = np.sqrt(np.mean((floor["power_dbm"].values - truth) ** 2))
print(f"rms error of the map: {error:.2f} dB")
assert error < 4
