"""The privacy statement of a release in plain words (Markdown)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpbn.release import Release

_METHODS = {
    "uniform": "equal shares for every family (D-Ind)",
    "icml2020": "Algorithm 1 of Roy Chowdhury, Rekatsinas, Jha (ICML 2020)",
    "optimized": "dpbn's optimized tables and shares",
    "exact": "relative frequencies without noise",
}


def privacy_statement(release: Release) -> str:
    """Who is protected, by how much, how, and what is not promised."""
    if not release.private:
        return (
            "# Privacy statement\n\n**This file is NOT private.** It was made without noise or with noise from a "
            f"seeded generator (method `{release.method}`), for experiments only. Do not publish it.\n"
        )
    guarantee = release.guarantee
    who = f"one `{guarantee.unit}`" if guarantee.unit else "one record"
    bound = f" (at most {guarantee.max_contributions} records each)" if guarantee.unit else ""
    change = "added or removed" if guarantee.neighbors == "add-remove" else "replaced by another"
    mechanisms = sorted({m.mechanism for m in release.measurements})
    noise = " and ".join(f"discrete {name.capitalize()}" for name in mechanisms) or "no"
    delta = f" and δ = {guarantee.delta:g}" if guarantee.delta else " (pure, δ = 0)"
    policy = {
        "error": "only tables whose values all lie in the declared states are considered; others are refused",
        "drop": "records with a value outside the declared states were left out",
    }.get(release.on_unknown, "values outside the declared states were put into the declared catch-all state")
    return f"""# Privacy statement

- **Guarantee**: differential privacy with ε = {guarantee.epsilon:.6g}{delta}.
- **Who is protected**: {who}{bound}. Two tables are neighbours if {who} is {change}.
- **Meaning**: whatever anyone concludes from this file, they would have concluded with nearly the same probability
  (within a factor e^ε{", up to δ" if guarantee.delta else ""}) had that {guarantee.unit or "record"} been different.
- **Mechanism**: {noise} noise on every cell of {len(release.measurements)} count tables, from OpenDP's exact samplers;
  {_METHODS.get(release.method, release.method)}. Everything else was computed from the noisy tables.
- **Unknown values**: {policy}.
- **Trust**: the custodian who ran this saw the data; the structure, states and options were chosen without it.
- **Not promised**: facts about the population that hold with or without any one record can still be learned;
  other releases from the same data add up (keep a ledger).
"""
