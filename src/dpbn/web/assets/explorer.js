// The page: state in the middle, graph and panel around it, answers from the API.

import { Problem, ask, forget, release as loadRelease } from "./api.js";
import { createGraph } from "./graph.js";
import { between } from "./compare.js";
import { createPanel } from "./panel.js";
import * as said from "./state.js";
import { leaning } from "./state.js";
import { label, percent, points, probabilityText } from "./words.js";

const byId = (id) => document.getElementById(id);
let state;
let graph;
let panel;
let hashTimer = 0;
let intervalTimer = 0;
let compareTimer = 0;

async function start() {
  const release = await loadRelease();
  state = said.createState(release);
  graph = createGraph(byId("graph"), release, {
    toggle, retract, select, focus: select, camera: (at) => { state.camera = at; remember(); },
  });
  panel = createPanel(release, {
    toggle, retract, select, soften, save, load, forget: drop, best, whiskers, level, addTarget, removeTarget,
    pin, unpin, addCompared, removeCompared,
  });
  buttons();
  takeLink();
  window.addEventListener("hashchange", () => {
    if (location.hash !== said.toHash(state)) takeLink();
  });
}

function takeLink() {
  const complaint = said.fromHash(state, location.hash);
  graph.look(state.camera);
  refresh("", complaint);
}

// What the user does

function toggle(name, value) {
  const set = said.toggle(state, name, value);
  select(name);
  refresh(set ? `${label(name)} = ${label(value)} set.` : `${label(name)} retracted.`);
}

function retract(name) {
  said.retract(state, name);
  refresh(`${label(name)} retracted.`);
}

function soften(name, likelihood) {
  said.setSoft(state, name, likelihood);
  refresh("");
}

function select(name) {
  if (state.selected === name) return;
  state.selected = name;
  draw();
  remember();
}

function save(name) {
  said.saveSet(state, name);
  draw();
  tell(`Saved ${label(name)}.`);
}

function load(set) {
  said.takeEvidence(state, set.evidence, set.soft);
  refresh(`Loaded ${label(set.name)}.`);
}

function drop(name) {
  said.deleteSet(state, name);
  draw();
}

function best(kind) {
  state.best = kind;
  explain();
  draw();
  remember();
}

function whiskers(kind) {
  state.whiskers = kind;
  measure();
  draw();
  remember();
}

function level(value) {
  state.level = value;
  state.intervals = null;
  measure();
  compare();
  draw();
  remember();
}

function addTarget() {
  if (state.selected && !state.targets.includes(state.selected)) state.targets.push(state.selected);
  best("map");
}

function removeTarget(name) {
  state.targets = state.targets.filter((target) => target !== name);
  best("map");
}

function pin() {
  said.pin(state);
  compare();
  draw();
  remember();
  tell("Pinned as the baseline: what you set next is compared with this evidence.");
}

function unpin() {
  state.baseline = null;
  compare();
  draw();
  remember();
  const next = byId("pin").disabled ? byId("pin").closest("section") : byId("pin"); // the button pressed is gone
  next.focus({ preventScroll: true });
  tell("Baseline cleared.");
}

function addCompared() {
  if (state.selected && !state.compared.includes(state.selected)) state.compared.push(state.selected);
  compare();
  draw();
  remember();
}

function removeCompared(name) {
  state.compared = state.compared.filter((other) => other !== name);
  compare();
  draw();
  remember();
}

// What the server answers

