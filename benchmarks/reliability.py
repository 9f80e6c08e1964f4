# ruff: noqa: E501 - the lines of a page
"""docs/reliability.md: what dpbn promises, how it is tested, and the figures the long checks saw.

The commands of the long checks call `write_page` with their figures; `python benchmarks/reliability.py` writes it again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]
PAGE = ROOT / "docs" / "reliability.md"

TOP = """# Reliability

What dpbn promises beyond its mathematics, how each promise is tested, and what was seen. The figures come from
`docs/figures/reliability.json`, which the commands named here write; short versions of all of them run in `make test`
(`tests/trust`, `tests/privacy`). Every figure says when it was seen; none is an estimate.

## Two channels

**For the public**: a release file, its report, `privacy.json`, the model card, the explorer. Everything in them
follows from noisy counts and public facts. **For the custodian**: standard output and error of the commands,
exceptions, warnings, the ledger. `DataError` may name a column, a file and how many records do not fit; it never holds a
value. Counts of unknown values are exact, so a `DataError` must not be published. All other errors concern
public facts only. With `DPBN_DEBUG=1` tracebacks are shown: for the custodian's eyes.
An error of an engine (pandas, Arrow, DuckDB, polars, Spark), which may quote a row, is replaced inside the data
layer by a `DataError` with no cause and no context attached; folders named `key=value` are shown as `key=...`.
"""

LIMITS = """## Known limits

- **Whoever can rewrite both the ledger and its anchor is not caught.** Keep the line of `dpbn ledger verify` elsewhere.
- **A release file is not signed.** `load_release` refuses what is malformed, inconsistent with its own structure hash, or
  claims less than its own measurements cost (`tests/trust/test_claims.py`); someone who edits noisy counts, or all numbers
  together, is not caught. Compare the release's id with the one in the ledger.
- **Timing, memory and the existence of an error are not protected.** How long counting takes depends on the table, and
  under `on_unknown="error"` the refusal itself tells the custodian that some value is undeclared.
- **Locals of a traceback hold rows.** Tools that print local variables of frames show private data; dpbn never does.
- **A killed process may have charged without a release.** The charge is committed before noise is drawn and never
  given back; an interrupted `learn` says so in a note.
- **Subnormal budgets**: noise scales above 2^50 are refused, so epsilon below about 1e-15 per table is out of reach.
- **A network of large treewidth is refused after a search of seconds**, not at once: greedy orders are tried until they are
  hopeless (figure above). Wide families are refused at once.
- **Audits miss small faults when they are short.** A stage I that is not charged (a loss of 1.1 where 1 is promised) was
  missed with 200,000 runs and is caught with a million, which broken mechanisms have since.
- **Intervals of very large networks are slow**: they re-estimate the network many times (andes, 223 nodes: about 20 seconds of one core, once per command). `--no-interval` does without.
- **CSV**: a line with too many or too few fields stops reading; how many such lines there are is not counted.
- **Release readers**: gzip files may expand 60-fold (or to 16 MB), more is refused.
- **No vulnerability scan**: `pip-audit` is pinned, but its data come from the network and could not be had where these
  figures were made. Run `pip-audit -r constraints.txt` where they can.
