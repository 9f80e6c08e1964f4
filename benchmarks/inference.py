"""Inference against pyAgrum, both in one run: `make bench-inference`.

Medians over evidence sets of 3 random nodes drawn from a sample of the network, after one question to warm up;
both sides get the same questions, and as many. The peer is asked in every way it offers (engines made anew or
kept, with the target named or not); its figure is the fastest of them. pyAgrum reads BIF as float32, so answers
are compared at 1e-6. On a busy machine long questions are interrupted and short ones are not, so wall-clock
ratios flatter whoever is quick: `--processor` takes processor seconds, with the peer on one thread.
`--only explanations` checks MPE on every network: no change of one node may improve it.
"""

from __future__ import annotations

import argparse
import gzip
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pgmpy
import pyagrum

import dpbn
from dpbn.errors import TooLargeError

MODELS = Path(pgmpy.__file__).parent / "utils" / "example_models"
ENGINES = ("LazyPropagation", "ShaferShenoyInference", "VariableElimination")
NETWORKS = ("alarm", "hepar2", "win95pts", "andes", "pigs", "munin")
SLOW = 3.0  # seconds of one peer's question above which it is asked once
CLOCK = [time.perf_counter]  # or processor seconds of all threads, by --processor
CONDITIONALS = 7  # times as many conditionals as posteriors: they differ more from each other, and are quick


def load(name: str, folder: Path) -> tuple[dpbn.BayesianNetwork, pyagrum.BayesNet]:
    path = folder / f"{name}.bif"
    path.write_bytes(gzip.decompress((MODELS / f"{name}.bif.gz").read_bytes()))
    return dpbn.load_network(path), pyagrum.loadBN(str(path))


def evidence_sets(network: dpbn.BayesianNetwork, count: int, seed: int = 0) -> list[dict[str, str]]:
    generator = np.random.default_rng(seed)
    rows = network.sample(count, seed=seed)
    sets = []
    for i in range(count):
        nodes = generator.choice(len(network.nodes), min(3, len(network.nodes) - 1), replace=False)
        sets.append({network.nodes[n]: str(rows[network.nodes[n]].iloc[i]) for n in nodes})
    return sets


def seconds(function: Callable[[], object]) -> float:
    start = CLOCK[0]()
    function()
    return CLOCK[0]() - start


def peer_posteriors(model: pyagrum.BayesNet, engine: str, evidence: dict[str, str], nodes: tuple[str, ...]) -> dict:
    ask = getattr(pyagrum, engine)(model)
    ask.setEvidence(evidence)
    ask.makeInference()
    return {node: ask.posterior(node).toarray() for node in nodes}


def peer_queries(
    model: pyagrum.BayesNet, pairs: list[tuple[str, dict[str, str]]]
) -> dict[str, Callable[[int], np.ndarray]]:
    """One conditional, asked in every way the peer offers."""
    ways: dict[str, Callable[[int], np.ndarray]] = {}
    for engine in ENGINES:
        kept = getattr(pyagrum, engine)(model)

        def ask(i: int, peer: Any = None, engine: str = engine, name: bool = True) -> np.ndarray:
            target, evidence = pairs[i]
            peer = peer or getattr(pyagrum, engine)(model)
            peer.setEvidence(evidence)
            if name:
                peer.setTargets({target})
            peer.makeInference()
            return peer.posterior(target).toarray()

        ways[engine] = ask
        ways[f"{engine} kept"] = partial(ask, peer=kept)
        if engine == "VariableElimination":  # the others would prepare all nodes
            ways[f"{engine} kept, no target named"] = partial(ask, peer=getattr(pyagrum, engine)(model), name=False)
    return ways


def peer_reused(engine: str, model: pyagrum.BayesNet) -> Callable[[dict[str, str], tuple[str, ...]], dict]:
    """The same peer with one engine object kept and its evidence replaced."""
    ask = getattr(pyagrum, engine)(model)

    def run(evidence: dict[str, str], nodes: tuple[str, ...]) -> dict:
        ask.setEvidence(evidence)
        ask.makeInference()
        return {node: ask.posterior(node).toarray() for node in nodes}

    return run


