// Arrays out of the page, weights of the rows near u, and what lies between two stops.

const UNKNOWN = 65535;

/** The numbers of a packed array: low + step * code. */
function decode(packed) {
  const text = atob(packed.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  const codes = packed.bits === 16 ? new Uint16Array(bytes.buffer) : bytes;
  const values = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i += 1) {
    const missing = packed.bits === 16 && codes[i] === UNKNOWN;
    values[i] = missing ? NaN : packed.low + packed.step * codes[i];
  }
  return { values, shape: packed.shape };
}

/** Arrays are decoded when a run is first shown, not when the page opens. */
function library(packed) {
  const known = new Map();
  return (number) => {
    if (number === null || number === undefined) return null;
    if (!known.has(number)) known.set(number, decode(packed[number]));
    return known.get(number);
  };
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

/** The remainder that is never negative. */
function wrap(value, period) {
  return ((value % period) + period) % period;
}

function spanOf(column) {
  return column.high - column.low || 1;
}

// The width of "near", as a share of each column's range: more columns, fewer rows, wider.
const NEAR = [0, 0.035, 0.08, 0.13, 0.17];

/** Gaussian weights of rows whose index is in columns of arrays; 1 at u itself. */
function nearness(index, columns, u) {
  const rows = index[0].values.length;
  const squares = new Float32Array(rows);
  const width = NEAR[columns.length];
  columns.forEach((column, k) => {
    const values = index[k].values;
    const scale = 1 / (width * spanOf(column));
    for (let row = 0; row < rows; row += 1) {
      let gap = Math.abs(values[row] - u[k]);
      if (column.period && gap > column.period / 2) gap = column.period - gap;
      squares[row] += (gap * scale) ** 2;
    }
  });
  for (let row = 0; row < rows; row += 1) squares[row] = Math.exp(-squares[row] / 2);
  return squares;
}

/** The two stops that a value lies between, and how far along; round the circle if it wraps. */
function between(stops, value, period) {
  const last = stops.length - 1;
  if (last < 1) return { below: 0, above: 0, share: 0 };
  const inside = value >= stops[0] && value <= stops[last];
  if (!inside && period) {
    const gap = stops[0] + period - stops[last];
    const share = gap > 0 ? wrap(value - stops[last], period) / gap : 0;
    return { below: last, above: 0, share };
  }
  const held = clamp(value, stops[0], stops[last]);
  let above = 1;
  while (above < last && stops[above] < held) above += 1;
  const width = stops[above] - stops[above - 1];
  return { below: above - 1, above, share: width > 0 ? (held - stops[above - 1]) / width : 0 };
}

/** A layer of an array between the stops of its leading axes (linear along each). */
function layerAt(array, stops, columns, u, out) {
  let corners = [{ offset: 0, weight: 1 }];
  stops.forEach((places, k) => {
    const { below, above, share } = between(places, u[k], columns[k].period);
    const count = array.shape[k];
    corners = corners.flatMap(({ offset, weight }) => [
      { offset: offset * count + below, weight: weight * (1 - share) },
      { offset: offset * count + above, weight: weight * share },
    ]);
  });
  out.fill(0);
  for (const { offset, weight } of corners) {
    if (!weight) continue;
    const start = offset * out.length;
    for (let i = 0; i < out.length; i += 1) out[i] += weight * array.values[start + i];
  }
  return out;
}

/** Sum of weights, and the weighted mean of the values that are known. */
function weightedMean(weights, values) {
  let total = 0;
  let sum = 0;
  for (let row = 0; row < weights.length; row += 1) {
    if (Number.isNaN(values[row])) continue;
    total += weights[row];
    sum += weights[row] * values[row];
  }
  return { rows: total, mean: total > 0 ? sum / total : NaN };
}

/** A number with as many digits as the range asks for. */
function written(value, span) {
  const digits = 2 - Math.floor(Math.log10(span || 1) + 0.01);
  if (digits > 6 || digits < -12) return value.toPrecision(4);
  return value.toFixed(clamp(digits, 0, 6));
}

const DAY = 86400000; // milliseconds

/** A value of the index in words: a date where the column has dates. */
function place(column, value) {
  if (column.date && !column.period) return new Date(value * DAY).toISOString().slice(0, 10);
  const words = written(value, spanOf(column));
  // Just before the seam a rounded value would be the period itself, which is 0.
  return column.period && Number(words) >= column.period ? written(0, column.period) : words;
}

/** A share in %, never "100 %" for what is not all, nor "0 %" for what is not nothing. */
function percent(share) {
  const rounded = Math.round(100 * share);
  if (rounded === 100 && share < 0.9995) return `${(Math.floor(1000 * share) / 10).toFixed(1)} %`;
  return `${rounded} %`;
}