/** Ask again. A complaint stays until the next time, whatever the answer. */
async function refresh(news, complaint = "") {
  remember();
  clearTimeout(intervalTimer);
  forget("intervals"); // those of the question before would be taken for this one's
  forget("weak-rows");
  clearTimeout(compareTimer);
  forget("compare");
  state.differences = null;
  state.intervals = null;
  state.weak = null;
  draw();
  try {
    const answer = await ask("posteriors", said.question(state));
    if (!answer) return; // a newer question is on its way
    state.answer = { ...answer, posteriors: said.byNode(state, answer.posteriors) };
    state.impossible = false;
    complain(complaint);
    draw();
    tell(`${news} ${summary()}`);
    doubt();
    compare();
    measure();
    explain();
  } catch (error) {
    state.answer = null;
    state.explanation = null;
    state.impossible = error instanceof Problem && error.kind === "impossible-evidence";
    draw();
    complain(`${complaint} ${state.impossible ? "This evidence cannot happen under this network: its probability is 0. Retract a finding to go on." : error.message}`);
  }
  document.documentElement.dataset.settled = String(Number(document.documentElement.dataset.settled ?? 0) + 1);
}

/** Error bars follow the answer a moment later, once the user pauses. */
function measure() {
  clearTimeout(intervalTimer);
  forget("intervals");
  if (!state.release.offers.intervals || state.whiskers === "off" || !state.answer) return;
  if (state.intervals) return;
  intervalTimer = setTimeout(async () => {
    const patience = setTimeout(() => { byId("bars-coming").hidden = false; }, 400);
    try {
      const found = await ask("intervals", { ...said.question(state), level: state.level });
      if (!found) return;
      state.intervals = said.byNode(state, found.intervals);
      draw();
    } catch (error) {
      complain(`No error bars: ${error.message}`);
    } finally {
      clearTimeout(patience);
      byId("bars-coming").hidden = true;
    }
  }, 150);
}

/** The compared nodes under the evidence and under the baseline, one after the other, once the user pauses. */
function compare() {
  clearTimeout(compareTimer);
  forget("compare");
  const names = state.answer && state.baseline ? state.compared.filter((name) => !said.observedWhere(state, name)) : [];
  const differences = { found: new Map(), slow: false, trouble: "" };
  state.differences = differences;
  if (!names.length) return;
  compareTimer = setTimeout(async () => {
    const patience = setTimeout(() => { differences.slow = true; draw(); }, 400);
    const asked = { ...said.question(state), other: said.question(state.baseline), level: state.level };
    try {
      for (const name of names) {
        const found = await ask("compare", { ...asked, targets: [name] });
        if (!found) return; // something else is compared by now
        differences.found.set(name, found);
        draw();
      }
      if (said.differs(state)) tell(`${byId("live").textContent} ${largest(differences.found)}`);
    } catch (error) {
      const impossible = error instanceof Problem && error.kind === "impossible-evidence"; // the evidence now was answered
      differences.trouble = impossible
        ? "The baseline cannot happen under this network: its probability is 0. Clear it, or pin other evidence."
        : `No comparison: ${error.message}`;
    } finally {
      clearTimeout(patience);
      differences.slow = false;
      draw();
    }
  }, 150);
}

/** Marks on posteriors that lean on rows with too few records. */
async function doubt() {
  if (!state.release.nodes.some((node) => node.weak_rows)) return;
  try {
    const found = await ask("weak-rows", said.question(state));
    if (!found) return;
    state.weak = { rows: found.rows, behind: said.byNode(state, found.behind) };
    draw();
    const many = state.release.nodes.filter((node) => leaning(state, node.name)).length;
    if (many) tell(`${byId("live").textContent} ${many} of ${state.release.nodes.length} answers lean on few records.`);
  } catch (error) {
    complain(`No marks on answers that lean on few records: ${error.message}`);
  }
}