def peer_medians(ways: dict[str, Callable[[int], object]], count: int) -> dict[str, float]:
    """Median seconds of each of the peer's ways; one that takes seconds is asked fewer times."""
    found: dict[str, float] = {}
    for way, ask in ways.items():
        try:
            first = seconds(lambda ask=ask: ask(0))  # type: ignore[misc]
            if first < SLOW:  # once more: a first call may have been interrupted
                first = min(first, *(seconds(lambda ask=ask: ask(0)) for _ in range(2)))  # type: ignore[misc]
            if first > SLOW or (found and first > 20 * min(found.values())):
                found[way] = first
                continue
            found[way] = statistics.median(seconds(lambda ask=ask, i=i: ask(i)) for i in range(count))  # type: ignore[misc]
        except Exception as error:
            print(f"    {way}: {type(error).__name__}: {str(error)[:80]}")
    return found


def compare(name: str, folder: Path, rounds: int) -> None:
    network, model = load(name, folder)
    compile_seconds = seconds(lambda: dpbn.Inference(network).posteriors())
    ask = dpbn.Inference(network)
    sets = evidence_sets(network, rounds)
    ask.posteriors(sets[0])
    ours = statistics.median(seconds(lambda e=e: ask.posteriors(e)) for e in sets)  # type: ignore[misc]
    ways: dict[str, Callable[[int], object]] = {}
    for engine in ENGINES[:2]:
        ways[engine] = lambda i, engine=engine: peer_posteriors(model, engine, sets[i], network.nodes)
        reused = peer_reused(engine, model)
        ways[f"{engine} kept"] = lambda i, reused=reused: reused(sets[i], network.nodes)
    found = peer_medians(ways, rounds)
    way = min(found, key=lambda w: found[w])
    mine = ask.posteriors(sets[0])
    other = peer_posteriors(model, way.split()[0], sets[0], network.nodes)
    worst = max(float(np.abs(mine[n] - other[n]).max()) for n in network.nodes)
    row(name, "all posteriors", ours, found, f"compile {compile_seconds * 1e3:.0f} ms, differ {worst:.0e}")


def compare_conditionals(name: str, folder: Path, rounds: int) -> None:
    network, model = load(name, folder)
    generator = np.random.default_rng(1)
    pairs = []
    for evidence in evidence_sets(network, rounds):
        free = [n for n in network.nodes if n not in evidence]
        pairs.append((free[int(generator.integers(len(free)))], evidence))
    ask = dpbn.Inference(network)
    ask.query([pairs[0][0]], pairs[0][1])
    ours = statistics.median(seconds(lambda t=t, e=e: ask.query([t], e)) for t, e in pairs)  # type: ignore[misc]
    ways = peer_queries(model, pairs)
    found = peer_medians(dict(ways), rounds)
    way = min(found, key=lambda w: found[w])
    worst = max(float(np.abs(ask.query([t], e).values - ways[way](i)).max()) for i, (t, e) in enumerate(pairs[:9]))
    row(name, "one conditional, new", ours, found, f"differ {worst:.0e}")
    for _ in range(5):
        again = statistics.median(seconds(lambda t=t, e=e: ask.query([t], e)) for t, e in pairs)  # type: ignore[misc]
    row(name, "one conditional, repeated", again, found)


def compare_batch(name: str, folder: Path, rows: int = 10_000, observed: int = 5) -> None:
    network, model = load(name, folder)
    generator = np.random.default_rng(2)
    chosen = [network.nodes[i] for i in generator.choice(len(network.nodes), observed + 1, replace=False)]
    target, columns = chosen[0], chosen[1:]
    table = network.sample(rows, seed=3)[columns]
    ask = dpbn.Inference(network)
    ask.predict_proba(table[:10], target)
    ours = statistics.median(seconds(lambda: ask.predict_proba(table, target)) for _ in range(7)) / rows
    records = table.astype(str).to_dict("records")[:200]
    found: dict[str, float] = {}
    for engine in ENGINES:
        peer = getattr(pyagrum, engine)(model)
        peer.setTargets({target})

        def loop(peer: object = peer) -> list:
            answers = []
            for record in records:
                peer.setEvidence(record)  # type: ignore[attr-defined]
                peer.makeInference()  # type: ignore[attr-defined]
                answers.append(peer.posterior(target).toarray())  # type: ignore[attr-defined]
            return answers

        loop()
        found[engine] = statistics.median(seconds(loop) for _ in range(7)) / len(records)
    row(name, f"batch, per row of {rows:,}", ours, found)