"""


def _section(title: str, promise: str, command: str, seen: str) -> str:
    return f"## {title}\n\n{promise}\n\nLong version: `{command}`.\n\n{seen}\n"


def _when(figures: dict[str, Any]) -> str:
    return f"Seen {figures['seen']} on {figures['cores']} shared cores"


def _audit(figures: dict[str, Any]) -> str:
    promise = (
        "A black-box auditor runs the real measurement path on neighbouring tables and bounds its privacy loss from "
        "below (Clopper-Pearson at 10^-6, events chosen on a pilot): every private method by its measurements and by the "
        "whole of `learn`. Clean paths must hold and come close to what they promise, every mechanism broken on purpose "
        "must be caught. Lines on Gaussian and summed noise are about delta at the epsilon named, against the exact law."
    )
    table = "\n".join(figures["rows"])
    tightness = ", ".join(f"**{line['tightness']}** with {line['runs']:,} runs" for line in figures["family"])
    failed = figures["failed"]
    outcome = f"**Not as they must be: {', '.join(failed)}.**" if failed else "Every line is as it must be."
    outcome += f" {figures['remark']}" if "remark" in figures else ""
    seen = (
        f"{_when(figures)}: {figures['clean_audits']} clean audits, "
        f"**{figures['false_alarms']} false alarms**; {figures['caught']} of {figures['broken']} broken variants caught; "
        f"tightness on a single family at epsilon 1: {tightness}. {outcome}\n\n"
        "| mechanism | runs on each table | promised | proven at least | ratio | outcome | event |\n"
        f"|---|---|---|---|---|---|---|\n{table}"
    )
    return _section("Audit", promise, "make audit", seen)


def _leaks(figures: dict[str, Any]) -> str:
    promise = (
        "Canary values stand in cells, labels, unit ids, unused columns, file and folder names and damaged bytes, through "
        "pandas, Arrow, polars (eager and lazy), DuckDB, CSV and Parquet, library and command, with failing noise, "
        "interrupts, exhausted budgets and failing writes. Streams, logs, warnings, the whole chain of every exception, "
        "release, report and ledger are searched. And with the noisy counts held equal, releases and reports of "
        "neighbouring and of unrelated tables are byte-identical (`tests/trust/test_leaks.py`)."
    )
    outcomes = ", ".join(f"{name} {count}" for name, count in figures["outcomes"].items())
    seen = (
        f"{_when(figures)}: {figures['cases']:,} fault cases, **{figures['canaries_found']} canaries found**, "
        f"{figures['untyped_errors']} untyped errors. Outcomes: {outcomes}. {figures['through_spark']} of them went "
        "through Spark; short versions for Spark and Ibis run in the tests."
    )
    return _section("Nothing leaks beside the noise", promise, "python benchmarks/leaks.py", seen)


def _ledger(figures: dict[str, Any]) -> str:
    promise = (
        "A charge that was reported is there after any kill; a cap is never passed; a write that fails charges nothing or "
        "is counted, never forgotten; torn, edited and rolled-back files are refused."
    )
    kills, race, disk = figures["kills"], figures["race"], figures["full_disk"]
    faults = figures["every_kth_call"]
    seen = (
        f"{_when(figures)}:\n\n"
        f"- {kills['kills']:,} SIGKILLs at random points, {kills['charges']:,} charges: **{kills['under_counted']} under-"
        f"counted** ({kills['killed_between_commit_and_report']} kills hit between commit and report, and were counted).\n"
        f"- {race['processes']} processes, {race['attempts']:,} attempts for a cap that admits {race['cap_admits']:,}: "
        f"{race['granted']:,} granted, {race['refused']:,} refused, {race['other_errors']} other errors, "
        f"**overspent: {'yes' if race['spent_over_cap'] else 'no'}**.\n"
        f"- A disk that fills at {disk['limits']} different sizes: **{disk['charges_lost']} charges lost**.\n"
        "- Every k-th write, fsync, rename and truncate of the C library fails, once or from then on, k = 1, 2, ... until the "
        f"operation is done, for opening, charging, verifying, raising, naming and saving: {faults['cases']} cases, "
        f"{faults['failed_calls']} failed calls, {faults['refused']} refusals, **{faults['wrong']} under-counted or torn**."
    )
    return _section("Ledger", promise, "python benchmarks/ledger.py", seen)


def _limits(figures: dict[str, Any]) -> str:
    refused = ", ".join(
        f"{name} {cost['cpu_milliseconds']} ms and {cost['megabytes']} MB"
        for name, cost in figures["refusals_of_10^31_cells"].items()
        if cost["megabytes"] is not None
    )
    wide = "".join(
        f" {name[0].upper()}{name[1:]}: refused after {cost['cpu_milliseconds']} ms of search."
        for name, cost in figures["refusals_of_10^31_cells"].items()
        if cost["megabytes"] is None
    )
    return (
        f"\n\n`python benchmarks/limits.py`, {_when(figures).lower()}: the slowest of {figures['megabyte_inputs']} hostile "
        f"inputs of a megabyte took {figures['slowest_cpu_seconds']} s of processor time ({figures['slowest_reader']}); the "
        f"whole process, imports and all readers, peaked at {figures['process_peak_mb']} MB. A structure with a table of "
        f"10^31 cells was refused in: {refused}.{wide}"
    )


def _fuzz(figures: dict[str, Any], limits: dict[str, Any]) -> str:
    promise = (
        "Whatever the bytes, a reader gives a whole value or a typed error, within a second and 256 MB per MB of input. "
        "XML entities are refused unexpanded, pickles are never loaded, tables of 10^30 cells are refused before "
        "anything is allocated, 500 path traversals reach no file, 200 hostile labels and formulas stay text "
        "(`tests/trust/test_readers.py`, `test_hostile_names.py`)."
    )
    rows = "\n".join(
        f"| {line['reader']} | {line['inputs']:,} | {line['edges']} | {'FAILED' if line['failed'] else 'none'} |"
        for line in figures["readers"]
    )
    seen = (
        f"{_when(figures)}: {figures['inputs']:,} inputs in {figures['seconds_per_reader']} s per reader, coverage-guided "
        f"(atheris), one second and 768 MB at most for one input: **{figures['failures']} failures**.\n\n"
        f"| reader | inputs | edges covered | crashes, hangs, untyped errors |\n|---|---|---|---|\n{rows}"
        + _limits(limits)
    )
    return _section("Bad input", promise, "make fuzz", seen)


def _soak(figures: dict[str, Any]) -> str:
    promise = (
        "The explorer answers or sheds, with every security header, beside slow clients, oversized bodies and broken "
        "HTTP; its memory stays level."
    )
    answers = ", ".join(f"{name}: {count:,}" for name, count in sorted(figures["answers"].items()))
    shed = ", ".join(f"{name} ({count})" for name, count in sorted(figures["shed"].items()))
    seen = (
        f"{_when(figures)}, {figures['seconds']} s of {figures['clients']} clients on loopback: {figures['requests']:,} "
        f"requests ({answers}), **{figures['errors']} errors**; memory {figures['memory_mb_half']} MB half-way, "
        f"{figures['memory_mb_end']} MB at the end (**{figures['memory_growth_percent']:+} %**). Shed: {shed}. "
        "`make soak` runs ten minutes."
    )
    return _section("Explorer under load", promise, "make soak", seen)


REST = """## Numbers, interruption, supply chain

