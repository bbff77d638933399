// @ts-check
/**
 * Jumps from a link in a record to a cell of the notebook, and to one of its lines.
 *
 * A link only moves the page: nothing is run or told to the kernel. Read `jump`.
 *
 * @import { SharedNotebook } from "./bridge_cells.js"
 */

const LOOKS = 40; // frames until a cell is drawn that was out of sight
const MARKED_FOR = 2500; // ms for which the line is marked
const TO_CELL = /^#nbagent-cell-([\w-]+?)(?:\.(\d+))?$/;

export const JUMP_STYLE = `
.jp-Notebook[data-nbagent-desk] .jp-OutputArea a[href^="#nbagent-cell-"] {
  display: inline; padding: 0; margin: 0; border: 0; background: none; line-height: inherit; font-size: inherit;
  color: var(--jp-content-link-color); text-decoration: underline dotted;
}
.jp-Notebook[data-nbagent-desk] .jp-OutputArea a[href^="#nbagent-cell-"]:hover { background: none; text-decoration-style: solid; }
.nbagent-here { outline: 2px solid var(--jp-brand-color1); outline-offset: 1px; }
`;

/**
 * Bring the cell of a link into sight, its line if it names one; false where the link is of another kind.
 * @param {string} href
 * @param {HTMLElement} node a notebook in the page
 * @param {SharedNotebook} notebook
 * @returns {boolean}
 */
export function jump(href, node, notebook) {
  const [, id, line] = TO_CELL.exec(href) ?? [];
  if (!id) return false;
  const index = notebook.cells.findIndex((cell) => cell.getId() === id);
  if (index < 0) return true;
  const scroller = node.querySelector(".jp-WindowedPanel-outer");
  let left = LOOKS;
  const look = () => {
    const cell = /** @type {HTMLElement | null} */ (node.querySelector(`.jp-Cell[data-windowed-list-index="${index}"]`));
    if (!cell || !cell.isConnected || cell.offsetHeight === 0) {
      if (scroller && left === LOOKS) scroller.scrollTop = (scroller.scrollHeight * index) / notebook.cells.length;
      if ((left -= 1) > 0) requestAnimationFrame(look);
      return;
    }
    const shown = (line ? cell.querySelectorAll(".cm-line")[Number(line) - 1] : null) ?? cell;
    shown.scrollIntoView({ block: "center" });
    shown.classList.add("nbagent-here");
    setTimeout(() => shown.classList.remove("nbagent-here"), MARKED_FOR);
  };
  look();
  return true;
}