def explain(name: str, folder: Path, rounds: int) -> None:
    """MPE has no peer here that answers: pyAgrum 3.3 has none for these networks, pgmpy runs out of memory."""
    network, _ = load(name, folder)
    ask = dpbn.Inference(network)
    sets = evidence_sets(network, rounds)
    ask.mpe(sets[0])
    ours = statistics.median(seconds(lambda e=e: ask.mpe(e)) for e in sets)  # type: ignore[misc]
    print(f"{name:<12}{'MPE':<28}{ours * 1e3:>12.3f} ms")


def log_weight(network: dpbn.BayesianNetwork, codes: dict[str, int], nodes: Iterable[str]) -> float:
    """ln of the product of the CPT cells of `nodes` at `codes`."""
    cells = (network.cpt(node)[tuple(codes[n] for n in (*network.parents(node), node))] for node in nodes)
    return sum(math.log(max(cell, 1e-300)) for cell in cells)


def check_explanation(name: str, folder: Path) -> None:
    """MPE given 3 findings: its probability is that of its CPT cells, and no change of one node improves it."""
    path = folder / f"{name}.bif"
    path.write_bytes(gzip.decompress((MODELS / f"{name}.bif.gz").read_bytes()))
    network = dpbn.load_network(path)
    ask = dpbn.Inference(network)
    (evidence,) = evidence_sets(network, 1, seed=5)
    start = time.perf_counter()
    try:
        assignment, probability = ask.mpe(evidence)
        first = time.perf_counter() - start
        known = ask.log_probability(evidence)
    except TooLargeError as refused:
        print(f"{name:<12}{len(network.nodes):>6} refused: {refused}", flush=True)
        return
    codes = {n: network.states(n).index(label) for n, label in {**assignment, **evidence}.items()}
    off = abs(log_weight(network, codes, network.nodes) - math.log(probability) - known)
    better = 0
    for node in assignment:
        touched = (node, *network.structure.dag.children(node))
        here = log_weight(network, codes, touched)
        for other in range(len(network.states(node))):
            better += log_weight(network, {**codes, node: other}, touched) > here + 1e-9
    again = seconds(lambda: ask.mpe(evidence))
    print(
        f"{name:<12}{len(network.nodes):>6} nodes: first {first:8.2f} s, again {again * 1e3:9.2f} ms, "
        f"better by one change: {better}, ln P off by {off:.0e}",
        flush=True,
    )


def row(name: str, what: str, ours: float, theirs: dict[str, float], note: str = "") -> None:
    unit, scale = ("ms", 1e3) if "batch" not in what else ("µs", 1e6)
    way = min(theirs, key=lambda w: theirs[w])
    best = theirs[way]
    figures = f"{ours * scale:>12.3f} {unit}{best * scale:>12.3f} {unit}{best / ours:>9.1f}x"
    print(f"{name:<12}{what:<28}{figures}  {way}  {note}", flush=True)
    others = ", ".join(f"{w} {theirs[w] * scale:.3f}" for w in theirs if w != way)
    print(f"{'':<12}  other ways of the peer, {unit}: {others}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=["posteriors", "conditionals", "batch", "mpe", "explanations"])
    parser.add_argument("--processor", action="store_true", help="processor seconds, the peer on one thread")
    options = parser.parse_args()
    if options.processor:
        CLOCK[0] = time.process_time
        pyagrum.setNumberOfThreads(1)
    with tempfile.TemporaryDirectory() as folder:
        if options.only == "explanations":
            every = sorted(path.name.removesuffix(".bif.gz") for path in MODELS.glob("*.bif.gz"))
            for name in every if options.networks == NETWORKS else options.networks:
                check_explanation(name, Path(folder))
            return
        print(f"{'network':<12}{'question':<28}{'dpbn':>15}{'pyAgrum':>15}{'faster':>10}")
        for name in options.networks:
            if options.only in (None, "posteriors"):
                compare(name, Path(folder), options.rounds)
            if options.only in (None, "conditionals"):
                compare_conditionals(name, Path(folder), CONDITIONALS * options.rounds if name != "munin" else 7)
            if options.only in (None, "mpe"):
                explain(name, Path(folder), options.rounds)
        if options.only in (None, "batch"):
            for name in [n for n in options.networks if n in ("alarm", "hepar2", "win95pts")]:
                compare_batch(name, Path(folder))


if __name__ == "__main__":
    main()
