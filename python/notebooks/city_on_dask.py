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
# # A city on Dask
#
# A survey of a city outgrows one fit, and its map outgrows memory. `fit_tiled` fits overlapping
# tiles on the workers of a Dask cluster; `map(chunks=...)` gives a dataset whose blocks are
# predicted there, and xarray writes it to Zarr block by block.
#
# This notebook starts a small cluster on this machine. On yours, give `Client` the address.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray
from distributed import Client, LocalCluster

import portolan

# %% [markdown]
# 20,000 readings in a city of 4 km x 4 km: forty transmitters and a terrain that shades them.

# %%
rng = np.random.default_rng(1)
masts = rng.uniform(0, 4000, (40, 2))
waves = [(rng.normal(0, 0.006, 2), rng.uniform(0, 6)) for _ in range(50)]


def level(at):
    distance = np.linalg.norm(at[:, None] - masts, axis=2)
    power = 10 * np.log10((1e-3 * (1 + distance / 20) ** -3.2).sum(axis=1))
    return power + sum(np.sin(at @ wave + phase) for wave, phase in waves)


places = rng.uniform(0, 4000, (20_000, 2))
readings = portolan.Readings(places, level(places) + rng.normal(0, 1, len(places)))
readings

# %%
cluster = LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None)
client = Client(cluster)
model = portolan.fit_tiled(readings, "kriging", sensors=4000, client=client)
model

# %% [markdown]
# Nothing is computed yet: the dataset knows its size, the blocks come when somebody asks.

# %%
city = model.map(cell_m=5.0, region=(0, 0, 4000, 4000), chunks=200)
city

# %%
folder = tempfile.TemporaryDirectory()
store = Path(folder.name) / "city.zarr"
city.to_zarr(store, zarr_format=3, consolidated=False)
city = xarray.open_zarr(store, consolidated=False)

# %%
figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), constrained_layout=True)
city["power_dbm"].isel(band=0, x=slice(None, None, 2), y=slice(None, None, 2)).plot(ax=axes[0], robust=True)
city["spread_db"].isel(band=0, x=slice(None, None, 2), y=slice(None, None, 2)).plot(ax=axes[1], cmap="magma", robust=True)
plt.show()

# %% [markdown]
# How good is it where nobody measured?

# %%
fresh = rng.uniform(0, 4000, (5000, 2))
power, spread = model.predict(fresh, return_std=True)
error = power[:, 0] - level(fresh)
inside = np.mean(np.abs(error) < 1.645 * spread[:, 0])
print(f"rms error {np.sqrt(np.mean(error**2)):.2f} dB, 90 % interval covers {100 * inside:.0f} %")
assert np.sqrt(np.mean(error**2)) < 2

# %%
client.close()
cluster.close()
folder.cleanup()
