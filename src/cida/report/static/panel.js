// A panel: all that is shown of one run.

const TURNED = "as it comes, as the encoder sees it, what it is taken for";
const FEWEST = 3; // rows near u, below which nothing is said of them

/** A run with its arrays, and what follows from them. */
function readRun(run, get, world) {
  const predicted = get(run.predicted).values;
  const truth = get(run.truth).values;
  const regression = world.classes === null;
  const away = (value, row) => (regression ? Math.abs(value - truth[row]) : value !== truth[row]);
  const right = Float32Array.from(predicted, (value, row) => {
    if (Number.isNaN(truth[row])) return NaN;
    return regression ? away(value, row) : Number(!away(value, row));
  });
  const numbers = [...predicted, ...truth].filter((value) => !Number.isNaN(value));
  return {
    title: run.title,
    regression,
    predicted,
    truth,
    right, // for regression: how far off
    wrong: regression ? null : right.map((value) => Number(value === 0)),
    range: numbers.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)],
      [Infinity, -Infinity]),
    index: run.u.map(get),
    key: run.u.join(), // equal for runs of the same rows: weights are found once for all
    source: get(run.source).values,
    cloud: get(run.cloud),
    plane: run.plane && {
      ...run.plane, across: get(run.plane.across), up: get(run.plane.up), grid: get(run.plane.grid),
    },
    turned: run.turned && {
      ...run.turned,
      images: get(run.turned.images),
      labels: get(run.turned.labels),
      angle: get(run.turned.angle),
      predicted: get(run.turned.predicted),
    },
    bars: run.bars || [],
    probabilities: get(run.probabilities),
    expected: run.expected,
  };
}

/** The colour of every row: by what is predicted (or, if asked for, true), or by an index column. */
function rowColours(run, world, theme, by, truly) {
  if (by !== "predicted") {
    const column = world.columns[by];
    const shades = column.period ? theme.circle : theme.line;
    return shaded(run.index[by].values, column.low, column.high, shades);
  }
  const values = truly
    ? run.predicted.map((value, row) => (Number.isNaN(run.truth[row]) ? value : run.truth[row]))
    : run.predicted;
  if (run.regression) return shaded(values, ...run.range, theme.values);
  return Array.from(values, (code) => theme.classes[code]);
}

function shaded(values, low, high, shades) {
  const scale = high > low ? shades.length / (high - low) : 0;
  return Array.from(values, (v) => shades[clamp(Math.floor((v - low) * scale), 0, SHADES - 1)]);
}

// --- how right it is -----------------------------------------------------------------------------

/** The expected accuracy of the cell that u lies in; of several the one whose middle is nearest. */
function expectedAt(run, world, u) {
  let found = null;
  let nearest = Infinity;
  for (const cell of run.expected) {
    const away = world.columns.map((column, k) => {
      const half = (cell.hi[k] - cell.lo[k]) / 2;
      let gap = u[k] - cell.lo[k] - half;
      if (column.period) gap = wrap(gap + column.period / 2, column.period) - column.period / 2;
      return Math.abs(gap) / (half || 1e-9);
    });
    const farthest = Math.max(...away);
    if (farthest <= 1 + 1e-6 && farthest < nearest) [found, nearest] = [cell, farthest];
  }
  return found;
}

/** What is known of the run near u: a figure, and a sentence on where it comes from. */
function judged(run, world, weights, u) {
  const known = weightedMean(weights, run.right);
  const cell = expectedAt(run, world, u);
  const range = cell && `${percent(cell.low)} to ${percent(cell.high)}`;
  const doubt = cell && !cell.checked ? ", farther than was checked" : "";
  if (known.rows >= FEWEST) {
    const rows = `${Math.round(known.rows)} rows near`;
    if (run.regression) {
      const figure = written(known.mean, run.range[1] - run.range[0]);
      return { kind: "known", figure: `± ${figure}`, words: `mean distance from the truth, ${rows}` };
    }
    const beside = cell ? `; expected ${range}${doubt}` : "";
    return { kind: "known", figure: percent(known.mean), words: `right, of ${rows}${beside}` };
  }
  if (cell) {
    return { kind: "expected", figure: `≈ ${percent(cell.score)}`,
      words: `expected, ${range}${doubt}` };
  }
  const trained = weightedMean(weights, run.source);
  if (trained.rows < FEWEST) return { kind: "none", figure: "-", words: "no rows near" };
  if (trained.mean > 0.5) return { kind: "none", figure: "-", words: "trained on these labels" };
  return { kind: "none", figure: "?", words: "nobody knows: no labels near" };
}

