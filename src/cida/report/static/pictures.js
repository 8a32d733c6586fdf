// Canvases: points in the plane with the boundary, and the cloud of encodings.

const FAINT = 0.16;
const BRIGHT_FROM = 0.04; // of the weight: rows farther from u stay faint

/** A canvas that knows its size in pixels without asking the layout in every frame. */
function makeCanvas(className, resized) {
  const canvas = document.createElement("canvas");
  canvas.className = className;
  canvas.setAttribute("role", "img");
  const context = canvas.getContext("2d");
  const picture = { canvas, context, width: 0, height: 0 };
  new ResizeObserver(([entry]) => {
    const { width, height } = entry.contentRect;
    if (!width || !height) return;
    const dense = Math.min(window.devicePixelRatio || 1, 3);
    canvas.width = Math.round(width * dense);
    canvas.height = Math.round(height * dense);
    context.setTransform(dense, 0, 0, dense, 0, 0);
    picture.width = width;
    picture.height = height;
    resized();
  }).observe(canvas);
  return picture;
}

/** All points, faint: made once for a size and a choice of colours, then only copied. */
function faintLayer(picture, points, colours, alpha = FAINT, radius = 1.7) {
  const layer = document.createElement("canvas");
  layer.width = picture.canvas.width;
  layer.height = picture.canvas.height;
  const context = layer.getContext("2d");
  context.setTransform(picture.context.getTransform());
  context.globalAlpha = alpha;
  for (let row = 0; row < colours.length; row += 1) {
    context.fillStyle = colours[row];
    dot(context, points.x[row], points.y[row], radius);
  }
  return layer;
}

function dot(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

function copyLayer(context, layer, picture) {
  context.drawImage(layer, 0, 0, picture.width, picture.height);
}

/** Rows near u, bright; a ring around those that are wrong. */
function brightPoints(context, points, colours, weights, wrong, ink) {
  for (let row = 0; row < weights.length; row += 1) {
    const weight = weights[row];
    if (weight < BRIGHT_FROM) continue;
    context.globalAlpha = 0.25 + 0.75 * weight;
    context.fillStyle = colours[row];
    dot(context, points.x[row], points.y[row], 1.9 + 1.1 * weight);
    if (!wrong || !wrong[row]) continue;
    context.strokeStyle = ink;
    context.lineWidth = 0.8;
    context.beginPath();
    context.arc(points.x[row], points.y[row], 4, 0, 2 * Math.PI);
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** Numbers to pixels, with a margin for the dots. */
function scaled(values, low, high, start, end) {
  const scale = high > low ? (end - start) / (high - low) : 0;
  const shift = high > low ? 0 : (end - start) / 2;
  return Float32Array.from(values, (value) => start + shift + (value - low) * scale);
}

// --- the cloud of encodings ----------------------------------------------------------------------

function makeCloud(run, redraw) {
  const picture = makeCanvas("ex-cloud", () => {
    kept = null;
    redraw();
  });
  const { values } = run.cloud;
  const across = values.filter((_, i) => i % 2 === 0);
  const up = values.filter((_, i) => i % 2 === 1);
  const spans = [across, up].map((v) => [Math.min(...v), Math.max(...v)]);
  let kept = null;

  function prepare(colours) {
    const points = {
      x: scaled(across, ...spans[0], 8, picture.width - 8),
      y: scaled(up, ...spans[1], picture.height - 8, 8),
    };
    return { points, colours, layer: faintLayer(picture, points, colours) };
  }

  function draw(weights, colours, theme) {
    if (!picture.width) return;
    if (!kept || kept.colours !== colours) kept = prepare(colours);
    const { context } = picture;
    context.clearRect(0, 0, picture.width, picture.height);
    copyLayer(context, kept.layer, picture);
    brightPoints(context, kept.points, colours, weights, run.wrong, theme.ink);
  }
  return { canvas: picture.canvas, draw };
}

// --- the plane -----------------------------------------------------------------------------------

function makePlane(run, world, redraw) {
  const picture = makeCanvas("ex-plane", () => {
    kept = null;
    redraw();
  });
  const { plane } = run;
  const [rows, across] = plane.grid.shape.slice(-2);
  const layer = new Float32Array(rows * across); // logits, or shares of the range
  const shading = document.createElement("canvas");
  shading.width = across;
  shading.height = rows;
  const shadingContext = shading.getContext("2d");
  const pixels = shadingContext.createImageData(across, rows);
  const levels = run.regression ? [0.2, 0.4, 0.6, 0.8] : [0];
  let kept = null;

  function prepare(colours) {
    const [left, right, bottom, top] = plane.box;
    const points = {
      x: scaled(plane.across.values, left, right, 0, picture.width),
      y: scaled(plane.up.values, bottom, top, picture.height, 0),
    };
    return { points, colours, layer: faintLayer(picture, points, colours) };
  }

  /** Blue below one half, red above, clear at it: the surer the stronger. */
  function shade(theme) {
    for (let i = 0; i < layer.length; i += 1) {
      const share = run.regression ? layer[i] : 1 / (1 + Math.exp(-layer[i]));
      const row = rows - 1 - Math.floor(i / across); // pictures begin at the top
      const at = 4 * (row * across + (i % across));
      const colour = share < 0.5 ? theme.low : theme.high;
      pixels.data[at] = colour[0];
      pixels.data[at + 1] = colour[1];
      pixels.data[at + 2] = colour[2];
      pixels.data[at + 3] = 120 * Math.abs(share - 0.5);
    }
    shadingContext.putImageData(pixels, 0, 0);
    // The grid's outer nodes are on the edges, and a pixel's place is its middle: half a pixel out.
    const stepX = picture.width / (across - 1);
    const stepY = picture.height / (rows - 1);
    const { context } = picture;
    context.imageSmoothingEnabled = true;
    context.drawImage(shading, -stepX / 2, -stepY / 2, stepX * across, stepY * rows);
  }

  function boundary(level, theme) {
    const lines = contour(layer, rows, across, level);
    const stepX = picture.width / (across - 1);
    const stepY = picture.height / (rows - 1);
    const { context } = picture;
    context.beginPath();
    for (let i = 0; i < lines.length; i += 4) {
      context.moveTo(lines[i] * stepX, picture.height - lines[i + 1] * stepY);
      context.lineTo(lines[i + 2] * stepX, picture.height - lines[i + 3] * stepY);
    }
    context.strokeStyle = theme.ink;
    context.lineCap = "round";
    context.lineWidth = run.regression ? 0.9 : 1.8;
    context.stroke();
  }

  function draw(weights, colours, theme, u) {
    if (!picture.width) return;
    if (!kept || kept.colours !== colours) kept = prepare(colours);
    const { context } = picture;
    context.clearRect(0, 0, picture.width, picture.height);
    layerAt(plane.grid, plane.stops, world.columns, u, layer);
    shade(theme);
    copyLayer(context, kept.layer, picture);
    for (const level of levels) boundary(level, theme);
    brightPoints(context, kept.points, colours, weights, run.wrong, theme.ink);
  }
  return { canvas: picture.canvas, draw };
}
