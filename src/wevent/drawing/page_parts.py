"""The style and the script of a page of releases; without the script the page is a picture and a table."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#222;--soft:#666;--grid:#e6e6e6;--line:#bbb;--tip:#f6f6f6}
@media(prefers-color-scheme:dark){:root{--paper:#16181c;--ink:#e8e8e8;--soft:#a8a8a8;--grid:#2c3036;--line:#555;
--tip:#22262c}.line,.band{filter:brightness(1.45)}}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:1.5rem auto;padding:0 1rem;background:var(--paper);
color:var(--ink)}
h1{font-size:1.3rem;margin:0}p{color:var(--soft);margin:.3rem 0}figure{margin:.6rem 0}figcaption{font-weight:600}
svg{width:100%;height:auto;display:block}svg:focus-visible{outline:2px solid #0071d0}
svg text{font:11px system-ui,sans-serif;fill:var(--soft)}text.left{text-anchor:end}text.below{text-anchor:middle}
.grid{stroke:var(--grid);fill:none}.fresh{stroke:var(--ink);stroke-width:.8;opacity:.65}.cursor{stroke:var(--ink);
stroke-width:1;fill:none;opacity:.6}.line{stroke:var(--own);stroke-width:1.7;fill:none}.band{fill:var(--own);
fill-opacity:.24}.none{fill:var(--grid)}.heat image{image-rendering:pixelated}
#said{color:var(--ink);min-height:1.5em;font-variant-numeric:tabular-nums;position:sticky;top:0;background:var(--tip);
padding:.1rem .4rem;border-radius:4px}
.scale{display:flex;gap:.5rem;align-items:center}.scale i{flex:0 0 12rem;height:.7rem;border-radius:3px}
.wide{overflow:auto;max-height:32rem}table{border-collapse:collapse;font-size:.8rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft)}td,th{border:1px solid var(--line);padding:.15rem .4rem;text-align:right}
thead th{position:sticky;top:0;background:var(--tip)}summary{cursor:pointer;margin:.6rem 0}
@media print{#said{display:none}}
"""

# It reads what it says from the table of the page: there is no second copy of the numbers.
SCRIPT = """
"use strict";
(() => {
  const said = document.getElementById("said"), table = document.querySelector("table");
  const heads = [...table.tHead.rows[0].cells].slice(3).map(cell => cell.textContent);
  const rows = [...table.tBodies[0].rows], first = +rows[0].cells[0].textContent;
  const last = +rows[rows.length - 1].cells[0].textContent + 1;
  const hint = "Point at a chart, or choose one with the Tab key and move with the arrow keys.";
  const tell = (row, column) => {
    const [slot, start, outcome] = [...rows[row].cells].slice(0, 3).map(cell => cell.textContent);
    said.textContent = heads[column] + ", slot " + slot + (start ? ", " + start + " UTC" : "") + ": " +
      rows[row].cells[column + 3].textContent + ", " + outcome;
  };
  said.textContent = hint;
  const wire = svg => {
    const heat = svg.classList.contains("heat"), box = svg.viewBox.baseVal;
    const left = +svg.dataset.left, width = +svg.dataset.right - left;
    const cursor = svg.querySelector(".cursor");
    let row = rows.length - 1, column = heat ? 0 : +svg.dataset.cell;
    const place = () => {
      const at = left + (+rows[row].cells[0].textContent + .5 - first) / (last - first) * width;
      cursor.setAttribute("d", "M" + at + " " + svg.dataset.top + "V" + svg.dataset.floor);
      tell(row, column);
    };
    svg.addEventListener("pointermove", event => {
      const seen = svg.getBoundingClientRect();
      const x = (event.clientX - seen.left) / seen.width * box.width;
      const y = (event.clientY - seen.top) / seen.height * box.height;
      const slot = first + Math.floor((x - left) / width * (last - first));
      row = rows.findIndex(line => +line.cells[0].textContent >= slot);
      if (row < 0) row = rows.length - 1;
      if (heat) column = Math.max(0, Math.min(heads.length - 1, Math.floor((y - +svg.dataset.top) / +svg.dataset.row)));
      place();
    });
    svg.addEventListener("pointerleave", () => { cursor.setAttribute("d", ""); said.textContent = hint; });
    svg.addEventListener("keydown", event => {
      const by = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
      if (!by || (by[1] && !heat)) return;
      event.preventDefault();
      row = Math.max(0, Math.min(rows.length - 1, row + by[0]));
      column = Math.max(0, Math.min(heads.length - 1, column + by[1]));
      place();
    });
  };
  document.querySelectorAll("svg").forEach(wire);
})();
"""
