"""Coverage and width of intervals: many simulated releases, random queries, nominal 50, 90 and 95 %.

python benchmarks/intervals.py --releases 200 --queries 50
python benchmarks/intervals.py --networks asia --epsilons 1 --releases 10 --queries 20
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import dpbn
from dpbn.workload import Query

LEVELS = (0.5, 0.9, 0.95)


def network_named(name):
    if name in ("asia", "sachs", "child", "alarm"):
        return dpbn.load_network(name)
    import pgmpy

    return dpbn.load_network(Path(pgmpy.__file__).parent / "utils" / "example_models" / f"{name}.bif.gz")


def random_queries(structure, count, seed, records):
    """By turns the marginal of one node, of two, and one node given one, given two; evidence is read off `records`."""
    generator = np.random.default_rng(seed)
    queries = []
    for index in range(count):
        targets, observed = ((1, 0), (2, 0), (1, 1), (1, 2))[index % 4]
        wanted = min(targets + observed, len(structure.nodes))
        chosen = [structure.nodes[i] for i in generator.choice(len(structure.nodes), wanted, replace=False)]
        record = records[int(generator.integers(len(records)))] if observed else {}
        queries.append(Query(tuple(chosen[:targets]), {name: record[name] for name in chosen[targets:]}))
    return queries


def one_release(job):
    """Per level: share of probabilities covered; widths of the 90 % interval; share of the width from privacy; share of
    differences covered at 90 %, each question with evidence against the same without its first observation.
    """
    name, epsilon, delta, rows, count, seed = job
    network = network_named(name)
    records = network.sample(200, seed=9).astype(str).to_dict("records")
    queries = random_queries(network.structure, count, 5, records)
    truth = dpbn.Inference(network)
    data = network.sample(rows, seed=10_000 + seed)
    release = dpbn.learn(data, network, epsilon, delta, noise=dpbn.InsecureNoise(seed))
    ask = dpbn.Inference(release)
    covered, widths, privacy, differences = {level: [] for level in LEVELS}, [], [], []
    for query in queries:
        right = truth.query(query.variables, dict(query.evidence)).values
        answer = ask.query(query.variables, dict(query.evidence))
        bars = ask.error_bars.query(answer.values, query.variables, dict(query.evidence))
        for level in LEVELS:
            low, high = bars.interval(level)
            covered[level].append(np.mean((low - 1e-12 <= right) & (right <= high + 1e-12)))
        low, high = bars.interval(0.9)
        widths.append(np.mean(high - low))
        privacy.append(np.mean(bars.privacy**2) / max(np.mean(bars.privacy**2 + bars.sampling**2), 1e-300))
        if query.evidence:
            asked = query.variables, dict(query.evidence), dict(list(query.evidence.items())[1:])
            low, high = ask.compare(*asked).interval(0.9)
            right = truth.compare(*asked).values
            differences.append(np.mean((low - 1e-12 <= right) & (right <= high + 1e-12)))
    return [np.mean(covered[level]) for level in LEVELS], widths, np.mean(privacy), np.mean(differences)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="asia,sachs,child,alarm,insurance")
    parser.add_argument("--epsilons", default="0.5,1,3")
    parser.add_argument("--delta", type=float, default=0.0)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    print(f"{chosen.releases} releases x {chosen.queries} queries, {chosen.rows:,} rows, delta {chosen.delta:g}\n")
    print(
        "| network | ε | covered at 50 % | at 90 % (± s.e.) | at 95 % | median width at 90 % | privacy's share of it "
        "| differences covered at 90 % |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with ProcessPoolExecutor(chosen.workers) as pool:
        for name in chosen.networks.split(","):
            for epsilon in map(float, chosen.epsilons.split(",")):
                jobs = [(name, epsilon, chosen.delta, chosen.rows, chosen.queries, s) for s in range(chosen.releases)]
                found = list(pool.map(one_release, jobs))
                shares = np.array([f[0] for f in found])
                mean, error = shares.mean(axis=0), shares.std(axis=0, ddof=1) / np.sqrt(len(found))
                width, privacy = np.median([w for f in found for w in f[1]]), np.mean([f[2] for f in found])
                differences = np.array([f[3] for f in found])
                print(
                    f"| {name} | {epsilon:g} | {mean[0]:.1%} | {mean[1]:.1%} ± {error[1]:.1%} | {mean[2]:.1%} "
                    f"| {width:.4f} | {privacy:.0%} "
                    f"| {differences.mean():.1%} ± {differences.std(ddof=1) / np.sqrt(len(found)):.1%} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
