// Reads out charts under the pointer, sorts tables, copies commands. The page is whole without it.
"use strict";

const THIN = "\u202f";

function short(value) {
  const size = Math.abs(value);
  const digits = size >= 99.95 || size === 0 ? 0 : size >= 9.995 ? 1 : size >= 0.1 ? 2 : 4;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

function scaled(value, units) {
  const [size, unit] = units.find(([size]) => Math.abs(value) >= size * 0.9995) || units[units.length - 1];
  return short(value / size) + (unit ? THIN + unit : "");
}

const UNITS = {
  count: (value) => scaled(value, [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]]),
  ms: (value) => scaled(value, [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"], [1, "ms"]]),
  percent: (value) => short(value * 100) + THIN + "%",
};

function made(name, text, style) {
  const element = document.createElement(name);
  element.textContent = text || "";
  if (style) element.className = style;
  return element;
}

function moment(time) {
  const options = { timeZone: "UTC", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false };
  return new Date(time).toLocaleString("en-GB", options);
}

// --- charts ---------------------------------------------------------------------------------------------------------

function lines(chart, step) {
  const found = chart.series.filter((each) => each.values[step] !== null);
  return found.map((each) => {
    const line = made("div");
    const name = made("span");
    name.append(made("i", "", "swatch " + each.style), each.name);
    line.append(name, made("b", UNITS[chart.unit](each.values[step])));
    return line;
  });
}

function readOut(figure) {
  const chart = JSON.parse(figure.dataset.points);
  const plot = figure.querySelector(".plot");
  const cursor = figure.querySelector(".cursor");
  const reading = made("div", "", "reading");
  reading.hidden = true;
  figure.append(reading);

  function leave() {
    reading.hidden = true;
    cursor.style.visibility = "hidden";
  }

  function show(event) {
    const box = plot.getBoundingClientRect();
    const steps = chart.series[0].values.length;
    const step = Math.min(steps - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * steps)));
    const at = ((step + 0.5) / steps) * box.width;
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.style.visibility = "visible";
    const found = lines(chart, step);
    reading.replaceChildren(made("b", moment(chart.since + step * chart.step)), ...found);
    if (!found.length) reading.append(made("div", "nothing"));
    reading.hidden = false;
    const edge = figure.getBoundingClientRect();
    const right = box.left - edge.left + at + 14;
    const fits = right + reading.offsetWidth <= edge.width;
    reading.style.left = Math.max(0, fits ? right : right - 28 - reading.offsetWidth) + "px";
    reading.style.top = box.top - edge.top + 8 + "px";
  }

  plot.addEventListener("pointermove", show);
  plot.addEventListener("pointerdown", show);
  plot.addEventListener("pointerleave", leave);
}

// --- tables ---------------------------------------------------------------------------------------------------------

function worth(row, index) {
  const cell = row.cells[index];
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  return cell.classList.contains("number") ? -Infinity : cell.textContent;
}

function compare(one, other) {
  return typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other));
}

function sortBy(table, head, index) {
  const isDown = head.getAttribute("aria-sort") === "descending" || (!head.hasAttribute("aria-sort") && !head.classList.contains("number"));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", isDown ? "ascending" : "descending");
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((one, other) => compare(worth(one, index), worth(other, index)) * (isDown ? 1 : -1));
  body.replaceChildren(...rows);
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, index) => {
    if (!head.textContent) return;
    const button = made("button", head.textContent);
    button.type = "button";
    button.addEventListener("click", () => sortBy(table, head, index));
    head.replaceChildren(button);
  });
}

function makeCopyable(code) {
  const button = made("button", "Copy", "copy");
  button.type = "button";
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      // It is selected, at least.
      button.textContent = "Selected";
    }
  });
  code.after(button);
}

document.querySelectorAll("figure[data-points]").forEach(readOut);
document.querySelectorAll("table").forEach(makeSortable);
document.querySelectorAll(".command").forEach(makeCopyable);
