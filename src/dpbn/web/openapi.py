"""The API described as OpenAPI 3.1; the document of GET /openapi.json. A test keeps it true."""

from __future__ import annotations

from typing import Any

from dpbn.version import __version__
from dpbn.web.limits import Limits

_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}
_PROBABILITY = {"type": "number", "minimum": 0, "maximum": 1}


def _list(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _mapping(values: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values, **more}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    """All of them required, and no others."""
    return {"type": "object", "required": list(properties), "properties": properties, "additionalProperties": False}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_PAIR = _list(_PROBABILITY, minItems=2, maxItems=2)
_DISTRIBUTION = _list(_PROBABILITY, description="one probability per state")
_OF_EVIDENCE = {
    "type": ["number", "null"],
    "minimum": 0,
    "description": "P(evidence); with soft evidence its mean, null beyond every float",
}
_POINT = _list(_NUMBER, minItems=2, maxItems=2)
_FINDINGS = {
    "evidence": _mapping(
        {"type": ["string", "number"]},
        description="observed state of each observed node; a number where the node has ranges",
        examples=[{"BP": "LOW"}],
    ),
    "soft": _mapping(
        _list({"type": "number", "minimum": 0}),
        description="soft evidence: one likelihood per state; only their ratios matter",
        examples=[{"HR": [0.2, 1, 1]}],
    ),
}
_WEAK_ROW = _object(
    node=_TEXT,
    parents=_mapping(_TEXT),
    weight={**_PROBABILITY, "description": "of these parents' states, given the evidence"},
)
_TABLE = {"type": "array", "description": "one axis per variable, in this order"}
_SIDE = _object(values=_TABLE, evidence={"type": "object", "description": "evidence and likelihoods of this side"})
_ENDS = {"type": "array", "description": "[low, high] for every difference; axes as in `difference`"}

SCHEMAS: dict[str, Any] = {
    "Question": _object(
        **_FINDINGS,
        targets=_list(_TEXT, description="nodes asked for (map, query, compare)"),
        other={
            **_object(**_FINDINGS),
            "required": [],
            "description": "evidence to compare with (compare); left out: none",
        },
        level={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.9},
        assignment=_mapping(_TEXT, description="an answer of mpe or map (stability)"),
    )
    | {"required": []},
    "Posteriors": _object(probability=_OF_EVIDENCE, log_probability=_NUMBER, posteriors=_mapping(_DISTRIBUTION)),
    "Probability": _object(
        probability=_OF_EVIDENCE,
        log_probability={"type": ["number", "null"], "description": "null if the evidence is impossible"},
    ),
    "Assignment": _object(
        assignment=_mapping(_TEXT),
        probability={**_PROBABILITY, "description": "of these states together, given the evidence"},
    ),
    "Stability": _object(
        stability={**_PROBABILITY, "description": "share of plausible networks in which the assignment is best"}
    ),
    "Table": _object(
        variables=_list(_TEXT),
        states=_list(_list(_TEXT)),
        values=_TABLE,
    ),
    "Comparison": _object(
        variables=_list(_TEXT),
        states=_list(_list(_TEXT)),
        first={**_SIDE, "description": "P(targets | evidence)"},
        second={**_SIDE, "description": "P(targets | other)"},
        difference={"type": "array", "description": "first minus second; one axis per variable"},
        level=_PROBABILITY,
        intervals={
            **_object(**dict.fromkeys(("total", "privacy", "sampling"), _ENDS)),
            "type": ["object", "null"],
            "description": "of the differences: not those of the answers, whose errors are partly the same; "
            "null for a release made without noise",
        },
        weak_rows=_list(
            _WEAK_ROW, description="rows below the noise floor that either answer leans on, heaviest first"
        ),
    ),
    "Intervals": _object(
        level=_PROBABILITY,
        intervals=_mapping(_object(**dict.fromkeys(("total", "privacy", "sampling"), _list(_PAIR)))),
    ),
    "WeakRows": _object(
        rows=_list(
            _WEAK_ROW,
            description="rows below the noise floor that at least one posterior leans on",
        ),
        behind=_mapping(
            _object(
                share={**_PROBABILITY, "description": "the largest total weight of one node's rows"},
                rows=_list({"type": "integer", "minimum": 0}, description="places in `rows`, heaviest first"),
            ),
            description="for every node whose posterior leans on some of them",
        ),
    ),
    "Release": _object(
        name=_TEXT,
        id={**_TEXT, "description": "content id: SHA-256 of the file without its final newline"},
        private={"type": "boolean"},
        method=_TEXT,
        statement={**_TEXT, "description": "the guarantee in plain words, Markdown"},
        points=_list(_object(question=_TEXT, answer=_TEXT), description="the same as text"),
        guarantee=_object(
            epsilon={"type": ["number", "null"], "description": "null: no noise, not private"},
            delta=_NUMBER,
            neighbors={"enum": ["add-remove", "replace"]},
            unit={"type": ["string", "null"]},
            max_contributions={"type": "integer", "minimum": 1},
        ),
        offers=_object(intervals={"type": "boolean"}),
        nodes=_list(_ref("Node")),
        arcs=_list(_object(parent=_TEXT, child=_TEXT, points=_list(_POINT, minItems=2))),
        size=_POINT,
    ),
    "Node": _object(
        name=_TEXT,
        states=_list(_TEXT),
        ranges=_mapping(_TEXT, description="what states stand for where the column is cut at public points"),
        shown={"type": "integer", "description": "how many states the drawing shows"},
        parents=_list(_TEXT),
        prior=_DISTRIBUTION,
        epsilon={"type": ["number", "null"], "description": "budget spent on this node's family"},
        public={"type": "boolean", "description": "the CPT was given, not learned"},
        rows={"type": "integer", "minimum": 1, "description": "rows of the CPT"},
        weak_rows={"type": ["integer", "null"], "description": "rows that rest on too few records"},
        box=_object(**dict.fromkeys(("x", "y", "width", "height"), _NUMBER)),
    ),
    "Problem": _object(type=_TEXT, title=_TEXT, status={"type": "integer"}, detail=_TEXT),
}

# kind -> (what it does, schema of the answer)
KINDS = {
    "posteriors": ("P(node | evidence) of every node, and P(evidence)", "Posteriors"),
    "probability": ("P(evidence), zero if impossible", "Probability"),
    "query": ("P(targets | evidence) as one table", "Table"),
    "compare": ("P(targets | evidence) minus P(targets | other), with an interval of its own", "Comparison"),
    "mpe": ("The most probable states of all unobserved nodes together", "Assignment"),
    "map": ("The most probable states of the targets together", "Assignment"),
    "intervals": ("An interval for every posterior, privacy noise and sampling error apart", "Intervals"),
    "stability": ("How many plausible networks give the same most probable states", "Stability"),
    "weak-rows": ("Which posteriors lean on CPT rows that rest on too few records", "WeakRows"),
}
_PROBLEMS = {
    "400": "the body is not JSON",
    "408": "the body took too long to arrive",
    "413": "the body is too large",
    "415": "the body is not application/json",
    "422": "unknown name or state, or impossible evidence",
    "503": "overloaded; try again after Retry-After seconds",
}


def openapi_document(limits: Limits) -> dict[str, Any]:
    """The whole description."""
    paths: dict[str, Any] = {
        "/api/release": {"get": _operation("release", "The release: nodes, drawing, guarantee, badges", "Release")}
    }
    for kind, (summary, schema) in KINDS.items():
        body = {"required": True, "content": {"application/json": {"schema": _ref("Question")}}}
        operation = _operation(kind, summary, schema)
        operation["requestBody"] = body
        operation["responses"].update(
            {
                status: {"description": text, "content": {"application/problem+json": {"schema": _ref("Problem")}}}
                for status, text in _PROBLEMS.items()
            }
        )
        paths[f"/api/{kind}"] = {"post": operation}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dpbn explorer",
            "version": __version__,
            "description": "What-if questions to one released Bayesian network. Answers are post-processing of the "
            f"release and spend no privacy budget. Bodies have at most {limits.body_bytes} bytes.",
        },
        "paths": paths,
        "components": {"schemas": SCHEMAS},
    }


def _operation(name: str, summary: str, schema: str) -> dict[str, Any]:
    answer = {"description": summary, "content": {"application/json": {"schema": _ref(schema)}}}
    return {"operationId": name, "summary": summary, "responses": {"200": answer}}
