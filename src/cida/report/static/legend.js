// What the colours are, and which of them; which runs are shown.

const NAMED = 12; // classes in the legend
let groups = 0; // radio groups so far, for names

/** Checkboxes: the runs that are shown side by side. */
function makeChoice(runs, choose) {
  const root = element("fieldset", "ex-choice");
  root.append(element("legend", "", "Runs"));
  runs.forEach((run, number) => {
    const label = element("label", "ex-chip");
    const box = element("input");
    box.type = "checkbox";
    box.checked = run.shown;
    box.setAttribute("aria-label", run.title); // without the tick that the style puts before it
    box.addEventListener("change", () => choose(number, box.checked));
    label.append(box, element("span", "", run.title));
    root.append(label);
  });
  return root;
}

function makeLegend(world, chosen) {
  const root = element("div", "ex-legend");
  const colours = element("fieldset", "ex-choice");
  colours.append(element("legend", "", "Encodings by"));
  groups += 1;
  const first = world.classes === null ? "prediction" : "predicted class";
  const options = [["predicted", first], ...world.columns.map((c, k) => [k, c.name])];
  for (const [by, words] of options) {
    const label = element("label", "ex-chip");
    const input = element("input");
    input.type = "radio";
    input.name = `ex-by-${groups}`;
    input.checked = by === "predicted";
    input.addEventListener("change", () => chosen(by));
    label.append(input, element("span", "", words));
    colours.append(label);
  }
  const keys = element("ul", "ex-keys");
  root.append(keys, colours);

  function show(theme, by) {
    keys.replaceChildren();
    if (world.classes) {
      const named = world.classes.slice(0, NAMED);
      named.forEach((name, k) => keys.append(key(theme.classes[k], name)));
      const more = world.classes.length - named.length;
      if (more) keys.append(element("li", "", `and ${more} more`));
      keys.append(key(null, "wrong"));
    } else keys.append(rampKey(theme.values, "least predicted", "most"));
    if (by === "predicted") return;
    const column = world.columns[by];
    const ends = [column.low, column.high].map((value) => endOf(column, value));
    keys.append(rampKey(column.period ? theme.circle : theme.line, ...ends));
  }
  return { root, show };
}

function endOf(column, value) {
  return column.period ? written(value, spanOf(column)) : place(column, value);
}

function key(colour, words) {
  const item = element("li", "", words);
  const mark = element("span", colour ? "ex-swatch" : "ex-swatch ex-ring");
  if (colour) mark.style.background = colour;
  item.prepend(mark);
  return item;
}

function rampKey(shades, low, high) {
  const item = element("li");
  const mark = element("span", "ex-ramp");
  mark.style.background = `linear-gradient(90deg, ${shades.filter((_, k) => k % 4 === 0).join(", ")})`;
  item.append(element("span", "", low), mark, element("span", "", high));
  return item;
}
