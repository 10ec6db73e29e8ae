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
# # The paper's method beside ours
#
# The paper draws spectrum maps with an untrained decoder network. Here its recipe (`Unn` with
# `recipe="paper"`), our own recipe for the same network, kriging and `field` see the same readings:
# 10 % of the cells of a 64 x 64 map with 64 bands and 4 emitters.

# %%
import matplotlib.pyplot as plt
import numpy as np

import portolan

truth = portolan.simulate(emitters=4, shadow_db=4.0, seed=3)
readings = portolan.sense(truth, fraction=0.1, seed=3)
grid = (64, 64, 1.0, 0.0, 0.0)

# %% [markdown]
# Estimators take arrays too; `fit(Readings)` also passes on the unit of simulated maps.

# %%
methods = {
    "the paper's recipe": portolan.Unn(recipe="paper", emitters=4),
    "our recipe": portolan.Unn(emitters=4),
    "kriging": portolan.Kriging(),
    "field": portolan.Field(emitters=4),
}
maps = {name: method.fit(readings).model_.map(grid=grid) for name, method in methods.items()}
scores = {name: portolan.score(drawn, truth) for name, drawn in maps.items()}
for name, found in scores.items():
    print(f"{name:20} SSIM {found['ssim']:.3f}   rms error {found['rmse_db']:.2f} dB")

# %%
band = int(np.argmax(truth["power_db"].values.max(axis=(1, 2))))
low, high = float(truth["power_db"][band].quantile(0.02)), float(truth["power_db"][band].max())
figure, axes = plt.subplots(1, 5, figsize=(17, 3.4), sharex=True, sharey=True, constrained_layout=True)
for axis, (name, drawn) in zip(axes, {"truth": truth, **maps}.items()):
    shown = drawn["power_db"][band].plot(ax=axis, vmin=low, vmax=high, add_colorbar=axis is axes[-1])
    axis.set_title(name)
plt.show()

# %% [markdown]
# One map proves little. `study` repeats the comparison over many; three here, so that the notebook
# is quick.

# %%
portolan.study(["unn:recipe=paper", "unn", "kriging", "field"], maps=3, shadow_db=4.0, seed=20).round(3)

# %%
assert scores["field"]["ssim"] > scores["kriging"]["ssim"] > 0.8
