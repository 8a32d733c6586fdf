// The explorer: one u for all panels, moved by hand or by itself.

const SWEEP = 10000; // milliseconds along the whole range
const STEPS = 24; // of a sweep without animation
const PAUSE = 900; // milliseconds between them
const QUIET = 600; // milliseconds after the last move, before it is told

function start(section) {
  const data = JSON.parse(section.querySelector(".explorer-data").textContent);
  const get = library(data.arrays);
  const world = { columns: data.columns, classes: data.classes };
  const state = {
    u: data.columns.map((column) => column.start),
    by: "predicted",
    playing: null,
  };
  let theme = readTheme(section, (data.classes || []).length);
  const panels = new Map();
  const visible = new Set();
  let asked = 0;

  // --- drawing: at most once a frame, and only what is on the screen

  function draw(all) {
    asked = 0;
    const weights = new Map();
    for (const panel of panels.values()) {
      if (!all && !visible.has(panel.root)) continue;
      if (!weights.has(panel.key)) {
        weights.set(panel.key, nearness(panel.index, world.columns, state.u));
      }
      panel.draw(state, weights.get(panel.key), theme);
    }
  }

  function redraw() {
    if (!asked) asked = requestAnimationFrame(() => draw(false));
  }

  /** For a canvas of a new size: it is empty, on the screen or not. */
  function redrawAll() {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(() => draw(true));
  }

  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) visible.add(target);
      else visible.delete(target);
    }
    redraw();
  }, { rootMargin: "200px" });

  // --- moving u

  function move(column, value) {
    state.u[column] = value;
    controls[column].show(value);
    if (pad) pad.show(state.u);
    redraw();
    if (!state.playing) tellSoon();
  }

  const controls = world.columns.map((column, k) => {
    const byHand = (value) => {
      stop();
      move(k, value);
    };
    const toggle = () => (state.playing && state.playing.column === k ? stop() : play(k));
    const turned = data.runs.some((run) => run.turned);
    return column.period
      ? makeDial(column, byHand, toggle, turned ? -1 : 1)
      : makeSlider(column, byHand, toggle);
  });

  const pad = world.columns.length !== 2 ? null
    : makePad(world, { index: data.runs[0].u.map(get), source: get(data.runs[0].source).values },
      (places) => {
        stop();
        places.forEach((value, k) => move(k, value));
      });

  function stop() {
    if (!state.playing) return;
    controls[state.playing.column].play(false);
    clearTimeout(state.playing.timer);
    cancelAnimationFrame(state.playing.frame);
    state.playing = null;
    tellSoon();
  }

  function play(k) {
    stop();
    state.playing = { column: k, way: 1, last: 0 };
    controls[k].play(true);
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) stepOn();
    else state.playing.frame = requestAnimationFrame(glide);
  }

  function glide(now) {
    const { playing } = state;
    if (!playing) return;
    const passed = playing.last ? Math.min(now - playing.last, 100) : 0;
    playing.last = now;
    advance(passed / SWEEP);
    playing.frame = requestAnimationFrame(glide);
  }

  function stepOn() {
    advance(1 / STEPS);
    state.playing.timer = setTimeout(stepOn, PAUSE);
  }

  /** By a share of the range: round a circle, there and back on a line. */
  function advance(share) {
    const { playing } = state;
    const column = world.columns[playing.column];
    let value = state.u[playing.column] + playing.way * share * spanOf(column);
    if (column.period) value = wrap(value, column.period);
    else if (value > column.high || value < column.low) {
      playing.way = value > column.high ? -1 : 1;
      value = clamp(value, column.low, column.high);
    }
    move(playing.column, value);
  }

  // --- telling: for who listens, and not while things move

  const told = element("p", "ex-told");
  told.setAttribute("aria-live", "polite");
  let telling = 0;

  function tellSoon() {
    if (!section.dataset.ready) return; // nobody moved anything yet
    clearTimeout(telling);
    telling = setTimeout(() => {
      told.textContent = `${where()}. ${describe().join(". ")}.`;
    }, QUIET);
  }

  function where() {
    return world.columns.map((c, k) => `${c.name} ${place(c, state.u[k])}`).join(", ");
  }

  function describe() {
    return [...panels.values()].map((panel) => panel.describe(where()));
  }

  // --- which runs, and which colours

  const stage = element("div", "ex-panels");

  function choose(number, wanted) {
    const panel = panels.get(number);
    if (!wanted) {
      watcher.unobserve(panel.root);
      visible.delete(panel.root);
      panel.root.remove();
      panels.delete(number);
    } else if (!panel) {
      const added = makePanel(readRun(data.runs[number], get, world), world, redrawAll);
      panels.set(number, added);
      const after = [...panels.keys()].filter((other) => other > number).sort((a, b) => a - b)[0];
      stage.insertBefore(added.root, after === undefined ? null : panels.get(after).root);
      watcher.observe(added.root);
    }
    redraw();
    tellSoon();
  }

  function repaint() {
    theme = readTheme(section, (data.classes || []).length);
    legend.show(theme, state.by);
    if (pad) pad.paint(theme);
    draw(true);
  }

  const legend = makeLegend(world, (by) => {
    state.by = by;
    legend.show(theme, by);
    redraw();
  });
  const bar = element("div", "ex-controls");
  bar.append(...controls.map((control) => control.root));
  if (pad) bar.append(pad.root);
  bar.classList.toggle("ex-with-pad", pad !== null);
  section.append(bar, legend.root);
  if (data.runs.length > 1) section.append(makeChoice(data.runs, choose));
  section.append(stage, told);
  data.runs.forEach((run, number) => run.shown && choose(number, true));
  controls.forEach((control, k) => control.show(state.u[k]));
  repaint();
  setTimeout(describe, QUIET); // when the canvases have their size
  onThemeChange(repaint);
  window.addEventListener("beforeprint", () => draw(true));
  section.dataset.ready = "true";
}

// The first at once, others when they are about to be seen: a long page opens as quickly as a short one.
const [first, ...others] = document.querySelectorAll("section.explorer");
const soon = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    soon.unobserve(target);
    start(target);
  }
}, { rootMargin: "800px" });
if (first) start(first);
others.forEach((section) => soon.observe(section));
window.addEventListener("beforeprint", () => {
  for (const section of others) {
    if (section.dataset.ready) continue;
    soon.unobserve(section);
    start(section);
  }
});
