#!/usr/bin/env python3
"""The paper's fit side by side: PyTorch and portolan, same readings, same two cores, one run.

    pip install torch numpy
    benches/peers/unn.py [--binary target/release/portolan] [--repeat 5]

Fits 64 x 64 x 64 with 4 emitters to 410 sensors by 300 iterations of Adam (1080 parameters, random
start, never stopping early). PyTorch runs with one thread, two threads and compiled; portolan is
asked for the seconds of the fit alone. The two take turns; medians are printed, and the ratio of
PyTorch's best to ours.
"""
import argparse, json, statistics, subprocess, tempfile, time
from pathlib import Path

import numpy as np
import torch
from torch import nn

EMITTERS, ITERATIONS, OFFSET = 4, 300, 1e-6


def network(channels=6, blocks=4):
    layers, inputs = [], 1
    for _ in range(blocks):
        layers.append(nn.Conv2d(inputs, channels, 3, padding=1, padding_mode="reflect", bias=False))
        layers.append(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False))
        layers.extend((nn.ReLU(), nn.BatchNorm2d(channels)))
        inputs = channels
    return nn.Sequential(*layers, nn.Conv2d(channels, 1, 1, bias=False), nn.Sigmoid())


def torch_seconds(values, cells, compiled):
    torch.manual_seed(0)
    decoder = network()
    latent = torch.randn(EMITTERS, 1, 4, 4, requires_grad=True)
    psd = torch.rand(EMITTERS, values.shape[1], requires_grad=True)
    target = (values + OFFSET).log()
    weights = list(decoder.parameters())

    def objective():
        slf = decoder(latent).reshape(EMITTERS, -1)[:, cells]
        misfit = (target - (slf.T @ psd + OFFSET).log()).square().sum()
        penalty = 1e-3 * latent.square().sum() + 1e-3 * psd.square().sum()
        return misfit + penalty + 1e-4 * sum(w.square().sum() for w in weights)

    loss = torch.compile(objective) if compiled else objective
    adam = torch.optim.Adam([{"params": [latent, *weights], "lr": 0.05}, {"params": [psd], "lr": 0.001}])
    loss().backward()  # compilation and warm-up stay out of the time
    start = time.perf_counter()
    for _ in range(ITERATIONS):
        adam.zero_grad()
        loss().backward()
        adam.step()
        with torch.no_grad():
            psd.clamp_(min=0)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/release/portolan")
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()

    def portolan(*words):
        run = subprocess.run([args.binary, *words], check=True, capture_output=True, text=True)
        return json.loads(run.stdout) if run.stdout.strip() else None

    with tempfile.TemporaryDirectory() as folder:
        truth, readings, out = (str(Path(folder) / name) for name in ("truth.npz", "readings.npz", "map.npz"))
        portolan("simulate", "-o", truth, "--seed", "1")
        portolan("sense", truth, "-o", readings, "--count", "410", "--seed", "1")
        data = np.load(readings)
        values = torch.tensor(data["values"], dtype=torch.float32)
        cells = torch.tensor(data["cells"][:, 0] * int(data["grid"][1]) + data["cells"][:, 1])
        modes = {"1 thread": (1, False), "2 threads": (2, False), "1 thread, compiled": (1, True)}
        times = {name: [] for name in [*modes, "portolan"]}
        estimate = ["estimate", readings, "-o", out, "--force", "--json", "--method", "unn", "--emitters", "4"]
        settings = ["--set", "start=xavier", "--set", f"iterations={ITERATIONS}", "--set", "tolerance=0"]
        for _ in range(args.repeat):
            for name, (threads, compiled) in modes.items():
                torch.set_num_threads(threads)
                times[name].append(torch_seconds(values, cells, compiled))
            times["portolan"].append(portolan(*estimate, *settings)["seconds"])
        medians = {name: statistics.median(seconds) for name, seconds in times.items()}
        for name in modes:
            print(f"PyTorch {torch.__version__}, {name}: {medians[name]:.3f} s")
        print(f"portolan: {medians['portolan']:.4f} s")
        best = min(medians[name] for name in modes)
        print(f"ratio {best / medians['portolan']:.1f}")


if __name__ == "__main__":
    main()
