// The side panel: evidence, the comparison, the selected node with its sliders, the most probable explanation, the promise.

import { createComparison } from "./compare.js";
import { badgeText } from "./graph.js";
import { leaning, savedSets, softened, weakRows } from "./state.js";
import { counted, element, label, percent, points, probabilityText, refill } from "./words.js";

const MOST_SLIDERS = 120;
const MOST_ROWS = 3;
const byId = (id) => document.getElementById(id);

export function createPanel(release, act) {
  describe(release);
  const comparison = createComparison(release, act);
  let sliders = null; // of the node shown, so that a slider being dragged is not replaced

  byId("save-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const input = byId("save-name");
    if (input.value.trim()) act.save(input.value.trim());
    input.value = "";
  });
  for (const input of document.querySelectorAll('input[name="best"]')) {
    input.addEventListener("change", () => act.best(input.value));
  }
  for (const input of document.querySelectorAll('input[name="whiskers"]')) {
    input.addEventListener("change", () => act.whiskers(input.value));
  }
  byId("level").addEventListener("change", (event) => act.level(Number(event.target.value)));
  byId("add-target").addEventListener("click", () => act.addTarget());

  function update(state) {
    showProbability(state);
    showEvidence(state);
    showNode(state);
    showBest(state);
    comparison.update(state);
    document.querySelector(`input[name="best"][value="${state.best}"]`).checked = true;
    document.querySelector(`input[name="whiskers"][value="${state.whiskers}"]`).checked = true;
    byId("level").value = String(state.level);
    for (const item of document.querySelectorAll(".with-best")) item.hidden = !state.explanation;
    for (const item of document.querySelectorAll(".with-intervals")) {
      item.hidden = !release.offers.intervals || state.whiskers !== "parts";
    }
  }

  function showProbability(state) {
    const some = state.evidence.size + softened(state).size > 0;
    byId("probability").textContent = state.answer ? probabilityText(state.answer.probability) : state.impossible ? "0" : "–";
    byId("readout").classList.toggle("impossible", Boolean(state.impossible));
    byId("retract-all").disabled = !some;
  }

  function showEvidence(state) {
    const chips = [];
    for (const [name, value] of state.evidence) chips.push(chip(`${label(name)} = ${label(value)}`, "hard", () => act.retract(name), () => act.select(name)));
    for (const name of softened(state).keys()) chips.push(chip(`${label(name)} ≈ soft`, "soft", () => act.retract(name), () => act.select(name)));
    refill(byId("evidence-list"), chips);
    byId("evidence-empty").hidden = chips.length > 0;
    byId("save-form").hidden = chips.length === 0;
    refill(byId("saved-list"), savedSets(state).map((set) => element("li", {},
      element("button", { type: "button", class: "link", text: label(set.name), on: { click: () => act.load(set) } }),
      element("button", { type: "button", class: "cross", "aria-label": `Delete the set ${label(set.name)}`, text: "×", on: { click: () => act.forget(set.name) } }))));
  }

  function showNode(state) {
    const node = state.nodes.get(state.selected);
    byId("node-heading").textContent = node ? label(node.name) : "Node";
    if (!node) {
      sliders = null;
      byId("node-detail").replaceChildren(element("p", { class: "quiet", text: "Click a node's title to see its numbers and to give soft evidence." }));
      return;
    }
    if (sliders?.name !== node.name) sliders = buildNode(node, act);
    sliders.update(state);
  }

  function showBest(state) {
    byId("map-choice").hidden = state.best !== "map";
    byId("add-target").disabled = !state.selected || state.targets.includes(state.selected) || state.evidence.has(state.selected);
    refill(byId("target-list"), state.targets.map((name) => chip(label(name), "target", () => act.removeTarget(name), () => act.select(name))));
    const place = byId("best-answer");
    const found = state.explanation;
    if (state.best === "off" || !found) {
      place.replaceChildren(...(state.best === "map" && !state.targets.length ? [element("p", { class: "quiet", text: "Click a node without evidence, then add it here." })] : []));
      return;
    }
    const facts = [element("p", { class: "fact" }, element("span", { text: "Probability given the evidence " }), element("b", { text: probabilityText(found.probability) }))];
    if (found.stability !== undefined) {
      const word = found.stability >= 0.9 ? "stable" : found.stability >= 0.5 ? "uncertain" : "unstable";
      facts.push(element("p", { class: `fact stability ${word}`, title: "Share of plausible networks around the release that give the same answer" }, element("span", { text: "Stability " }), element("b", { text: `${percent(found.stability)} %` }), element("span", { class: "tag", text: word })));
    }
    if (found.judging) facts.push(element("p", { class: "quiet", text: "Stability is being computed …" }));
    const rows = [...found.assignment].map(([name, value]) => element("tr", {}, element("th", { scope: "row", text: label(name) }), element("td", { text: label(value) })));
    place.replaceChildren(...facts, element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Most probable states" }, element("table", { class: "states" }, element("tbody", {}, ...rows))));
  }

  return { update };
}

function chip(text, kind, remove, open) {
  return element("li", { class: `chip ${kind}` },
    element("button", { type: "button", class: "name", text, on: { click: open } }),
    element("button", { type: "button", class: "cross", "aria-label": `Remove ${text}`, text: "×", on: { click: remove } }));
}

