"""How fast networks are read and sampled: ratios to pgmpy in one run, on the 24 networks of the bnlearn repository.

Run by `make bench-formats` (about five minutes, nearly all of it pgmpy's); names given limit it to
those networks. Both read asia first to warm up, then each network once, in turns: the same for both.
Processor seconds, so that a busy machine disturbs little.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import time
import tracemalloc
from collections.abc import Callable
from importlib import resources
from typing import Any

import dpbn
from dpbn.errors import InputError
from dpbn.formats import bif, net, project_json, xmlbif
from dpbn.sampling import sample_codes

MEGABYTE = 2**20


def seconds(job: Callable[[], Any], runs: int = 3) -> float:
    """Processor seconds of the fastest of `runs`."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        job()
        best = min(best, time.process_time() - start)
    return best


def example_texts() -> dict[str, str]:
    folder = resources.files("pgmpy") / "utils" / "example_models"
    files = sorted((item.name, item) for item in folder.iterdir() if item.name.endswith(".bif.gz"))
    return {name.removesuffix(".bif.gz"): gzip.decompress(item.read_bytes()).decode("utf-8") for name, item in files}


def against_pgmpy(texts: dict[str, str]) -> None:
    from pgmpy.readwrite import BIFReader

    warm = example_texts()["asia"]
    bif.read(warm)
    BIFReader(string=warm).get_model()
    print(f"{'network':<12}{'kB':>7}{'bif ms':>9}{'pgmpy ms':>10}{'ratio':>7}{'xmlbif':>9}{'net':>8}{'json':>8}")
    ratios = {}
    for name, text in texts.items():
        ours = seconds(lambda text=text: bif.read(text), runs=1)
        theirs = seconds(lambda text=text: BIFReader(string=text).get_model(), runs=1)
        network = bif.read(text)
        ratios[name] = theirs / ours
        others = []
        for form in (xmlbif, net, project_json):
            written = form.write(network)
            others.append(1e3 * seconds(lambda form=form, written=written: form.read(written)))
        print(
            f"{name:<12}{len(text) / 1e3:>7.0f}{1e3 * ours:>9.1f}{1e3 * theirs:>10.1f}{ratios[name]:>7.1f}"
            f"{others[0]:>9.1f}{others[1]:>8.1f}{others[2]:>8.1f}",
            flush=True,
        )
    slowest = min(ratios, key=lambda name: ratios[name])
    print(f"at least {ratios[slowest]:.1f} times as fast as pgmpy ({slowest})\n")


def adversarial() -> dict[str, tuple[Any, str]]:
    """A megabyte each of what a reader could choke on."""
    head, half = "network n {} ", MEGABYTE // 2
    states = 'net {} node a { states = ("x"); } potential ( a ) { data = '
    return {
        "bif: open comments": (bif, "/*" * half),
        "bif: protected quotes": (bif, "//" + '"\\"' * (MEGABYTE // 3)),
        "bif: empty rows": (bif, head + "probability ( a ) { " + "();" * (MEGABYTE // 3)),
        "bif: one-letter states": (bif, head + "variable a { type discrete [2] { " + "a," * half + "a } }"),
        "bif: many variables": (
            bif,
            head + "".join(f"variable v{i} {{ type discrete [1] {{x}}; }}" for i in range(MEGABYTE // 38)),
        ),
        "net: parentheses": (net, states + "()" * half + "; }"),
        "xmlbif: nested elements": (xmlbif, "<BIF><NETWORK>" + "<VARIABLE>" * (MEGABYTE // 10)),
        "xmlbif: entities": (xmlbif, '<!DOCTYPE BIF [<!ENTITY a "' + "ha" * half + '">]><BIF>&a;</BIF>'),
        "xmlbif: outcomes": (xmlbif, "<BIF><NETWORK><VARIABLE>" + "<OUTCOME>a</OUTCOME>" * (MEGABYTE // 20)),
        "json: nested lists": (project_json, "[" * MEGABYTE),
        "json: empty objects": (project_json, "[" + "{}," * (MEGABYTE // 3)),
    }


def per_megabyte(texts: dict[str, str]) -> None:
    print(f"{'one megabyte of':<28}{'s per MB':>9}{'peak MB per MB':>16}")
    jobs = {f"bif: {name}": (bif, text) for name, text in texts.items() if len(text) > MEGABYTE / 2}
    for name, (form, text) in {**jobs, **adversarial()}.items():

        def job(form: Any = form, text: str = text) -> None:
            with contextlib.suppress(InputError):
                form.read(text)

        spent = seconds(job, runs=1)
        tracemalloc.start()
        job()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        size = len(text.encode("utf-8")) / MEGABYTE
        print(f"{name:<28}{spent / size:>9.3f}{peak / MEGABYTE / size:>16.1f}")
    print()


def sampling() -> None:
    network = dpbn.load_network("alarm")
    rows = 10**6
    network.sample(10, seed=0)
    print(f"ALARM, {rows:,} rows: codes {seconds(lambda: sample_codes(network, rows, 0)):.2f} s, ", end="")
    print(f"DataFrame {seconds(lambda: network.sample(rows, seed=0)):.2f} s")


if __name__ == "__main__":
    examples = example_texts()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", choices=[*examples, []], metavar="network")
    names = parser.parse_args().networks or examples
    against_pgmpy({name: examples[name] for name in names})
    per_megabyte(examples)
    sampling()
