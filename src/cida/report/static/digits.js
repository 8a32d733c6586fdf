// Images that u turns: as each comes, as the transformer leaves it, and what is said of it.

const CELL = 2.42; // the height of an image's cell, in widths

/** An upright image in the colour of ink, its grey as opacity, so that it follows the scheme. */
function inked(values, start, height, width, ink) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(width, height);
  const [r, g, b] = rgb(ink);
  for (let i = 0; i < width * height; i += 1) {
    pixels.data.set([r, g, b, values[start + i]], 4 * i);
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

/** Anticlockwise by so many degrees, in a square of this side around a point. */
function drawTurned(context, image, x, y, side, degrees) {
  context.save();
  context.translate(x, y);
  context.rotate((-degrees * Math.PI) / 180);
  context.drawImage(image, -side / 2, -side / 2, side, side);
  context.restore();
}

/** Between two angles, the shorter way round. */
function angleBetween(first, second, share) {
  return first + share * (wrap(second - first + 180, 360) - 180);
}

function makeDigits(run, world, redraw) {
  const picture = makeCanvas("ex-digits", () => redraw());
  const { turned } = run;
  const [count, height, width] = turned.images.shape;
  const across = Math.min(count, 6);
  const down = Math.ceil(count / across);
  const stops = turned.stops.length;
  const classCount = turned.predicted.shape[2];
  picture.canvas.style.aspectRatio = `${across} / ${CELL * down}`;
  let images = [];
  let inkedFor = null;

  function said(image, { below, above, share }) {
    const first = (image * stops + below) * classCount;
    const second = (image * stops + above) * classCount;
    const { values } = turned.predicted;
    let best = 0;
    let most = -1;
    for (let k = 0; k < classCount; k += 1) {
      const chance = (1 - share) * values[first + k] + share * values[second + k];
      if (chance > most) [best, most] = [k, chance];
    }
    return { code: turned.order[best], chance: most };
  }

  function drawOne(image, stop, u, theme) {
    const { context } = picture;
    const cell = picture.width / across;
    const left = (image % across) * cell;
    const top = Math.floor(image / across) * CELL * cell;
    const side = 0.86 * cell;
    const x = left + cell / 2;
    const { values } = turned.angle;
    const at = image * stops;
    const angle = angleBetween(values[at + stop.below], values[at + stop.above], stop.share);
    context.globalAlpha = 0.45;
    drawTurned(context, images[image], x, top + 0.46 * cell, side, u);
    context.globalAlpha = 1;
    drawTurned(context, images[image], x, top + 1.36 * cell, side, u + angle);
    const { code, chance } = said(image, stop);
    const right = code === turned.labels.values[image];
    context.fillStyle = right ? theme.good : theme.bad;
    context.font = font(600);
    const mark = right ? "✓" : "✗"; // not by colour alone
    context.fillText(`${world.classes[code]} ${mark}`, x, top + 1.98 * cell, cell - 2);
    context.fillStyle = theme.soft;
    context.font = font(400);
    context.fillText(percent(chance), x, top + 2.22 * cell, cell - 2);
    return right;
  }

  function font(weight) {
    return `${weight} ${clamp(picture.width / across / 4.6, 9.5, 13)}px system-ui, sans-serif`;
  }

  /** How many of the images are right. */
  function draw(u, theme) {
    if (!picture.width) return 0;
    if (inkedFor !== theme) {
      inkedFor = theme;
      const { values } = turned.images;
      images = Array.from({ length: count }, (_, k) =>
        inked(values, k * height * width, height, width, theme.ink));
    }
    const { context } = picture;
    context.clearRect(0, 0, picture.width, picture.height);
    context.textAlign = "center";
    context.textBaseline = "middle";
    const stop = between(turned.stops, wrap(u, 360), 360);
    let right = 0;
    for (let image = 0; image < count; image += 1) {
      right += drawOne(image, stop, u, theme);
    }
    return right;
  }
  return { canvas: picture.canvas, draw, count };
}
