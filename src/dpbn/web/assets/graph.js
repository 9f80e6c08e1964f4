// The network as SVG: a card per node with a bar per state, updated in place.

import { createCamera } from "./camera.js";
import { leaning, softened } from "./state.js";
import { counted, fits, fitted, label, percent, points, shape } from "./words.js";

const HEADER = 18;
const ROW = 14;
const NARROW = 160; // of a card; bars of a wider one lie farther to the right
const TRACK = { x: 67, width: 56, y: 2.5, height: 9 };
const THIN = 5;
const FAMILY = '-apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", "Liberation Sans", Arial, sans-serif';
const TITLE_FONT = `600 12.5px ${FAMILY}`;
const LABEL_FONT = `12px ${FAMILY}`;
const BOLD_FONT = `700 ${LABEL_FONT}`;
const BARS = ["track", "bar", "gain", "loss", "prior", "total", "privacy", "sampling"];

export function createGraph(svg, release, act) {
  const arcs = shape("g", { class: "arcs", "aria-hidden": "true" });
  const cards = shape("g", { class: "cards" });
  const layer = shape("g", {}, arcs, cards);
  svg.replaceChildren(arrowHead(), layer);
  const count = release.nodes.length;
  svg.setAttribute("aria-label", `Network of ${counted(count, "node")}. Arrow keys move between states and nodes, Enter sets or retracts evidence, Delete retracts the node's evidence.`);
  const camera = createCamera(svg, layer, [Math.max(release.size[0], 1), Math.max(release.size[1], 1)], act.camera);

  const lines = release.arcs.map((arc) => {
    const path = shape("path", { d: curve(arc.points), class: "arc", "marker-end": "url(#arrow)" });
    arcs.append(path);
    return { ...arc, path };
  });
  const biggest = Math.max(...release.nodes.map((node) => node.epsilon ?? 0), 1e-12);
  const nodes = new Map();
  for (const node of release.nodes) {
    const card = createCard(node, biggest);
    cards.append(card.group);
    nodes.set(node.name, card);
  }
  let focused = null;
  const first = release.nodes[0] && nodes.get(release.nodes[0].name).rows[0];
  if (first) moveFocus(first, false);

  function moveFocus(row, really = true) {
    focused?.group.setAttribute("tabindex", "-1");
    focused = row;
    row.group.setAttribute("tabindex", "0");
    if (really) row.group.focus({ preventScroll: true });
  }

  function createCard(node, most) {
    const { x, y, width, height } = node.box;
    const group = shape("g", { class: "node", transform: `translate(${x} ${y})`, role: "group", "aria-label": description(node) });
    const title = shape("text", { x: 7, y: 13, class: "title", text: fitted(node.name, TITLE_FONT, width - 14 - badgeRoom(node)) });
    const header = shape("g", { class: "header", on: { click: () => camera.dragged() || act.select(node.name) } },
      shape("title", { text: `${label(node.name)}\n${badgeText(node)}` }),
      shape("path", { class: "header-back", d: `M0 4a4 4 0 0 1 4-4h${width - 8}a4 4 0 0 1 4 4v${HEADER - 4}h${-width}z` }),
      title, ...badges(node, width, most));
    group.append(shape("rect", { class: "card", width, height, rx: 4 }), header);
    const rows = [];
    node.states.slice(0, node.shown).forEach((state, index) => rows.push(createRow(node, state, index, width)));
    group.append(...rows.map((row) => row.group));
    if (node.shown < node.states.length) {
      const more = shape("text", { x: 7, y: HEADER + ROW * node.shown + 10.5, class: "more", text: `and ${node.states.length - node.shown} more: select the node` });
      more.addEventListener("click", () => camera.dragged() || act.select(node.name));
      group.append(more);
    }
    const edge = `M${width - 1.7} ${HEADER + 2}v${height - HEADER - 5}`;
    group.append(shape("path", { class: "leaning", d: edge }), shape("rect", { class: "frame", width, height, rx: 4 }));
    return { node, group, rows };
  }

  function createRow(node, state, index, width) {
    const aside = width - NARROW;
    const room = TRACK.x + aside - 13;
    const short = fitted(state, LABEL_FONT, room);
    const parts = {
      back: shape("rect", { class: "row-back", x: 1, y: 0, width: width - 2, height: ROW }),
      best: shape("path", { class: "best", d: "M3.2 7l2.4-3.2 2.4 3.2-2.4 3.2z" }),
      label: shape("text", { class: "label", x: 10, y: 11.1, lengthAdjust: "spacingAndGlyphs", text: short }),
      track: shape("rect", { class: "track", ...TRACK, rx: 1 }),
      bar: shape("rect", { class: "bar", ...TRACK, width: 0, rx: 1 }),
      gain: shape("rect", { class: "gain", ...TRACK, width: 0 }),
      loss: shape("rect", { class: "loss", ...TRACK, width: 0 }),
      prior: shape("path", { class: "prior" }),
      total: shape("path", { class: "whisker total" }),
      privacy: shape("path", { class: "whisker privacy" }),
      sampling: shape("path", { class: "whisker sampling" }),
      value: shape("text", { class: "value", x: width - 5, y: 11.1 }),
      title: shape("title", {}),
    };
    const group = shape("g", {
      class: "state", role: "button", tabindex: "-1", "aria-pressed": "false",
      transform: `translate(0 ${HEADER + 1 + index * ROW})`,
    }, ...Object.values(parts));
    for (const name of BARS) parts[name].setAttribute("transform", `translate(${aside} 0)`);
    const row = { node, state, index, group, parts, room: fits(short, BOLD_FONT, room) ? null : room };
    group.addEventListener("click", () => {
      if (camera.dragged()) return;
      moveFocus(row);
      act.toggle(node.name, state);
    });
    group.addEventListener("focus", () => {
      moveFocus(row, false);
      act.focus(node.name);
      if (group.matches(":focus-visible")) camera.reveal(node.box, false); // never while the mouse is pressed on it
    });
    group.addEventListener("keydown", (event) => press(event, row));
    return row;
  }

  function press(event, row) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { rows } = nodes.get(row.node.name);
    const action = {
      Enter: () => act.toggle(row.node.name, row.state),
      " ": () => act.toggle(row.node.name, row.state),
      Delete: () => act.retract(row.node.name),
      Backspace: () => act.retract(row.node.name),
      ArrowDown: () => moveFocus(rows[row.index + 1] ?? nearest(row, 0, 1) ?? row),
      ArrowUp: () => moveFocus(rows[row.index - 1] ?? nearest(row, 0, -1) ?? row),
      ArrowRight: () => moveFocus(nearest(row, 1, 0) ?? row),
      ArrowLeft: () => moveFocus(nearest(row, -1, 0) ?? row),
      Home: () => moveFocus(nodes.get(release.nodes[0].name).rows[0]),
      End: () => moveFocus(nodes.get(release.nodes[count - 1].name).rows[0]),
      "+": () => camera.zoom(1.25),
      "-": () => camera.zoom(0.8),
      0: () => camera.fit(),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** The nearest node in a direction; sideways and lengthways distance count differently. */
  function nearest(row, dx, dy) {
    const here = row.node.box;
    let best = null;
    for (const { node, rows } of nodes.values()) {
      const ahead = dx ? dx * (node.box.x - here.x) : dy * (node.box.y - here.y);
      if (node === row.node || ahead <= 1) continue;
      const aside = dx ? Math.abs(node.box.y - here.y) : Math.abs(node.box.x - here.x);
      const cost = ahead + 3 * aside;
      if (!best || cost < best.cost) best = { cost, row: dy < 0 ? rows[rows.length - 1] : rows[0] };
    }
    return best?.row;
  }

  function update(state) {
    const { answer, intervals, explanation } = state;
    const soft = softened(state);
    for (const { node, group, rows } of nodes.values()) {
      group.classList.toggle("observed", state.evidence.has(node.name));
      group.classList.toggle("softened", soft.has(node.name));
      group.classList.toggle("selected", state.selected === node.name);
      const now = answer?.posteriors.get(node.name);
      const known = state.whiskers === "off" || !answer || state.evidence.has(node.name);
      const error = known ? null : intervals?.get(node.name);
      const weak = leaning(state, node.name);
      group.classList.toggle("leans", Boolean(weak));
      for (const row of rows) updateRow(state, row, now?.[row.index], error, explanation?.assignment.get(node.name), weak);
    }
    for (const { parent, child, path } of lines) {
      path.classList.toggle("near", state.selected === parent || state.selected === child);
    }
  }

  /** One state; without an answer (`p` undefined) only its prior is known. */
  function updateRow(state, { node, state: name, index, group, parts, room }, p, error, best, weak) {
    const prior = node.prior[index];
    const observed = state.evidence.get(node.name);
    const still = observed !== undefined || p === undefined;
    group.setAttribute("aria-pressed", String(observed === name));
    group.classList.toggle("set", observed === name);
    group.classList.toggle("in-best", best === name);
    if (room && (observed === name || best === name)) parts.label.setAttribute("textLength", room); // bold is wider
    else parts.label.removeAttribute("textLength");
    parts.bar.setAttribute("width", TRACK.width * (p ?? 0));
    span(parts.gain, prior, still ? prior : Math.max(p, prior));
    span(parts.loss, still ? prior : p, still ? prior : Math.max(p, prior));
    parts.value.textContent = percent(p);
    const whole = state.whiskers === "total";
    const thin = release.offers.intervals && state.whiskers !== "off"; // error bars lie below the bar, not on it
    for (const part of [parts.track, parts.bar, parts.gain, parts.loss]) part.setAttribute("height", thin ? THIN : TRACK.height);
    parts.prior.setAttribute("d", `M${TRACK.x + TRACK.width * prior} ${TRACK.y - 1.5}v${(thin ? THIN : TRACK.height) + 2.5}`);
    whisker(parts.total, whole ? error?.total[index] : null, 10.4);
    whisker(parts.privacy, whole ? null : error?.privacy[index], 9.4);
    whisker(parts.sampling, whole ? null : error?.sampling[index], 12.2);
    const range = error ? `, interval ${percent(error.total[index][0])} to ${percent(error.total[index][1])}` : "";
    const doubt = weak ? `, leans on few records (${percent(weak.share)} %)` : "";
    const answer = p === undefined ? "no answer" : `${percent(p)} %${range}`;
    const shift = p === undefined ? "" : ` (${points(p - prior)})`;
    const text = `${label(name)}: ${answer}, prior ${percent(prior)} %${shift}${doubt}`;
    const meaning = Object.hasOwn(node.ranges, name) ? `\n${label(name)}: ${node.ranges[name]}` : "";
    parts.title.textContent = `${text}${best === name ? ", most probable" : ""}${meaning}`;
    group.setAttribute("aria-label", `${label(node.name)} ${text}`);
  }

  return {
    update,
    fit: camera.fit,
    zoom: camera.zoom,
    look: (at) => (at ? camera.set(at) : camera.fit()),
    go(name) {
      const card = nodes.get(name);
      if (!card) return false;
      camera.reveal(card.node.box, true);
      moveFocus(card.rows[0]);
      return true;
    },
  };
}

function span(bar, from, to) {
  bar.setAttribute("x", TRACK.x + TRACK.width * from);
  bar.setAttribute("width", Math.max(0, TRACK.width * (to - from)));
}

function whisker(path, pair, y) {
  if (!pair) {
    path.removeAttribute("d");
    return;
  }
  const [low, high] = pair.map((p) => TRACK.x + TRACK.width * p);
  const ends = high - low > 3 ? `M${low} ${y - 1.2}v2.4M${high} ${y - 1.2}v2.4` : ""; // too short to have ends
  path.setAttribute("d", `M${Math.min(low, high - 0.8)} ${y}H${high}${ends}`);
}

function curve(through) {
  let path = `M${through[0][0]} ${through[0][1]}`;
  for (let i = 1; i < through.length; i += 1) {
    const [[x0, y0], [x1, y1]] = [through[i - 1], through[i]];
    const middle = (y0 + y1) / 2;
    path += x0 === x1 ? `V${y1}` : `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
  }
  return path;
}

function arrowHead() {
  return shape("defs", {}, shape("marker", {
    id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto",
    markerUnits: "userSpaceOnUse",
  }, shape("path", { d: "M0 .8L7.5 4 0 7.2z", class: "arrow" })));
}

function badgeRoom(node) {
  return (node.weak_rows ? 14 : 0) + (node.public ? 34 : 20);
}

/** A small meter of the budget's share, and a mark if rows rest on too few records. */
function badges(node, width, most) {
  const made = [];
  const x = width - 23;
  if (node.public) made.push(shape("text", { class: "badge-text", x: width - 6, y: 12.5, text: "public" }));
  else if (node.epsilon !== null) {
    made.push(shape("rect", { class: "budget-back", x, y: 7, width: 17, height: 4, rx: 2 }));
    made.push(shape("rect", { class: "budget", x, y: 7, width: Math.max(1.5, (17 * node.epsilon) / most), height: 4, rx: 2 }));
  }
  if (node.weak_rows) made.push(shape("path", { class: "weak", d: `M${x - 9} 4l5.2 9.4h-10.4z` }),
    shape("path", { class: "weak-mark", d: `M${x - 9} 7.4v2.8m0 1.2v.9` }));
  return made;
}

export function badgeText(node) {
  const parts = [];
  if (node.public) parts.push("Public table, no budget spent");
  else if (node.epsilon !== null) parts.push(`Budget ε = ${node.epsilon.toPrecision(3)}`);
  if (node.weak_rows) parts.push(`${node.weak_rows} of ${node.rows} rows rest on too few records`);
  return parts.join("; ");
}

function description(node) {
  const parents = node.parents.length ? `parents ${node.parents.map(label).join(", ")}` : "no parents";
  return [label(node.name), counted(node.states.length, "state"), parents, badgeText(node)].filter(Boolean).join(", ");
}