/** The numbers of one node, with a likelihood slider per state. */
function buildNode(node, act) {
  const parents = node.parents.length ? `Parents: ${node.parents.map(label).join(", ")}` : "No parents";
  const ranges = Object.entries(node.ranges).map(([state, range]) => `${label(state)}: ${range}`).join(", ");
  const rows = node.states.slice(0, MOST_SLIDERS).map((state) => {
    const slider = element("input", { type: "range", min: 0, max: 100, step: 1, "aria-label": `Likelihood of ${label(state)}` });
    slider.addEventListener("input", () => act.soften(node.name, node.states.map((_, i) => Number(rows[i]?.slider.value ?? 100) / 100)));
    const set = element("button", { type: "button", class: "link", text: label(state), title: label(state), on: { click: () => act.toggle(node.name, state) } });
    const value = element("td", { class: "number" });
    const shift = element("td", { class: "number shift" });
    const range = element("td", { class: "number range" });
    return { slider, set, value, shift, range, row: element("tr", {}, element("th", { scope: "row" }, set), value, range, shift, element("td", {}, slider)) };
  });
  const doubt = element("div", { class: "doubt" });
  const clear = element("button", { type: "button", text: "Retract", on: { click: () => act.retract(node.name) } });
  const head = ["State", "%", "interval", "shift", "likelihood"].map((text) => element("th", { scope: "col", text }));
  const table = element("table", { class: "states detail" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows.map((row) => row.row)));
  const more = node.states.length > MOST_SLIDERS ? [element("p", { class: "quiet", text: `The first ${MOST_SLIDERS} of ${node.states.length} states.` })] : [];
  document.getElementById("node-detail").replaceChildren(
    element("p", { class: "quiet", text: [parents, badgeText(node), ranges].filter(Boolean).join(". ") }),
    element("div", { class: "scroll" }, table), ...more, doubt, clear);
  return {
    name: node.name,
    update(state) {
      const now = state.answer?.posteriors.get(node.name);
      const observed = state.evidence.get(node.name);
      const error = state.whiskers === "off" || observed !== undefined ? null : state.intervals?.get(node.name);
      const soft = state.soft.get(node.name);
      table.classList.toggle("with-range", Boolean(error));
      clear.disabled = observed === undefined && !soft;
      doubt.replaceChildren(...doubts(state, weakRows(state, node.name)));
      doubt.classList.toggle("marked", Boolean(leaning(state, node.name)));
      rows.forEach((row, index) => {
        const change = now ? now[index] - node.prior[index] : 0;
        row.value.textContent = percent(now?.[index]);
        row.shift.textContent = now ? points(change) : "–";
        row.shift.className = `number shift ${change > 5e-4 ? "up" : change < -5e-4 ? "down" : ""}`;
        row.range.textContent = error ? `${percent(error.total[index][0])}–${percent(error.total[index][1])}` : "";
        row.set.setAttribute("aria-pressed", String(observed === node.states[index]));
        const wanted = observed !== undefined ? (observed === node.states[index] ? 100 : 0) : Math.round(100 * (soft?.[index] ?? 1));
        if (document.activeElement !== row.slider) row.slider.value = String(wanted);
        row.slider.setAttribute("aria-valuetext", `${row.slider.value} per cent`);
      });
    },
  };
}

/** Which rows with too few records an answer leans on, and how much. */
function doubts(state, weak) {
  if (!weak) return [];
  const items = weak.rows.slice(0, MOST_ROWS).map(({ node, parents, weight }) => {
    const given = state.nodes.get(node).parents.map((name) => `${label(name)} = ${label(parents[name])}`).join(", ");
    return element("li", { text: `P(${label(node)}${given ? ` | ${given}` : ""}): ${percent(weight)} %` });
  });
  const left = weak.rows.length - items.length;
  if (left > 0) items.push(element("li", { text: `and ${left} more` }));
  const text = "Behind this answer: rows with too few records, and how probable they are given the evidence.";
  return [element("p", { class: "quiet", text }), element("ul", {}, ...items)];
}

function describe(release) {
  const { epsilon, delta, unit } = release.guarantee;
  const bound = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, roundingMode: "ceil", useGrouping: false }); // what is stated must hold
  byId("release-name").textContent = label(release.name);
  document.title = `${label(release.name)} · dpbn explorer`;
  const facts = [
    release.private && epsilon !== null ? `ε = ${bound.format(epsilon)}` : "not private",
    delta > 0 ? `δ = ${delta}` : null,
    unit ? `per ${label(unit)}` : "per record",
    release.method,
    counted(release.nodes.length, "node"),
  ].filter(Boolean);
  byId("release-badges").replaceChildren(...facts.map((text, i) => element("li", { class: i === 0 ? (release.private ? "good" : "bad") : null, text })));
  byId("banner").hidden = release.private;
  byId("banner").textContent = "NOT PRIVATE. This release was made without noise or with repeatable noise, for experiments only. Do not publish it.";
  byId("node-names").replaceChildren(...release.nodes.map((node) => element("option", { value: node.name })));
  for (const item of document.querySelectorAll(".with-weak")) item.hidden = !release.nodes.some((node) => node.weak_rows);
  byId("whisker-choice").hidden = !release.offers.intervals;
  byId("level-choice").hidden = !release.offers.intervals;
  byId("no-intervals").hidden = release.offers.intervals;
  byId("statement").replaceChildren(...release.points.map(({ question, answer }) => element("p", {}, element("b", { text: question }), ` ${label(answer)}`)));
}
