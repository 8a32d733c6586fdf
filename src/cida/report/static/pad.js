// A map of an index of two columns: where the source is, where u is, and a finger to move it.

const PAD_MARGIN = 7;

/** For the pointer alone: the two sliders beside it do the same by keys, and are read aloud. */
function makePad(world, rows, moved) {
  const picture = makeCanvas("ex-pad", () => paint());
  picture.canvas.setAttribute("aria-hidden", "true");
  picture.canvas.removeAttribute("role");
  const [across, up] = world.columns;
  let layer = null;
  let theme = null;
  let here = [across.start, up.start];

  const x = (value) => scaledTo(value, across, PAD_MARGIN, picture.width - PAD_MARGIN);
  const y = (value) => scaledTo(value, up, picture.height - PAD_MARGIN, PAD_MARGIN);

  function paint(changed) {
    theme = changed || theme;
    if (!picture.width || !theme) return;
    const points = {
      x: Float32Array.from(rows.index[0].values, x),
      y: Float32Array.from(rows.index[1].values, y),
    };
    const colours = Array.from(rows.source, (source) => (source ? theme.good : theme.soft));
    layer = faintLayer(picture, points, colours, 0.55, 1.2);
    show(here);
  }

  function show(u) {
    here = u;
    if (!layer) return;
    const { context } = picture;
    context.clearRect(0, 0, picture.width, picture.height);
    copyLayer(context, layer, picture);
    context.beginPath();
    context.arc(x(u[0]), y(u[1]), 5.5, 0, 2 * Math.PI);
    context.strokeStyle = theme.card;
    context.lineWidth = 5;
    context.stroke();
    context.strokeStyle = theme.ink;
    context.lineWidth = 2.5;
    context.stroke();
  }

  followPointer(picture.canvas, (left, top, box) => {
    const share = (at, length) => clamp((at - PAD_MARGIN) / (length - 2 * PAD_MARGIN), 0, 1);
    moved([
      across.low + share(left, box.width) * spanOf(across),
      up.high - share(top, box.height) * spanOf(up),
    ]);
  });
  return { root: picture.canvas, paint, show };
}

function scaledTo(value, column, start, end) {
  return start + ((value - column.low) / spanOf(column)) * (end - start);
}
