// A dial for a circular index: it wraps at the seam.

const NAMESPACE = "http://www.w3.org/2000/svg";
const RADIUS = 44;

function svg(tag, attributes, parent) {
  const found = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  if (parent) parent.append(found);
  return found;
}

/** A place on the rim: 0 is at the top; way is 1 clockwise, -1 anticlockwise. */
function onRim(share, way, radius) {
  const angle = way * 2 * Math.PI * share;
  return [radius * Math.sin(angle), -radius * Math.cos(angle)];
}

/** The path of an arc from one share of the turn to another, the long way round if need be. */
function arc(from, to, way) {
  const length = Math.min(to - from, 0.9999);
  const [x0, y0] = onRim(from, way, RADIUS);
  const [x1, y1] = onRim(from + length, way, RADIUS);
  const long = length > 0.5 ? 1 : 0;
  return `M${x0} ${y0}A${RADIUS} ${RADIUS} 0 ${long} ${way > 0 ? 1 : 0} ${x1} ${y1}`;
}

function face(column, way) {
  const root = svg("svg", { viewBox: "-68 -60 136 120", class: "ex-dial-face" });
  svg("circle", { r: RADIUS, class: "ex-rim" }, root);
  for (const [low, high] of column.source) {
    svg("path", { d: arc(low / column.period, high / column.period, way), class: "ex-arc" }, root);
  }
  for (let quarter = 0; quarter < 4; quarter += 1) {
    const [x, y] = onRim(quarter / 4, way, RADIUS + (quarter % 2 ? 14 : 10.5)); // words are wide
    const text = svg("text", { x, y, class: "ex-tick" }, root);
    text.textContent = String(Number(((column.period * quarter) / 4).toPrecision(4)));
  }
  const hand = svg("line", { x1: 0, y1: 0, class: "ex-hand" }, root);
  const knob = svg("circle", { r: 7, class: "ex-knob" }, root);
  return { root, hand, knob };
}

/** The same contract as a slider. Images turn anticlockwise with u, so their dial does too. */
function makeDial(column, moved, toggle, way) {
  const root = element("div", "ex-control ex-control-dial");
  const dial = element("div", "ex-dial");
  const { root: picture, hand, knob } = face(column, way);
  dial.append(picture);
  dial.tabIndex = 0;
  dial.setAttribute("role", "slider");
  dial.setAttribute("aria-label", column.name);
  dial.setAttribute("aria-valuemin", 0);
  dial.setAttribute("aria-valuemax", column.period);
  const value = element("output", "ex-value");
  const play = playButton(`round ${column.name}`, toggle);
  const head = element("div", "ex-head");
  head.append(element("span", "ex-name", column.name), value);
  if (column.source.length) head.append(element("span", "ex-key", "source"));
  root.append(play.button, dial, head);
  let shown = 0;

  const turn = (by) => moved(wrap(shown + by, column.period));
  dial.addEventListener("keydown", (event) => {
    const step = column.period / 100;
    const ways = {
      ArrowRight: step, ArrowUp: step, ArrowLeft: -step, ArrowDown: -step,
      PageUp: 10 * step, PageDown: -10 * step,
    };
    if (event.key in ways) turn(ways[event.key]);
    else if (event.key === "Home") moved(0);
    else if (event.key === "End") moved(column.period - step);
    else return;
    event.preventDefault();
  });
  followPointer(dial, (left, top, box) => {
    const turned = Math.atan2(left - box.width / 2, box.height / 2 - top) / (2 * Math.PI);
    moved(wrap(way * turned, 1) * column.period);
  });

  function show(u) {
    shown = u;
    const [x, y] = onRim(u / column.period, way, RADIUS);
    hand.setAttribute("x2", 0.8 * x);
    hand.setAttribute("y2", 0.8 * y);
    knob.setAttribute("cx", x);
    knob.setAttribute("cy", y);
    const text = place(column, u);
    if (value.textContent === text) return;
    value.textContent = text;
    dial.setAttribute("aria-valuenow", text);
    dial.setAttribute("aria-valuetext", `${column.name} ${text}`);
  }
  return { root, show, play: play.show };
}

/** Tells, while the pointer is down, where it is in the element's box. */
function followPointer(target, told) {
  const tell = (event) => {
    const box = target.getBoundingClientRect();
    told(event.clientX - box.left, event.clientY - box.top, box);
  };
  target.addEventListener("pointerdown", (event) => {
    target.setPointerCapture(event.pointerId);
    target.focus({ preventScroll: true });
    event.preventDefault();
    tell(event);
  });
  target.addEventListener("pointermove", (event) => {
    if (target.hasPointerCapture(event.pointerId)) tell(event);
  });
}
