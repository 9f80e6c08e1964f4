// Numbers and elements as people read them. Text only ever enters the page through textContent.

const SVG = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") made.textContent = value;
    else if (name === "on") for (const [event, action] of Object.entries(value)) made.addEventListener(event, action);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** New items for a list. The focus stays at its place, or goes to the list's section if nothing is left. */
export function refill(list, items) {
  const focused = document.activeElement;
  const place = [...list.children].findIndex((item) => item.contains(focused));
  list.replaceChildren(...items);
  if (place < 0) return;
  const next = items[Math.min(place, items.length - 1)]?.querySelector(`.${focused.className}`);
  (next ?? list.closest("section")).focus({ preventScroll: true });
}

/** A probability in per cent, as short as it can honestly be; a dash if there is none. */
export function percent(p) {
  if (p === undefined) return "–";
  const value = 100 * p;
  if (value >= 99.995) return "100";
  if (value > 99.9) return ">99.9";
  if (value <= 0.005) return "0";
  if (value < 0.1) return "<0.1";
  return value.toFixed(1);
}

export function probabilityText(p) {
  if (p === null) return "–"; // soft evidence beyond every float
  if (p === 0) return "0";
  if (p >= 0.9995) return p > 0.99999 ? "1" : p.toFixed(5);
  if (p >= 0.001) return p.toPrecision(3);
  const [digits, power] = p.toExponential(2).split("e");
  return `${digits} × 10${superscript(Number(power))}`;
}

function superscript(power) {
  return [...String(power)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)])).join("");
}

export function points(difference) {
  const value = 100 * difference;
  if (Math.abs(value) < 0.05) return "±0";
  return `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(1)}`;
}

/** As people count: 1 node, 2 nodes. */
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Labels may hold anything: control and direction characters are made visible, never obeyed. */
export function label(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, "␣");
}

const ruler = document.createElement("canvas").getContext("2d");

export function fits(text, font, room) {
  ruler.font = font;
  return ruler.measureText(text).width <= room;
}

/** Cut in the middle where there is no room: names of one table often begin alike. */
export function fitted(text, font, room) {
  const clean = label(text);
  if (fits(clean, font, room)) return clean;
  const [first, last] = [[...clean.slice(0, 100)], [...clean.slice(100).slice(-100)]];
  if (!last.length) last.push(...first.splice(Math.ceil(first.length / 2)));
  const cut = () => `${first.join("")}…${last.join("")}`;
  while (first.length > 1 && !fits(cut(), font, room)) (last.length < first.length ? first.pop() : last.shift());
  return cut();
}
