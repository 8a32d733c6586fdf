"use strict";
// --- light and dark: as the system has it until the reader chooses ---
(() => {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => { button.textContent = dark() ? "Light page" : "Dark page"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    tell();
    try { localStorage.setItem("cida-theme", root.dataset.theme); } catch { /* not kept, then */ }
  });
  system.addEventListener("change", tell);
  tell();
})();

// --- tables: a button in each column head sorts by it ---
(() => {
  const number = (text) => {
    const found = text.replace(/,(?=\d{3})/g, "").match(/^[^\d+-]{0,2}([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)/i);
    return found ? Number(found[1]) : null;
  };
  const cell = (row, column) => row.cells[column].textContent.trim();
  const compare = (a, b, up) => {
    if (a === "" || b === "") return (a === "") - (b === ""); // what is not known comes last
    const [x, y] = [number(a), number(b)];
    const order = x !== null && y !== null ? x - y : a.localeCompare(b);
    return up ? order : -order;
  };
  const sort = (table, head, column) => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    const groups = []; // a line, and the paper's that goes with it
    for (const row of body.rows) {
      if (row.classList.contains("below") && groups.length) groups.at(-1).push(row);
      else groups.push([row]);
    }
    groups.sort((a, b) => compare(cell(a[0], column), cell(b[0], column), up));
    body.append(...groups.flat());
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(table, head, column));
    });
  }
})();

// --- charts: a button a line shows or hides it; under the pointer or the focus it stands out ---
(() => {
  for (const button of document.querySelectorAll("button[data-toggles]")) {
    const figure = button.closest("figure");
    const mine = [...figure.querySelectorAll("[data-key]")].filter(
      (part) => part.dataset.key === button.dataset.toggles);
    const look = (on) => {
      if (button.getAttribute("aria-pressed") === "false") on = false;
      figure.classList.toggle("looking", on);
      for (const part of mine) part.classList.toggle("seen", on);
    };
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      for (const part of mine) part.classList.toggle("gone", !shown);
      look(shown);
    });
    for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => look(true));
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => look(false));
  }
})();

// --- on paper everything is open ---
(() => {
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const part of closed) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of closed) part.open = false; });
})();