async function explain() {
  for (const kind of ["mpe", "map", "stability"]) forget(kind);
  const targets = state.targets.filter((name) => !state.evidence.has(name));
  if (state.best === "off" || !state.answer || (state.best === "map" && !targets.length)) {
    state.explanation = null;
    draw();
    return;
  }
  try {
    const found = await ask(state.best, state.best === "map" ? { ...said.question(state), targets } : said.question(state));
    if (!found) return;
    const judging = state.release.offers.intervals && Object.keys(found.assignment).length > 0;
    const explanation = { ...found, assignment: said.byNode(state, found.assignment), judging };
    state.explanation = explanation;
    draw();
    if (!judging) return;
    const judged = await ask("stability", { ...said.question(state), assignment: found.assignment }).catch((error) => {
      complain(`No stability: ${error.message}`);
      return {};
    });
    if (!judged || state.explanation !== explanation) return;
    explanation.stability = judged.stability;
    explanation.judging = false;
    draw();
  } catch (error) {
    state.explanation = null; // that of the question before
    draw();
    complain(`No most probable explanation: ${error.message}`);
  }
}

/** The largest difference between baseline and now, in words. */
function largest(found) {
  let most = null;
  for (const [name, { states, difference, intervals }] of found) {
    difference.forEach((by, i) => {
      if (!most || Math.abs(by) > Math.abs(most.by)) most = { name, value: states[0][i], by, ends: intervals?.total[i] };
    });
  }
  const interval = most.ends ? `, interval ${between(most.ends)}` : "";
  return `Against the baseline: ${label(most.name)} ${label(most.value)} ${points(most.by)} points${interval}.`;
}

function summary() {
  const { answer, release } = state;
  let most = null;
  for (const node of release.nodes) {
    if (state.evidence.has(node.name)) continue;
    node.states.forEach((name, i) => {
      const now = answer.posteriors.get(node.name)[i];
      const change = now - node.prior[i];
      if (!most || Math.abs(change) > Math.abs(most.change)) most = { node, name, change, now };
    });
  }
  const probability = `Probability of the evidence ${probabilityText(answer.probability)}.`;
  if (!most || Math.abs(most.change) < 5e-4) return probability;
  return `${probability} Largest shift: ${label(most.node.name)} ${label(most.name)} ${percent(most.now)} per cent, ${points(most.change)}.`;
}

// The page around it

function draw() {
  graph.update(state);
  panel.update(state);
}

function remember() {
  clearTimeout(hashTimer);
  hashTimer = setTimeout(() => history.replaceState(null, "", said.toHash(state) || location.pathname), 120);
}

function tell(text) {
  byId("live").textContent = text.trim();
}

function complain(text) {
  byId("trouble").textContent = text.trim();
  byId("trouble").hidden = !text.trim();
}

function buttons() {
  byId("zoom-in").addEventListener("click", () => graph.zoom(1.25));
  byId("zoom-out").addEventListener("click", () => graph.zoom(0.8));
  byId("zoom-fit").addEventListener("click", () => graph.fit());
  byId("retract-all").addEventListener("click", () => {
    state.evidence.clear();
    state.soft.clear();
    refresh("All evidence retracted.");
  });
  byId("copy-link").addEventListener("click", async (event) => {
    history.replaceState(null, "", said.toHash(state) || location.pathname);
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = "See the address bar";
    }
    tell("The link that reproduces this view was copied.");
    setTimeout(() => { button.textContent = "Copy link"; }, 1600);
  });
  byId("toggle-panel").addEventListener("click", (event) => {
    const hidden = byId("panel").toggleAttribute("hidden");
    event.currentTarget.setAttribute("aria-expanded", String(!hidden));
  });
  const search = byId("search");
  search.addEventListener("change", () => {
    const wanted = search.value.trim().toLowerCase();
    const place = (name) => name.toLowerCase().indexOf(wanted); // names that begin with it come first, the shortest before
    const near = wanted ? state.release.nodes.filter(({ name }) => place(name) >= 0) : [];
    const [node] = near.sort((one, two) => place(one.name) - place(two.name) || one.name.length - two.name.length);
    byId("no-match").textContent = node || !wanted ? "" : `No node matches “${label(search.value.trim())}”`;
    if (node && graph.go(node.name)) search.value = "";
  });
  search.addEventListener("input", () => { byId("no-match").textContent = ""; });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    search.focus();
  });
}

start().catch((error) => complain(`The explorer could not start: ${error.message}`));
