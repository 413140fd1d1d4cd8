"use strict";
// Sorts tables and shows one workload at a time. The page is whole without it, and nothing is loaded.
(() => {
  const number = text => {
    const found = text.replace(/\u202f/g, "").match(/-?\d+(\.\d+)?/);
    return found ? Number(found[0]) : NaN;
  };
  const by = (column, down) => (one, other) => {
    const texts = [one, other].map(row => row.cells[column]?.textContent.trim() ?? "");
    const values = texts.map(number);
    const order = values.some(Number.isNaN) ? texts[0].localeCompare(texts[1]) : values[0] - values[1];
    return down ? -order : order;
  };
  for (const table of document.querySelectorAll("table.samples, table.changes:not(.whole), table.candidates")) {
    const heads = [...table.querySelectorAll("thead th")];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(each => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort(by(column, down)));
      });
    });
  }
  const marked = [...document.querySelectorAll("[data-workload]")];
  const names = [...new Set(marked.map(each => each.dataset.workload))];
  if (names.length < 2) return;
  const label = document.createElement("label");
  label.className = "filter quiet";
  const choice = document.createElement("select");
  for (const name of ["all workloads", ...names]) choice.add(new Option(name));
  choice.addEventListener("change", () => {
    const all = choice.selectedIndex === 0;
    for (const each of marked) each.hidden = !all && each.dataset.workload !== choice.value;
  });
  label.append("Show ", choice);
  document.querySelector("header").append(label);
})();