- **Numbers** (`tests/trust/test_numbers.py`): epsilon from 1e-6 to 1e4, delta from 1e-300 to 0.999, counts to 2^62,
  no, one and equal rows, single states, isolated nodes, 1,000 states, chains of 500 nodes, deterministic tables: every
  method learns and every kind of query answers, or refuses with a reason.
- **Interruption** (`tests/trust/test_interruption.py`): Ctrl-C and SIGKILL while counting, learning and evaluating leave
  no half file (temporary name, fsync, rename, fsync of the folder) and a ledger that tells what was charged;
  evaluations resume. Every call of write, fsync, rename and open that fails leaves the old file or none.
- **Supply chain** (`tests/trust/test_supply_chain.py`): `constraints.txt` pins everything the dev extra installs, and a
  test compares it with what is installed; licences are listed in [licences.md](licences.md).
"""


def write_page(known: dict[str, Any]) -> None:
    """The whole page from all figures known."""
    parts = [TOP, _audit(known["audit"]), _leaks(known["leaks"]), _ledger(known["ledger"])]
    parts += [_fuzz(known["fuzz"], known["limits"]), _soak(known["soak"]), REST, LIMITS]
    PAGE.write_text("\n".join(parts), "utf-8")


if __name__ == "__main__":
    from benchmarks.figures import FILE

    write_page(json.loads(FILE.read_text("utf-8")))
