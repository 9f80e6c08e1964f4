"""Forecast against what happens: `dpbn.plan` without any data, and the `weighted` error realised on real draws.

python benchmarks/forecast.py --runs 10
"""

import argparse

import numpy as np
from intervals import network_named

import dpbn
from dpbn.evaluate.metrics import weighted


def realised(network, epsilon, rows, runs):
    """Mean `weighted` error over releases learned from rows of the true network."""
    ask = dpbn.Inference(network)
    mass = {n: ask.query(list(network.parents(n))).values if network.parents(n) else np.ones(()) for n in network.nodes}
    found = []
    for seed in range(runs):
        data = network.sample(rows, seed=500 + seed)
        learned = dpbn.learn(data, network, epsilon, noise=dpbn.InsecureNoise(seed)).network
        found.append(weighted(network, learned, mass))
    return float(np.mean(found)), float(np.std(found) / np.sqrt(runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="asia,sachs,child,alarm,insurance,win95pts,hailfinder")
    parser.add_argument("--epsilons", default="0.3,1,3")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=10)
    chosen = parser.parse_args()
    print(f"{chosen.rows:,} rows, {chosen.runs} runs; the forecast saw the structure only\n")
    print("| network | ε | forecast | realised (± s.e.) | forecast / realised |")
    print("|---|---|---|---|---|", flush=True)
    for name in chosen.networks.split(","):
        network = network_named(name)
        for epsilon in map(float, chosen.epsilons.split(",")):
            forecast = dpbn.plan(network.structure, epsilon, chosen.rows).error
            mean, error = realised(network, epsilon, chosen.rows, chosen.runs)
            print(
                f"| {name} | {epsilon:g} | {forecast:.4f} | {mean:.4f} ± {error:.4f} | {forecast / mean:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
