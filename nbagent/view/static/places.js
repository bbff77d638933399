// @ts-check
/**
 * Where a cell of the notebook is in this page, and going there. Knows JupyterLab's page, no kernel. Read `goTo`.
 *
 * @import { Model } from "./view.js"
 */

const TRIES = 30; // frames in which a cell that is not drawn must appear
const EDGE = 8; // px

/** The cells of the document that the kernel's widgets stand in, null where it is not known. @param {Model} model */
export function documentOf(model) {
  const shared = model.widget_manager?.context?.model?.sharedModel;
  return typeof shared?.insertCell === "function" ? shared : null;
}

/**
 * The cell with an id: whether the document has it, and how it is drawn, if it is.
 * @param {any} page
 * @param {ParentNode} panel
 * @param {string} id
 * @returns {{known: boolean, index: number, node: HTMLElement | null}}
 */
export function drawnCell(page, panel, id) {
  const index = id && page ? page.cells.findIndex((/** @type {any} */ cell) => cell.getId() === id) : -1;
  const found = index < 0 ? null : panel.querySelector(`.jp-Notebook .jp-Cell[data-windowed-list-index="${index}"]`);
  return { known: index >= 0, index, node: found instanceof HTMLElement ? found : null };
}

/** @param {Element} node */
const frameOf = (node) => node.closest(".jp-WindowedPanel-outer, .jp-Notebook") ?? document.documentElement;

/** Whether a card in the output of a cell is before the person's eyes. @param {any} page @param {ParentNode} panel @param {string} id */
export function isInSight(page, panel, id) {
  const { node } = drawnCell(page, panel, id);
  const cards = [...(node?.querySelectorAll(".nbagent-view:not(.nbagent-tray) .nbagent-card") ?? [])];
  return cards.some((card) => {
    const frame = frameOf(card).getBoundingClientRect();
    const at = (card.querySelector(".nbagent-asktitle") ?? card).getBoundingClientRect();
    return at.height > 0 && at.bottom > frame.top + EDGE && at.top < frame.bottom - EDGE;
  });
}

/**
 * Bring a cell into sight, its card if it has one, and give that the focus; `arrived` is called then.
 * @param {any} page
 * @param {ParentNode} panel
 * @param {string} id
 * @param {() => void} arrived
 */
export function goTo(page, panel, id, arrived) {
  let left = TRIES;
  const look = () => {
    const { known, index, node } = drawnCell(page, panel, id);
    if (!known) return;
    const scroller = panel.querySelector(".jp-WindowedPanel-outer");
    if (!node || !node.isConnected || node.offsetHeight === 0) {
      if (scroller && left === TRIES) scroller.scrollTop = (scroller.scrollHeight * index) / page.cells.length;
      if ((left -= 1) > 0) requestAnimationFrame(look);
      return;
    }
    arrived();
    const card = node.querySelector(".nbagent-view:not(.nbagent-tray) .nbagent-card");
    const bar = card?.querySelector(".nbagent-bar");
    requestAnimationFrame(() => {
      (card ?? node).scrollIntoView({ block: "center" });
      (bar instanceof HTMLElement ? bar : node).focus({ preventScroll: true });
    });
  };
  look();
}
