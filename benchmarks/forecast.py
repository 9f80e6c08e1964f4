"""Forecast against what happens: `dpbn.plan` without any data, and the `weighted` error realised on real draws.

python benchmarks/forecast.py --runs 10
python benchmarks/forecast.py --runs 4 --networks cancer,earthquake,survey,win95pts,water,andes,pigs,mildew,barley
python benchmarks/forecast.py --guess          # the forecast also from a release of other rows of the same network
python benchmarks/forecast.py --evenness       # how even the CPTs of published networks are
"""

import argparse
from pathlib import Path

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


def earlier_release(network, epsilon, rows):
    """What a custodian may have from last year: a release at the same epsilon from other rows."""
    return dpbn.learn(network.sample(rows, seed=77), network, epsilon, noise=dpbn.InsecureNoise(77))


def evenness():
    """Per network, the total concentration of the Dirichlet whose CPT rows are as even (mean of sum p^2)."""
    import pgmpy
    from scipy.optimize import brentq

    folder = Path(pgmpy.__file__).parent / "utils" / "example_models"
    found = {}
    for path in sorted(folder.glob("*.bif.gz")):
        tables = [t for t in map(dpbn.load_network(path).cpt, dpbn.load_network(path).nodes) if t.shape[-1] > 1]
        seen = np.mean([(table**2).sum(axis=-1).mean() for table in tables])
        states = np.array([table.shape[-1] for table in tables])
        found[path.name[:-7]] = brentq(lambda c, k=states, s=seen: np.mean((c / k + 1) / (c + 1)) - s, 1e-4, 1e4)
    for name, concentration in sorted(found.items(), key=lambda item: item[1]):
        print(f"{name:12} {concentration:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="asia,sachs,child,alarm,insurance,win95pts,hailfinder")
    parser.add_argument("--epsilons", default="0.3,1,3")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--guess", action="store_true")
    parser.add_argument("--evenness", action="store_true")
    chosen = parser.parse_args()
    if chosen.evenness:
        evenness()
        return
    print(f"{chosen.rows:,} rows, {chosen.runs} runs; the forecast saw the structure only\n")
    print("| network | ε | forecast | its range | realised (± s.e.) | forecast / realised | in range |", end="")
    print(" with an earlier release |" if chosen.guess else "")
    print("|---|---|---|---|---|---|---|" + ("---|" if chosen.guess else ""), flush=True)
    for name in chosen.networks.split(","):
        network = network_named(name)
        for epsilon in map(float, chosen.epsilons.split(",")):
            forecast = dpbn.plan(network.structure, epsilon, chosen.rows)
            low, high = forecast.error_range
            mean, error = realised(network, epsilon, chosen.rows, chosen.runs)
            line = (
                f"| {name} | {epsilon:g} | {forecast.error:.4f} | {low:.4f}–{high:.4f} | {mean:.4f} ± {error:.4f} "
                f"| {forecast.error / mean:.2f} | {'yes' if low <= mean <= high else '**no**'} |"
            )
            if chosen.guess:
                earlier = earlier_release(network, epsilon, chosen.rows)
                sharper = dpbn.plan(network.structure, epsilon, chosen.rows, guess=earlier).error
                line += f" {sharper / mean:.2f} |"
            print(line, flush=True)


if __name__ == "__main__":
    main()