// --- accuracy along u ----------------------------------------------------------------------------

const ALONG = 100; // places

/** A small chart of the whole range, with a line where u is; for an index of one column. */
function makeAlong(run, world) {
  const [column] = world.columns;
  const root = element("div", "ex-along");
  const chart = svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none" });
  chart.setAttribute("aria-hidden", "true");
  const x = (u) => (100 * (u - column.low)) / spanOf(column);
  const y = (share) => 100 - 100 * clamp(share, 0, 1);
  for (const [low, high] of column.source) {
    for (const [from, to] of pieces(column, low, high)) {
      band(chart, x(from), x(to) - x(from), 0, 100, "ex-along-source");
    }
  }
  for (const share of [0, 0.5, 1]) {
    svg("line", { x1: 0, x2: 100, y1: y(share), y2: y(share), class: "ex-along-rule" }, chart);
  }
  for (const cell of run.expected) {
    for (const [from, to] of pieces(column, cell.lo[0], cell.hi[0])) {
      band(chart, x(from), x(to) - x(from), y(cell.high), y(cell.low) - y(cell.high),
        "ex-along-expected");
    }
  }
  const top = run.regression ? blindError(run) : 1;
  svg("path", { d: curve(run, world, x, (value) => y(value / top)), class: "ex-along-line" }, chart);
  const cursor = svg("line", { x1: 0, x2: 0, y1: 0, y2: 100, class: "ex-along-now" }, chart);
  const high = run.regression ? written(top, top) : "100 %";
  root.append(element("span", "ex-along-top", high), element("span", "ex-along-low", "0"), chart);
  return { root, show: (u) => cursor.setAttribute("transform", `translate(${x(u[0])} 0)`) };
}

/** A stretch that passes the seam of a circle is two of its chart. */
function pieces(column, low, high) {
  if (high <= column.high || !column.period) return [[low, high]];
  if (low >= column.high) return [[low - column.period, high - column.period]];
  return [[low, column.high], [column.low, high - column.period]];
}

/** How far off who always says the mean would be: the top of the chart for numbers. */
function blindError({ truth, range }) {
  const known = truth.filter((value) => !Number.isNaN(value));
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  const off = known.reduce((sum, value) => sum + Math.abs(value - mean), 0) / known.length;
  return off || range[1] - range[0] || 1;
}

function band(chart, x, width, y, height, className) {
  svg("rect", { x, width: Math.max(width, 0.4), y, height: Math.max(height, 1), class: className },
    chart);
}

function curve(run, world, x, y) {
  const [column] = world.columns;
  let path = "";
  let open = false;
  for (let k = 0; k <= ALONG; k += 1) {
    const u = column.low + (k / ALONG) * spanOf(column);
    const { rows, mean } = weightedMean(nearness(run.index, world.columns, [u]), run.right);
    const known = rows >= FEWEST;
    if (known) path += `${open ? "L" : "M"}${x(u).toFixed(2)} ${y(mean).toFixed(2)}`;
    open = known;
  }
  return path;
}

// --- what is predicted ---------------------------------------------------------------------------

/** Bars of the mean probability of each class near u; for numbers, of the mean prediction. */
function makeBars(run, world) {
  const root = element("dl", "ex-bars");
  const names = run.regression ? ["mean"] : run.bars.map((code) => world.classes[code]);
  const others = !run.regression && run.bars.length < world.classes.length;
  if (others) names.push("others");
  const rows = names.map((name, k) => {
    const term = element("dt", "", name);
    term.title = name;
    const detail = element("dd");
    const bar = element("span", "ex-bar");
    const fill = element("span", "ex-fill");
    const text = element("span", "ex-share");
    bar.append(fill);
    detail.append(bar, text);
    root.append(term, detail);
    return { fill, text, code: run.bars[k] };
  });
  if (names.length > 6) root.classList.add("ex-many");

  function paint(theme) {
    for (const { fill, code } of rows) {
      fill.style.background = code === undefined ? theme.soft : theme.classes[code];
    }
  }

  /** Shows them, and says them in words. */
  function draw(weights) {
    const shares = run.regression ? meanPrediction(run, weights) : meanShares(run, weights, others);
    shares.forEach(({ share, words }, k) => {
      rows[k].fill.style.transform = `scaleX(${Number.isNaN(share) ? 0 : share.toFixed(3)})`;
      if (rows[k].text.textContent !== words) rows[k].text.textContent = words;
    });
    return names.map((name, k) => `${name} ${shares[k].words}`).join(", ");
  }
  return { root, paint, draw };
}

