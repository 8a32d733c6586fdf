// Marching squares: where a grid of numbers passes a level.

// The sides of a cell that the line crosses, by which corners are above the level
// (bottom left 1, bottom right 2, top right 4, top left 8). Sides: 0 bottom, 1 right, 2 top, 3 left.
const CROSSED = [
  [], [3, 0], [0, 1], [3, 1], [1, 2], null, [0, 2], [3, 2],
  [2, 3], [2, 0], null, [2, 1], [1, 3], [1, 0], [0, 3], [],
];
// A saddle: two lines, that part the corners which its middle is not like.
const SADDLE = { 5: [[3, 2, 1, 0], [3, 0, 1, 2]], 10: [[0, 3, 2, 1], [0, 1, 2, 3]] };

/** Where along a side, from its first corner to its second, the level is passed. */
function crossing(first, second, level) {
  return second === first ? 0.5 : (level - first) / (second - first);
}

/** Line segments x0, y0, x1, y1 in units of the grid, row 0 below. */
function contour(grid, rows, across, level) {
  const found = [];
  const point = [0, 0];
  for (let row = 0; row < rows - 1; row += 1) {
    for (let column = 0; column < across - 1; column += 1) {
      const at = row * across + column;
      const corners = [grid[at], grid[at + 1], grid[at + across + 1], grid[at + across]];
      let kind = 0;
      for (let k = 0; k < 4; k += 1) if (corners[k] >= level) kind += 1 << k;
      if (kind === 0 || kind === 15) continue;
      for (const side of CROSSED[kind] || saddle(kind, corners, level)) {
        onSide(side, corners, level, point);
        found.push(column + point[0], row + point[1]);
      }
    }
  }
  return found;
}

function saddle(kind, corners, level) {
  const middle = (corners[0] + corners[1] + corners[2] + corners[3]) / 4;
  return SADDLE[kind][middle >= level ? 0 : 1];
}

function onSide(side, [a, b, c, d], level, point) {
  if (side === 0) return set(point, crossing(a, b, level), 0);
  if (side === 1) return set(point, 1, crossing(b, c, level));
  if (side === 2) return set(point, crossing(d, c, level), 1);
  return set(point, 0, crossing(a, d, level));
}

function set(point, x, y) {
  point[0] = x;
  point[1] = y;
}
