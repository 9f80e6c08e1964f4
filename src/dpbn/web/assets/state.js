// What the user has said: evidence, soft evidence, choices, and their place in the link and in storage.

import { label } from "./words.js";

const UNREADABLE = "The link cannot be read: it is damaged or incomplete.";

/** A fresh state for a release. Evidence maps a node to a label, soft evidence to one likelihood per state. */
export function createState(release) {
  return {
    release,
    nodes: new Map(release.nodes.map((node) => [node.name, node])),
    evidence: new Map(),
    soft: new Map(),
    baseline: null, // { evidence, soft } to compare with
    compared: [],
    selected: null,
    best: "off",
    targets: [],
    whiskers: "parts",
    level: 0.9,
    camera: null,
    answer: null,
    intervals: null,
    weak: null,
    explanation: null,
    differences: null,
  };
}

/** What is asked of the evidence now, or of the baseline. */
export function question(side) {
  return { evidence: Object.fromEntries(side.evidence), soft: Object.fromEntries(softened(side)) };
}

/** Soft evidence that says something. Equal likelihoods say nothing: they are kept for the sliders only. */
export function softened(side) {
  return new Map([...side.soft].filter(([, likelihood]) => likelihood.some((value) => value !== likelihood[0])));
}

/** What an answer says of each node, in the release's order. A plain object knows "constructor" and puts "2" first. */
export function byNode(state, answers) {
  const names = [...state.nodes.keys()].filter((name) => Object.hasOwn(answers, name));
  return new Map(names.map((name) => [name, answers[name]]));
}

export const MARKED = 0.1; // smaller shares are in the panel only: with evidence nearly every answer leans on some rare row

/** What the answer for a node leans on, if that is enough to mark it: { share, rows }. */
export function leaning(state, name) {
  const found = weakRows(state, name);
  return found && found.share >= MARKED ? found : null;
}

/** The weak rows behind the answer for a node, heaviest first. */
export function weakRows(state, name) {
  const behind = state.answer && !state.evidence.has(name) ? state.weak?.behind.get(name) : null;
  return behind ? { share: behind.share, rows: behind.rows.map((place) => state.weak.rows[place]) } : null;
}

export function toggle(state, name, label) {
  const same = state.evidence.get(name) === label;
  state.soft.delete(name);
  if (same) state.evidence.delete(name);
  else state.evidence.set(name, label);
  return !same;
}

export function retract(state, name) {
  state.evidence.delete(name);
  state.soft.delete(name);
}

export function setSoft(state, name, likelihood) {
  state.evidence.delete(name);
  state.soft.set(name, likelihood);
}

/** Take the evidence as what later evidence is compared with. */
export function pin(state) {
  state.baseline = { evidence: new Map(state.evidence), soft: softened(state) };
  if (!state.compared.length && state.selected && !state.evidence.has(state.selected)) state.compared.push(state.selected);
}

/** Whether the evidence says something else than the baseline. */
export function differs(state) {
  const said = (side) => JSON.stringify([[...side.evidence].sort(), [...softened(side)].sort()]);
  return Boolean(state.baseline) && said(state) !== said(state.baseline);
}

/** Where a node is observed, so that there is nothing to compare: "now", "in the baseline", "on both sides" or "". */
export function observedWhere(state, name) {
  const [now, before] = [state.evidence.has(name), state.baseline.evidence.has(name)];
  return now && before ? "on both sides" : now ? "now" : before ? "in the baseline" : "";
}

/** The view as the part of a link after "#". */
export function toHash(state) {
  const view = {};
  if (state.evidence.size) view.e = [...state.evidence];
  const soft = [...softened(state)];
  if (soft.length) view.s = soft;
  if (state.selected) view.n = state.selected;
  if (state.best !== "off") view.b = state.best;
  if (state.targets.length) view.t = state.targets;
  if (state.whiskers !== "parts") view.w = state.whiskers;
  if (state.level !== 0.9) view.l = state.level;
  if (state.baseline) view.v = { e: [...state.baseline.evidence], s: [...softened(state.baseline)], t: state.compared };
  if (state.camera) view.c = state.camera.map((value) => Math.round(value * 1e5) / 1e5);
  return Object.keys(view).length ? `#${encodeURIComponent(JSON.stringify(view))}` : "";
}

