// Pan and zoom: the part of the drawing the window shows, as [centre x, centre y, scale].

const SMALLEST = 0.08;
const LARGEST = 4;
const MARGIN = 10;
const BUTTONS = 48; // pixels that the zoom buttons take at the bottom
const DRAG = 4; // pixels a press may move and still be a click

export function createCamera(svg, layer, size, changed) {
  let at = [0, 0, 1];
  let fitting = true;
  const pointers = new Map();
  let moved = 0;
  let spread = 0;

  function window_() {
    const box = svg.getBoundingClientRect();
    return { left: box.left, top: box.top, width: Math.max(box.width, 1), height: Math.max(box.height, 1) };
  }

  function apply() {
    const { width, height } = window_();
    const [x, y, scale] = at;
    layer.setAttribute("transform", `translate(${width / 2 - x * scale} ${height / 2 - y * scale}) scale(${scale})`);
    svg.classList.toggle("far", scale < 0.5);
  }

  function fit() {
    const { width, height } = window_();
    const scale = Math.min((width - 2 * MARGIN) / size[0], (height - 2 * MARGIN) / size[1], 1.35);
    at = [size[0] / 2, size[1] / 2, Math.max(scale, SMALLEST)];
    fitting = true;
    apply();
    changed(null);
  }

  function set(next) {
    const scale = Math.min(Math.max(next[2], SMALLEST), LARGEST);
    at = [Math.min(Math.max(next[0], 0), size[0]), Math.min(Math.max(next[1], 0), size[1]), scale];
    fitting = false;
    apply();
    changed(at);
  }

  function zoom(factor, clientX, clientY) {
    const { left, top, width, height } = window_();
    const dx = (clientX ?? left + width / 2) - left - width / 2;
    const dy = (clientY ?? top + height / 2) - top - height / 2;
    const scale = Math.min(Math.max(at[2] * factor, SMALLEST), LARGEST);
    set([at[0] + dx / at[2] - dx / scale, at[1] + dy / at[2] - dy / scale, scale]);
  }

  /** Pan (and come nearer, if the text would be too small to read) until this box is in the window. */
  function reveal(box, readable) {
    const { width, height } = window_();
    const scale = readable ? Math.max(at[2], 0.8) : at[2];
    const halfWidth = width / 2 / scale;
    const halfHeight = height / 2 / scale;
    const room = 20 / scale;
    const x = Math.min(Math.max(at[0], box.x + box.width + room - halfWidth), box.x - room + halfWidth);
    const y = Math.min(Math.max(at[1], box.y + box.height + BUTTONS / scale - halfHeight), box.y - room + halfHeight);
    if (x !== at[0] || y !== at[1] || scale !== at[2]) set([x, y, scale]);
  }

  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const step = event.deltaMode === 1 ? 16 : 1;
    zoom(Math.exp((-event.deltaY * step) / 500), event.clientX, event.clientY);
  }, { passive: false });

  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (pointers.size === 1) moved = 0;
    if (pointers.size === 2) spread = distance();
  });

  window.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const dx = event.clientX - before[0];
    const dy = event.clientY - before[1];
    moved += Math.abs(dx) + Math.abs(dy);
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (moved <= DRAG) return;
    svg.classList.add("dragging");
    if (pointers.size === 2) {
      const now = distance();
      const [a, b] = [...pointers.values()];
      if (spread > 0 && now > 0) zoom(now / spread, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
      spread = now;
    } else if (pointers.size === 1) {
      set([at[0] - dx / at[2], at[1] - dy / at[2], at[2]]);
    }
  });

  for (const name of ["pointerup", "pointercancel"]) {
    window.addEventListener(name, (event) => {
      pointers.delete(event.pointerId);
      if (!pointers.size) svg.classList.remove("dragging");
    });
  }

  function distance() {
    const [a, b] = [...pointers.values()];
    return Math.hypot(a[0] - b[0], a[1] - b[1]);
  }

  new ResizeObserver(() => (fitting ? fit() : apply())).observe(svg);
  return { fit, set, zoom, reveal, dragged: () => moved > DRAG };
}
