// The comparison in the panel: what is pinned, and the chosen nodes under the baseline and now.

import { MARKED, differs, observedWhere, softened } from "./state.js";
import { element, label, percent, points, refill } from "./words.js";

const MOST_ROWS = 120;
const MOST_RATIOS = 6;
const SHOWN = 5e-4; // a smaller difference is shown as none
const byId = (id) => document.getElementById(id);

export function createComparison(release, act) {
  const blocks = new Map(); // node -> its table, built once so that focus and scrolling stay
  byId("pin").addEventListener("click", () => act.pin());
  byId("unpin").addEventListener("click", () => act.unpin());
  byId("add-compared").addEventListener("click", () => act.addCompared());

  function update(state) {
    const { baseline, compared, selected } = state;
    byId("pin").disabled = !state.answer;
    byId("comparison").hidden = !baseline;
    if (!baseline) return;
    refill(byId("baseline-list"), findings(baseline, act));
    byId("add-compared").disabled = !selected || compared.includes(selected) || observedWhere(state, selected) !== "";
    say("comparison-state", progress(state));
    say("comparison-trouble", state.differences?.trouble ?? "");
    for (const name of [...blocks.keys()].filter((name) => !compared.includes(name))) blocks.delete(name);
    for (const name of compared) {
      if (!blocks.has(name)) blocks.set(name, buildBlock(state.nodes.get(name), act));
      blocks.get(name).update(state);
    }
    const made = [...blocks.values()].map((block) => block.place);
    const place = byId("compared-list");
    if (made.length !== place.children.length || made.some((block, i) => block !== place.children[i])) refill(place, made);
    byId("comparison-key").textContent = release.offers.intervals
      ? `Difference: now minus baseline, in percentage points, with its own ${100 * state.level} % interval. Errors that both answers share cancel in it. Bold: zero lies outside.`
      : "Difference: now minus baseline, in percentage points. This release carries nothing to compute intervals from.";
    byId("comparison-key").hidden = !compared.length;
  }

  return { update };
}

/** Screen readers read what is said anew; the same is not said again. */
function say(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

/** What to do next, or why there is nothing to see; empty when the tables say it all. */
function progress(state) {
  if (!state.compared.length) return "Click the title of a node without evidence, then compare it here.";
  if (state.impossible) return "The evidence now cannot happen, so there is nothing to compare.";
  if (!differs(state)) return "The evidence is that of the baseline. Change it to see what differs.";
  return state.differences?.slow ? "Being compared …" : "";
}

/** The findings of the baseline as chips that lead to their nodes. */
function findings({ evidence, soft }, act) {
  const chip = (name, text, kind) => element("li", { class: `chip ${kind}` }, element("button", { type: "button", class: "name", text: `${label(name)} ${text}`, on: { click: () => act.select(name) } }));
  const chips = [
    ...[...evidence].map(([name, value]) => chip(name, `= ${label(value)}`, "hard")),
    ...[...softened({ soft })].map(([name, likelihood]) => chip(name, `≈ ${ratios(likelihood)}`, "soft")),
  ];
  return chips.length ? chips : [element("li", { class: "quiet", text: "no evidence (the prior)" })];
}

/** Likelihoods as shares of the largest, in per cent. */
function ratios(likelihood) {
  const largest = Math.max(...likelihood);
  const shares = likelihood.slice(0, MOST_RATIOS).map((value) => Number(((100 * value) / largest).toPrecision(2)));
  return `${shares.join(" : ")}${likelihood.length > MOST_RATIOS ? " : …" : ""}`;
}

/** One node: its states under the baseline, now, and the difference. */
function buildBlock(node, act) {
  const name = label(node.name);
  const open = element("button", { type: "button", class: "link", text: name, on: { click: () => act.select(node.name) } });
  const cross = element("button", { type: "button", class: "cross", "aria-label": `Stop comparing ${name}`, text: "×", on: { click: () => act.removeCompared(node.name) } });
  const rows = node.states.slice(0, MOST_ROWS).map((state) => {
    const cells = ["", "", "shift", "range"].map((kind) => element("td", { class: `number ${kind}` }));
    return { cells, row: element("tr", {}, element("th", { scope: "row", title: label(state), text: label(state) }), ...cells) };
  });
  const heads = ["State", "baseline", "now", "difference", "interval"].map((text) => element("th", { scope: "col", text }));
  const table = element("table", { class: "states contrast", "aria-label": `${name}: baseline, now and difference` },
    element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows.map(({ row }) => row)));
  const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${name} compared` }, table);
  const left = node.states.length - rows.length;
  const note = element("p", { class: "quiet" });
  const more = left > 0 ? [element("p", { class: "quiet", text: `The first ${MOST_ROWS} of ${node.states.length} states.` })] : [];
  const place = element("li", {}, element("div", { class: "compared" }, open, cross), scroll, ...more, note);
  return {
    place,
    update(state) {
      const where = observedWhere(state, node.name);
      const found = state.differences?.found.get(node.name);
      const ends = found?.intervals?.total;
      scroll.hidden = where !== "";
      note.textContent = where ? `Observed ${where}: there is nothing to compare.` : doubt(found);
      note.hidden = !note.textContent;
      table.classList.toggle("with-range", state.release.offers.intervals);
      rows.forEach(({ cells: [before, now, shift, range] }, i) => {
        before.textContent = percent(found?.second.values[i]);
        now.textContent = percent(found?.first.values[i]);
        shift.textContent = found ? points(found.difference[i]) : "–";
        const clear = ends && (ends[i][0] > SHOWN || ends[i][1] < -SHOWN); // zero is outside of what is shown
        shift.className = `number shift ${clear ? (found.difference[i] > 0 ? "up" : "down") : ""}`;
        range.textContent = ends ? between(ends[i]) : "";
      });
    },
  };
}

/** Both ends of the interval of a difference; one of them if nothing is uncertain. */
export function between([low, high]) {
  const [from, to] = [points(low), points(high)];
  return from === to ? from : `${from} to ${to}`;
}

function doubt(found) {
  const shares = new Map();
  for (const { node, weight } of found?.weak_rows ?? []) shares.set(node, (shares.get(node) ?? 0) + weight);
  if (Math.max(0, ...shares.values()) < MARKED) return "";
  return "This leans on rows with too few records: a small difference is not shown to be small.";
}
