"""The guarantee of a release in plain words: the questions of NIST SP 800-226, answered from the release alone.

NIST SP 800-226 (Guidelines for Evaluating Differential Privacy Guarantees) asks of every claim: who is
protected, against which change, how strongly, by which mechanism, trusting whom, and what is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING

from dpbn.formats import NOT_PRIVATE

if TYPE_CHECKING:
    from dpbn.release import Release

METHODS = {
    "uniform": "equal shares of the budget for every family (D-Ind)",
    "icml2020": "Algorithm 1 of Roy Chowdhury, Rekatsinas and Jha (ICML 2020)",
    "optimized": "dpbn's optimized choice of tables and shares",
    "exact": "relative frequencies without noise",
}


@dataclass(frozen=True, slots=True)
class Point:
    """One question about the guarantee and its answer; `key` names it in privacy.json."""

    key: str
    question: str
    answer: str


def method_in_words(release: Release) -> str:
    """What the learner did, in a few words."""
    return METHODS.get(release.method, release.method)


def summary(release: Release) -> str:
    """The guarantee in one line."""
    if not release.private:
        return "NOT PRIVATE: for experiments only"
    guarantee = release.guarantee
    delta = f", δ = {bound(guarantee.delta, 6)}" if guarantee.delta else ""
    return f"ε = {bound(guarantee.epsilon, 4)}{delta} per {guarantee.unit or 'record'}"


def bound(number: float, digits: int) -> str:
    """`number` in so many digits, rounded up: what is stated must hold."""
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(number)))
    return f"{float(rounded):.{digits}g}"


def points(release: Release) -> tuple[Point, ...]:
    """Every question with its answer, the same words in the statement, the report and the model card."""
    guarantee = release.guarantee
    who = "person" if guarantee.unit else "record"
    several = f"{guarantee.max_contributions} record{'s' if guarantee.max_contributions > 1 else ''}"
    named = (
        f", as named by the column “{guarantee.unit}”; at most {several} of each were used" if guarantee.unit else ""
    )
    failure = ", with δ·(e^(kε) − 1)/(e^ε − 1) in place of δ" if guarantee.delta else ""
    alike = "was added or taken out" if guarantee.neighbors == "add-remove" else "was replaced by any other"
    return (
        Point("unit", "Who is protected?", f"Every single {who}{named}." if release.private else "Nobody."),
        Point("neighbours", "Against which change?", f"Two tables count as neighbours if one {who} {alike}."),
        Point("epsilon", "How strong is it (ε)?", _strength(release, who)),
        Point("delta", "Can it fail (δ)?", _failure(release)),
        Point("mechanism", "How is it achieved?", _mechanism(release)),
        Point(
            "trust",
            "Who has to be trusted?",
            "The custodian who ran the program and held the table, and the machine it ran on. The structure, the "
            "states and all options must have been chosen without looking at the table.",
        ),
        Point("unknown_values", "What happened to unknown values?", _unknown_values(release)),
        Point(
            "limits",
            "What is not promised?",
            "Facts about the population that hold with or without any one person can be learned: that is the purpose. "
            f"A group of k {'persons' if guarantee.unit else 'records'} is protected k times less (k·ε){failure}. "
            "Other releases from the same table add up with this one, so keep a ledger. Timing and memory of the "
            "machine are out of scope.",
        ),
    )


def _strength(release: Release, who: str) -> str:
    epsilon = release.guarantee.epsilon
    if not release.private:
        seeded = math.isfinite(epsilon)
        return f"Not at all. With secure noise it would be ε = {epsilon:.6g}." if seeded else "Not at all."
    delta = release.guarantee.delta
    # right with e^epsilon / (1 + e^epsilon) at most, and delta / (1 + e^epsilon) more if there is a delta
    factor, certainty = math.exp(min(epsilon, 700.0)), (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    shown = bound(factor, 3) if factor < 1e6 else "more than a million"
    most = f"{min(math.ceil(certainty * 1000) / 1000, 1.0):.1%}"
    replaced = release.guarantee.neighbors == "replace"
    bet = f"which of two given {who}s is in the table" if replaced else f"that a given {who} is in the table"
    other = f"had that {who} been another" if replaced else f"without that {who}"
    slack = ", give or take δ" if delta else ""
    wins = f"will guess right with probability {most} at most" if delta else f"can become {most} sure at most"
    return (
        f"ε = {bound(epsilon, 6)}. Whatever anyone concludes from this file would have been concluded {other} with a "
        f"probability that differs by a factor of at most e^ε = {shown}{slack}. Someone who thought it an even bet "
        f"{bet} {wins}.{' That is next to no protection.' if certainty > 0.999 else ''}"
    )


def _failure(release: Release) -> str:
    if not release.private:
        return "There is nothing to fail."
    delta = release.guarantee.delta
    if not delta:
        return "No. δ = 0: the bound holds always (pure differential privacy)."
    shown = bound(delta, 6)
    return f"δ = {shown}: besides the factor e^ε, the probability of anything may differ by at most {shown}."


def _unknown_values(release: Release) -> str:
    """What became of them, and of which tables the promise does not speak: those that they would refuse."""
    policy = release.on_unknown
    if policy == "drop":
        return "Records with a value outside the declared states were left out."
    place = f"the declared state “{policy}”" if policy != "catch_all" else "the state each variable declares for them"
    caught = "" if policy == "error" else f"Values outside the declared states were put into {place}. "
    refused = []
    if policy == "error":
        refused.append("a value outside the declared states")
    elif any(its.catch_all is None or policy not in ("catch_all", its.catch_all) for its in release.structure.schema):
        refused.append("such a value where no such state is declared")
    if release.guarantee.unit:
        refused.append("a record without a person")
    if not refused:
        return caught.rstrip()
    return (
        f"{caught}A table with {' or '.join(refused)} is refused as a whole, so there were none; the promise compares "
        "tables that are not refused."
    )


def _mechanism(release: Release) -> str:
    if not release.measurements and not release.looks:
        return f"No noise was drawn: {method_in_words(release)}."
    groups = len({m.together.group for m in release.measurements if m.together})
    words = {
        "laplace": "discrete Laplace noise on",
        "gaussian": "discrete Gaussian noise on",
        "summed": "several draws of discrete Laplace noise on",
        "joint": f"integer noise drawn together for several tables at a time ({groups} group"
        f"{'s' if groups > 1 else ''}), on",
    }
    kinds = Counter((m.mechanism, bool(m.names)) for m in release.measurements)
    covered = {kind: [*_covered(kinds, kind), *(_looks(release) if kind == "laplace" else [])] for kind in words}
    noise = ", and ".join(f"{words[kind]} {_listed(its)}" for kind, its in covered.items() if its)
    numbers = " and numbers" if release.looks or any(not m.names for m in release.measurements) else ""
    exact = "from exact samplers" if groups else "from OpenDP's exact samplers"
    origin = exact if release.private else "from a seeded, insecure generator"
    return (
        f"{noise[0].upper()}{noise[1:]}, {origin}; {method_in_words(release)}. The noisy tables{numbers} are in the "
        "file; everything else was computed from them."
    )


def _covered(kinds: Counter[tuple[str, bool]], kind: str) -> list[str]:
    """What has noise of this kind: the number of records (a table over no names), and so many tables."""
    tables, times = kinds[kind, True], kinds[kind, False]
    again = f" ({'twice' if times == 2 else f'{times} times'})" if times > 1 else ""
    counted = [f"the number of records{again}"] if times else []
    return [*counted, *([f"every cell of {tables} count table{'s' * (tables > 1)}"] if tables else [])]


def _looks(release: Release) -> list[str]:
    """The numbers that tell how full tables would be, in a few words."""
    tables, numbers = sum(len(looked.look.tables) for looked in release.looks), len(release.looks)
    which = "one number that tells" if numbers == 1 else f"{numbers} numbers that tell"
    return [f"{which} how sparse {tables} table{'s' * (tables > 1)} would be"] if numbers else []


def _listed(items: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def comma_list(names: Iterable[str]) -> str:
    """Names in a row, one that holds a comma in quotes."""
    return ", ".join(f'"{name}"' if "," in name else name for name in names)


def privacy_statement(release: Release) -> str:
    """The points as Markdown; says so first if the release is not private."""
    warning = "" if release.private else f"**{NOT_PRIVATE}**\n\n"
    lines = [f"- **{point.question}** {markdown_text(point.answer)}" for point in points(release)]
    return f"# Privacy statement\n\n{warning}" + "\n".join(lines) + "\n"


def visible(text: str) -> str:
    """`text` with control and direction characters spelled out, so that a label cannot disguise itself."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def markdown_text(text: str) -> str:
    """`text` with every character that Markdown or HTML would act on escaped."""
    return "".join(
        f"\\{c}" if c in "\\`*_[]|~#" else "&lt;" if c == "<" else "&amp;" if c == "&" else c for c in visible(text)
    )
