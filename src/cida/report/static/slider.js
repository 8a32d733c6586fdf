// A slider for a column of the index, its source ranges marked on the track, and a play button.

const FINE = 1000; // steps of the mouse along a slider
const KEY = 10; // of them for an arrow key
let made = 0; // sliders so far, for ids

function element(tag, className, text) {
  const found = document.createElement(tag);
  if (className) found.className = className;
  if (text !== undefined) found.textContent = text;
  return found;
}

function playButton(name, toggle) {
  const button = element("button", "ex-play");
  button.type = "button";
  button.addEventListener("click", toggle);
  const show = (playing) => {
    button.classList.toggle("playing", playing);
    button.setAttribute("aria-label", `${playing ? "Stop" : "Play"} ${name}`);
    button.title = playing ? "Stop" : "Play";
  };
  show(false);
  return { button, show };
}

/** Bands of the track where the source is; the thumb's middle never reaches the track's ends. */
function sourceBands(column) {
  const rail = element("span", "ex-rail");
  for (const [low, high] of column.source) {
    const band = element("span", "ex-source");
    const start = (low - column.low) / spanOf(column);
    band.style.left = `${100 * start}%`;
    band.style.width = `${Math.max(0.6, (100 * (high - low)) / spanOf(column))}%`;
    rail.append(band);
  }
  return rail;
}

function makeSlider(column, moved, toggle) {
  const root = element("div", "ex-control");
  const input = element("input");
  made += 1;
  input.id = `ex-slider-${made}`;
  input.type = "range";
  input.min = column.low;
  input.max = column.high;
  const step = sliderStep(column);
  input.step = step;
  input.disabled = !(column.high > column.low);
  const label = element("label", "ex-name", column.name);
  label.htmlFor = input.id;
  const value = element("output", "ex-value");
  value.htmlFor = input.id;
  const play = playButton(`along ${column.name}`, toggle);
  const track = element("div", "ex-track");
  track.append(sourceBands(column), input);
  const head = element("div", "ex-head");
  head.append(label, value);
  if (column.source.length) head.append(element("span", "ex-key", "source"));
  const ends = element("div", "ex-ends");
  ends.append(...[column.low, column.high].map((end) => element("span", "", place(column, end))));
  ends.setAttribute("aria-hidden", "true");
  root.append(play.button, head, track, ends);
  input.addEventListener("input", () => moved(Number(input.value)));
  input.addEventListener("keydown", (event) => {
    const ways = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
    const far = { PageUp: 10, PageDown: -10 };
    const way = ways[event.key] || far[event.key];
    if (!way) return;
    event.preventDefault();
    const by = way * Math.max(1, Math.round(keyStep(column) / step)) * step;
    moved(clamp(shown + by, column.low, column.high));
  });
  let shown = column.low;

  function show(u) {
    shown = u;
    const words = place(column, u);
    input.value = u;
    if (value.textContent === words) return;
    value.textContent = words;
    input.setAttribute("aria-valuetext", `${column.name} ${words}`);
  }
  return { root, show, play: play.show };
}

/** Days are whole; else a thousandth of the range. */
function sliderStep(column) {
  const step = spanOf(column) / FINE;
  return column.date ? Math.max(1, Math.round(step)) : step;
}

function keyStep(column) {
  return (KEY * spanOf(column)) / FINE;
}
