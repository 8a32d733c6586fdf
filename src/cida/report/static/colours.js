// The page's colours, read anew whenever its scheme changes.

const FEW = ["--blue", "--red"]; // as in the figures of the toys
const SEVERAL = ["--s5", "--s4", "--s3", "--s1", "--s2", "--s0"];
const SHADES = 64; // of a ramp

const onePixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

/** Red, green and blue of any CSS colour. */
function rgb(colour) {
  onePixel.clearRect(0, 0, 1, 1);
  onePixel.fillStyle = colour;
  onePixel.fillRect(0, 0, 1, 1);
  return onePixel.getImageData(0, 0, 1, 1).data;
}

function readTheme(element, classCount) {
  const style = getComputedStyle(element);
  const own = (name) => style.getPropertyValue(name).trim();
  const [r, g, b] = rgb(own("--paper") || "white");
  const dark = r + g + b < 384;
  return {
    ink: own("--ink"),
    soft: own("--soft"),
    rule: own("--rule"),
    card: own("--card"),
    good: own("--frame"),
    bad: own("--red"),
    low: rgb(own("--blue")),
    high: rgb(own("--red")),
    classes: classColours(own, classCount, dark),
    line: ramp((t) => `oklch(${light(dark, t)} 0.15 ${265 - 200 * t})`),
    values: ramp((t) => mixed(rgb(own("--blue")), rgb(own("--soft")), rgb(own("--red")), t)),
    circle: ramp((t) => `oklch(${dark ? 0.76 : 0.6} 0.15 ${360 * t})`),
  };
}

/** Along a line it grows lighter as well as warmer, for those who do not see hues. */
function light(dark, t) {
  return dark ? 0.55 + 0.33 * t : 0.42 + 0.33 * t;
}

/** From low by way of middle to high. */
function mixed(low, middle, high, t) {
  const [from, to, share] = t < 0.5 ? [low, middle, 2 * t] : [middle, high, 2 * t - 1];
  const parts = [0, 1, 2].map((k) => Math.round(from[k] + share * (to[k] - from[k])));
  return `rgb(${parts.join(" ")})`;
}

function ramp(colour) {
  return Array.from({ length: SHADES }, (_, k) => colour(k / SHADES));
}

function classColours(own, count, dark) {
  if (count <= FEW.length) return FEW.map(own);
  if (count <= SEVERAL.length) return SEVERAL.map(own);
  return Array.from({ length: count }, (_, k) => {
    const lightness = (dark ? 0.74 : 0.56) + (k % 2 ? 0.06 : -0.06); // neighbours also by lightness
    return `oklch(${lightness} 0.15 ${(360 * k) / count + 20})`;
  });
}

/** Calls back when the scheme, the page's own data-theme or the medium (print) changes. */
function onThemeChange(changed) {
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    window.matchMedia(query).addEventListener("change", changed);
  }
  new MutationObserver(changed).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme"],
  });
}