/** Take over what a link says; returns a complaint, empty if there is none. */
export function fromHash(state, hash) {
  let view = {};
  try {
    view = JSON.parse(decodeURIComponent(hash.replace(/^#/, "")) || "{}");
  } catch {
    return UNREADABLE;
  }
  if (typeof view !== "object" || view === null || Array.isArray(view)) return UNREADABLE;
  const strange = takeEvidence(state, view.e, view.s);
  strange.push(...takeBaseline(state, view.v));
  state.selected = state.nodes.has(view.n) ? view.n : null;
  state.best = ["mpe", "map"].includes(view.b) ? view.b : "off";
  state.targets = list(view.t).filter((name) => state.nodes.has(name));
  state.whiskers = ["off", "total"].includes(view.w) ? view.w : "parts";
  state.level = [0.5, 0.95].includes(view.l) ? view.l : 0.9;
  const camera = list(view.c);
  state.camera = camera.length === 3 && camera.every(Number.isFinite) && camera[2] > 0 ? camera : null;
  return strange.length ? `The link mentions what this release does not have: ${[...new Set(strange)].join("; ")}.` : "";
}

/** The baseline of a link and the nodes to compare; one of which nothing is left is no baseline. */
function takeBaseline(state, said) {
  const side = { nodes: state.nodes, evidence: new Map(), soft: new Map() };
  const strange = takeEvidence(side, said?.e, said?.s);
  const names = list(said?.t);
  state.compared = [...new Set(names.filter((name) => state.nodes.has(name)))];
  const left = side.evidence.size + side.soft.size > 0 || !strange.length;
  state.baseline = typeof said === "object" && said !== null && left ? side : null;
  return [...strange, ...names.filter((name) => !state.nodes.has(name)).map(told)];
}

/** Replace all evidence by these lists of pairs; returns those that this release does not have. */
export function takeEvidence(state, hard, soft) {
  const strange = [];
  state.evidence.clear();
  state.soft.clear();
  for (const [name, value] of list(hard).filter(Array.isArray)) {
    if (state.nodes.get(name)?.states.includes(value)) state.evidence.set(name, value);
    else strange.push(`${told(name)} = ${told(value)}`);
  }
  for (const [name, likelihood] of list(soft).filter(Array.isArray)) {
    const fits = list(likelihood).length === state.nodes.get(name)?.states.length;
    if (fits && likelihood.every((value) => Number.isFinite(value) && value >= 0)) setSoft(state, name, likelihood);
    else strange.push(told(name));
  }
  return strange;
}

function told(value) {
  return label(typeof value === "string" ? value : String(JSON.stringify(value)));
}

function list(value) {
  return Array.isArray(value) ? value : [];
}

// Saved evidence sets stay in this browser, apart for every release.

function shelf(state) {
  return `dpbn.saved.${state.release.id}`;
}

export function savedSets(state) {
  try {
    return list(JSON.parse(localStorage.getItem(shelf(state)) || "[]")).filter((set) => typeof set?.name === "string");
  } catch {
    return [];
  }
}

export function saveSet(state, name) {
  const others = savedSets(state).filter((set) => set.name !== name);
  store(state, [...others, { name, evidence: [...state.evidence], soft: [...softened(state)] }]);
}

export function deleteSet(state, name) {
  store(state, savedSets(state).filter((set) => set.name !== name));
}

function store(state, sets) {
  try {
    localStorage.setItem(shelf(state), JSON.stringify(sets));
  } catch {
    // storage is full or forbidden: the set lives in the link only
  }
}