function meanPrediction(run, weights) {
  const [low, high] = run.range;
  const { rows, mean } = weightedMean(weights, run.predicted);
  if (rows < FEWEST) return [{ share: NaN, words: "-" }];
  return [{ share: high > low ? (mean - low) / (high - low) : 0.5, words: written(mean, high - low) }];
}

function meanShares(run, weights, others) {
  const count = run.bars.length;
  const { values } = run.probabilities;
  const sums = new Float64Array(count);
  let total = 0;
  for (let row = 0; row < weights.length; row += 1) {
    if (weights[row] < 1e-4) continue;
    total += weights[row];
    for (let k = 0; k < count; k += 1) sums[k] += weights[row] * values[row * count + k];
  }
  const shares = Array.from(sums, (sum) => (total < FEWEST ? NaN : sum / total));
  if (others) shares.push(Math.max(0, 1 - shares.reduce((a, b) => a + b, 0)));
  return shares.map((share) => ({
    share, words: Number.isNaN(share) ? "-" : `${Math.round(100 * share)} %`,
  }));
}

// --- the panel -----------------------------------------------------------------------------------

function captioned(words, content) {
  const root = element("div", "ex-part");
  root.append(element("p", "ex-caption", words), content);
  return root;
}

function makePanel(run, world, redraw) {
  const root = element("figure", "ex-panel");
  const figure = element("strong", "ex-figure");
  const words = element("p", "ex-said");
  const top = element("div", "ex-top");
  top.append(element("h3", "", run.title), figure);
  root.append(top, words);
  const along = world.columns.length === 1 ? makeAlong(run, world) : null;
  const plane = run.plane ? makePlane(run, world, redraw) : null;
  const digits = run.turned ? makeDigits(run, world, redraw) : null;
  const cloud = run.cloud ? makeCloud(run, redraw) : null;
  const bars = makeBars(run, world);
  const foot = element("div", "ex-foot");
  if (along) root.append(along.root);
  if (plane) root.append(plane.canvas);
  if (digits) root.append(captioned(TURNED, digits.canvas));
  if (cloud) foot.append(captioned("encodings", cloud.canvas));
  foot.append(captioned("predicted near", bars.root));
  root.append(foot);
  root.style.setProperty("--parts", root.children.length);
  let kept = null; // colours for a scheme and a choice
  let said = "";

  function paint(theme, by) {
    if (kept && kept.theme === theme && kept.by === by) return;
    kept = { theme, by, cloud: rowColours(run, world, theme, by, false) };
    kept.plane = plane && rowColours(run, world, theme, "predicted", true);
    bars.paint(theme);
  }

  function draw(state, weights, theme) {
    paint(theme, state.by);
    const found = judged(run, world, weights, state.u);
    if (figure.textContent !== found.figure) figure.textContent = found.figure;
    if (words.textContent !== found.words) words.textContent = found.words;
    root.dataset.known = found.kind;
    if (along) along.show(state.u);
    if (plane) plane.draw(weights, kept.plane, theme, state.u);
    const right = digits ? digits.draw(state.u[0], theme) : 0;
    if (cloud) cloud.draw(weights, kept.cloud, theme);
    const shares = bars.draw(weights);
    said = `${run.title}: ${found.figure} ${found.words}; near u ${shares}`;
    if (digits) said += `; ${right} of ${digits.count} images right`;
  }

  /** The pictures' words, for who does not see them. */
  function describe(where) {
    const label = (picture, what) =>
      picture && picture.canvas.setAttribute("aria-label", `${what} at ${where}. ${said}.`);
    label(plane, "Points of the plane and the boundary between the classes");
    label(digits, "Images as they come and as the transformer leaves them");
    label(cloud, "The first two principal components of the encodings");
    return said;
  }
  return { root, draw, describe, key: run.key, index: run.index };
}
