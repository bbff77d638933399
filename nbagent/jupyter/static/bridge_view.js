// @ts-check
/**
 * What of the notebook is before the person's eyes, and keeping it there. Knows JupyterLab's page, not the bridge. Read
 * `watched`.
 *
 * @import { SharedNotebook } from "./bridge_cells.js"
 */

const SETTLE_MS = 1500; // in which a new output finds its height

/** The drawn cells that show a cell of this document. @param {SharedNotebook} notebook @param {number} index */
function drawn(notebook, index) {
  const [line] = notebook.cells[index]?.getSource().split("\n") ?? [];
  return [...document.querySelectorAll(`.jp-Notebook .jp-Cell[data-windowed-list-index="${index}"]`)].filter(
    (node) => node.querySelector(".cm-line")?.textContent === line, // the number alone may be another document's
  );
}

/** @param {Element} node @returns {Element} */
const frameOf = (node) => node.closest(".jp-WindowedPanel-outer, .jp-Notebook") ?? document.documentElement;

/** The drawn cells whose output, or a cell `added` right below, is before the eyes of a person who does not write elsewhere.
 * @param {SharedNotebook} notebook @param {number} index @param {Set<string>} added */
export function watched(notebook, index, added) {
  let last = index;
  while (added.has(notebook.cells[last + 1]?.getId() ?? "")) last += 1;
  const below = notebook.cells.slice(index + 1, last + 1).flatMap((_, n) => drawn(notebook, index + 1 + n));
  const active = document.activeElement;
  return drawn(notebook, index).filter((cell) => {
    const frame = frameOf(cell);
    const { top, bottom } = frame.getBoundingClientRect();
    if (active?.matches(".cm-content") && active.textContent && frame.contains(active) && !cell.contains(active)) return false;
    return [cell.querySelector(".jp-Cell-outputWrapper"), ...below].some((node) => {
      const box = node && frame.contains(node) ? node.getBoundingClientRect() : { top: 0, bottom: 0 };
      return box.bottom > box.top && box.bottom > top && box.top < bottom;
    });
  });
}

/** Keep the top of a cell's new output in view until that has its height, or the person moves. @param {Element} cell */
export function keepInView(cell) {
  const output = cell.querySelector(".jp-Cell-outputWrapper");
  const observer = new ResizeObserver(() => {
    cell.scrollIntoView({ block: "nearest" });
    const frame = frameOf(cell).getBoundingClientRect();
    const top = output?.getBoundingClientRect().top ?? frame.top;
    if (top < frame.top || top > frame.bottom - 60) output?.scrollIntoView({ block: "start" });
  });
  const stop = () => observer.disconnect();
  for (const node of [cell, output]) if (node) observer.observe(node);
  for (const name of ["wheel", "pointerdown", "keydown"]) document.addEventListener(name, stop, { capture: true, once: true });
  setTimeout(stop, SETTLE_MS);
}
