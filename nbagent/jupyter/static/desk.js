// @ts-check
/**
 * The page's half of the desk: the record's plain links become buttons as long as their kernel lives, and cells that an
 * agent wrote are marked.
 *
 * Everything is kept in `initialize`: one desk for one document, and nothing that two documents share. It finds the
 * document's own nodes in the page, since a widget without a view has none. Must not know what a click does: the kernel
 * is told and answers. Read `initialize`, then `panelsOf`; the kernel's half is nbagent/jupyter/desk.py. This file and what
 * it imports become one module (nbagent/esm).
 *
 * @import { DocumentContext, Json, Model, SharedCell, SharedNotebook } from "./bridge_cells.js"
 *
 * @typedef {{connect: (slot: (...args: any[]) => void) => void, disconnect: (slot: (...args: any[]) => void) => void}} Signal
 */
import { JUMP_STYLE, jump } from "./desk_jump.js";
import { trayHanger } from "./desk_tray.js";

const DESK_VERSION = 1;
const READY_AT = [0, 1500, 4000, 10_000, 30_000]; // ms: some kernels hear the first only when the cell has ended
const SETTLED_AT = [500, 2000]; // ms after which a page that was just loaded has its tabs
const MARK_EVERY = 150; // ms
const CLICK_PATIENCE = 30_000; // ms
const LINK = /^#nbagent-(undo|redo|again|continue)-(run-[0-9a-f]+)$/;
const JUMP = /^#nbagent-cell-([\w-]{1,80})$/;
const NEARER = [80, 250]; // ms after which a cell that was not drawn is looked for again
const CELL = ".jp-Cell[data-windowed-list-index]";

const STYLE = `
.jp-Notebook[data-nbagent-desk] .jp-OutputArea a[href^="#nbagent-"]:not([href^="#nbagent-cell-"]) {
  display: inline-block; padding: 0 .7em; margin: .15em 0; border-radius: 3px; cursor: pointer;
  font-size: var(--jp-ui-font-size1); line-height: 1.9; text-decoration: none;
  color: var(--jp-ui-font-color1); background: var(--jp-layout-color2); border: 1px solid var(--jp-border-color1);
}
.jp-Notebook[data-nbagent-desk] .jp-OutputArea a[href^="#nbagent-"]:not([href^="#nbagent-cell-"]):hover { background: var(--jp-layout-color3); }
.jp-Notebook[data-nbagent-desk] .jp-OutputArea a[href^="#nbagent-"]:focus-visible { outline: 2px solid var(--jp-brand-color1); }
.jp-Notebook[data-nbagent-desk] .jp-OutputArea a[href^="#nbagent-"][aria-busy="true"] { opacity: .5; cursor: wait; }
.nbagent-said { white-space: pre-wrap; padding-left: .6em; color: color-mix(in srgb, var(--jp-ui-font-color1) 85%, transparent); }
.jp-Cell.nbagent-mine > .jp-Cell-inputWrapper { position: relative; }
.jp-Cell.nbagent-mine > .jp-Cell-inputWrapper > .jp-InputArea { box-shadow: inset 3px 0 0 var(--jp-accent-color2, #66bb6a); }
.jp-Cell.nbagent-mine > .jp-Cell-inputWrapper::after {
  content: "agent"; position: absolute; right: 6px; bottom: 3px; pointer-events: none;
  font: 10px var(--jp-ui-font-family); color: color-mix(in srgb, var(--jp-ui-font-color1) 85%, transparent); background: var(--jp-cell-editor-background);
}
.jp-Cell.nbagent-mine.jp-MarkdownCell > .jp-Cell-inputWrapper::after { background: none; }
.jp-Cell.nbagent-stale > .jp-Cell-outputWrapper { opacity: .7; }
.jp-Cell.nbagent-stale.nbagent-mine > .jp-Cell-inputWrapper::after { content: "agent · not run since"; }
.nbagent-trayhost { position: absolute; z-index: 10; left: 0; right: 0; bottom: 0; display: flex; flex-direction: column; max-height: 60%; }
.jp-NotebookPanel[data-nbagent-tray] .jp-WindowedPanel-outer { height: calc(100% - var(--nbagent-tray, 0px)); }
.jp-NotebookPanel[data-nbagent-tray] .nbagent-sign { display: none; }
`;

/**
 * The notebooks in the page that show this document: by the path in the title of their tab, where they are in one (a copy
 * of a notebook says the same as it does), else by what their cells say.
 * @param {DocumentContext} context
 * @returns {HTMLElement[]}
 */
function panelsOf(context) {
  const path = context.path.split(":").pop() ?? ""; // without the drive
  return /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".jp-Notebook")]).filter((node) => {
    const id = node.closest(".jp-NotebookPanel")?.id;
    if (node.parentElement?.closest(".jp-Notebook")) return false; // planted in an output
    const tab = id ? document.querySelector(`.lm-TabBar-tab[data-id="${CSS.escape(id)}"]`) : null;
    if (!tab) return shows(node, context.model.sharedModel);
    const lines = (tab.getAttribute("title") ?? "").split("\n").map((line) => line.trim());
    return lines.some((line) => line === path || line.endsWith(` ${path}`)); // “Path: …” in any language
  });
}

/** Whether the drawn cells of a notebook say what the document's cells say. @param {Element} node @param {SharedNotebook} notebook */
function shows(node, notebook) {
  const said = cellsOf(node).map((cell) => [sourceOf(notebook, cell), cell.querySelector(".cm-line")?.textContent]);
  const known = said.filter(([, line]) => line != null);
  return known.length > 0 && known.every(([source, line]) => source?.includes(line ?? ""));
}

/** The drawn cells of a notebook; an output may hold elements that look like one. @param {Element} node @returns {HTMLElement[]} */
function cellsOf(node) {
  const found = /** @type {HTMLElement[]} */ ([...node.querySelectorAll(CELL)]);
  return found.filter((cell) => !cell.parentElement?.closest(".jp-Cell, .jp-OutputArea"));
}

/** @param {SharedNotebook} notebook @param {HTMLElement} cell */
const sourceOf = (notebook, cell) => cellAt(notebook, cell)?.getSource();

/** The document's cell that a drawn cell shows. @param {SharedNotebook} notebook @param {HTMLElement} node @returns {SharedCell | undefined} */
function cellAt(notebook, node) {
  return notebook.cells[Number(node.dataset.windowedListIndex)];
}

/** Whether the outputs of a cell are marked as from before its last edit. @param {SharedCell} cell */
function isStale(cell) {
  return cell.cell_type === "code" && cell.getOutputs()[0]?.metadata?.nbagent?.stale === true;
}

/** Show what an agent did to the cells of one notebook. @param {HTMLElement} node @param {SharedNotebook} notebook */
function markCells(node, notebook) {
  for (const drawn of cellsOf(node)) {
    const cell = cellAt(notebook, drawn);
    const said = /** @type {Json | undefined} */ (cell?.getMetadata().nbagent);
    const mine = said != null && (said.run != null || said.call != null);
    drawn.classList.toggle("nbagent-mine", mine);
    drawn.classList.toggle("nbagent-stale", cell != null && said?.stale === true && isStale(cell));
  }
}

/** Run a cell as a person does, by its prompt and the toolbar; false where this page has no such button.
 * @param {HTMLElement} node @param {number} index */
function runCell(node, index) {
  const drawn = cellsOf(node).find((cell) => cell.dataset.windowedListIndex === String(index));
  const prompt = drawn?.querySelector(":scope > .jp-Cell-inputWrapper .jp-InputPrompt");
  const button = /** @type {HTMLElement | null | undefined} */ (
    node.closest(".jp-NotebookPanel")?.querySelector('[data-jp-item-name="run"] :is(jp-button, button)')
  );
  if (!prompt || !button) return false;
  const pressed = (/** @type {string} */ type) => new MouseEvent(type, { bubbles: true, cancelable: true, button: 0 });
  for (const type of ["mousedown", "mouseup"]) prompt.dispatchEvent(pressed(type));
  for (const type of ["mousedown", "mouseup", "click"]) button.dispatchEvent(pressed(type)); // it listens to the first or the last
  return true;
}

/** Bring a cell of the document into view; one that is not drawn yet is scrolled towards first.
 * @param {HTMLElement} node @param {SharedNotebook} notebook @param {string} id @param {number} tries */
function goTo(node, notebook, id, tries = 0) {
  const index = notebook.cells.findIndex((cell) => cell.getId() === id);
  if (index < 0) return;
  const drawn = cellsOf(node).find((cell) => cell.dataset.windowedListIndex === String(index));
  if (drawn) {
    drawn.scrollIntoView({ block: "center" });
    drawn.querySelector(".jp-InputPrompt")?.dispatchEvent(new MouseEvent("mousedown", { bubbles: true, button: 0 }));
    return;
  }
  const outer = node.querySelector(".jp-WindowedPanel-outer") ?? node;
  outer.scrollTop = (outer.scrollHeight * index) / Math.max(notebook.cells.length, 1);
  const wait = NEARER[tries];
  if (wait) setTimeout(() => goTo(node, notebook, id, tries + 1), wait);
}

/** @param {{model: Model & {get(name: string): any, widget_manager?: any}}} props */
function initialize({ model }) {
  const context = /** @type {any} */ (model.widget_manager?.context);
  if (typeof context?.model?.sharedModel?.insertCell !== "function") return undefined;
  /** @type {SharedNotebook} */
  const notebook = context.model.sharedModel;
  const page = crypto.randomUUID?.() ?? String(Math.random()).slice(2);
  const style = document.createElement("style");
  style.textContent = STYLE + JUMP_STYLE;
  /** @type {Map<string, ReturnType<typeof setTimeout>>} */
  const waiting = new Map();
  /** @type {Set<HTMLElement>} */
  const claimed = new Set();
  let live = false;
  let over = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @param {Json} content */
  const send = (content) => {
    try {
      model.send({ v: DESK_VERSION, page, at: Date.now(), ...content });
    } catch {
      // the kernel is gone, and its answer is not waited for by anybody for long
    }
  };

  const trays = trayHanger(model.widget_manager);
  /** @param {HTMLElement} node @returns {HTMLElement | null} */
  const panelOf = (node) => node.closest(".jp-NotebookPanel");

  /** @param {HTMLElement} node */
  const letGo = (node) => {
    claimed.delete(node);
    const panel = panelOf(node);
    if (panel) trays.drop(panel);
    if (node.dataset.nbagentDesk !== page) return; // a newer desk has it
    delete node.dataset.nbagentDesk;
    node.querySelectorAll(".nbagent-mine, .nbagent-stale").forEach((cell) => cell.classList.remove("nbagent-mine", "nbagent-stale"));
    node.querySelectorAll(".nbagent-said").forEach((said) => said.remove());
  };

  const draw = () => {
    timer = undefined;
    if (!live || over) return;
    const mine = panelsOf(context);
    for (const node of claimed) if (!mine.includes(node)) letGo(node);
    for (const node of mine) {
      if (!claimed.has(node)) {
        claimed.add(node);
        node.dataset.nbagentDesk = page;
        cellsMove.observe(node.querySelector(".jp-WindowedPanel-viewport") ?? node, { childList: true });
      }
      markCells(node, notebook);
      const panel = panelOf(node);
      if (panel) void trays.hang(panel, model.get("tray") ?? "");
    }
    trays.sweep((panel) => mine.some((node) => panel.contains(node)));
  };
  const later = () => {
    timer ??= setTimeout(draw, MARK_EVERY);
  };
  const cellsMove = new MutationObserver(later);

  /** @param {string} run @returns {HTMLElement[]} */
  const linksOf = (run) =>
    [...claimed].flatMap((node) => /** @type {HTMLElement[]} */ ([...node.querySelectorAll(`.jp-OutputArea a[href$="-${run}"]`)]));

  /** @param {string} run */
  const settle = (run) => {
    clearTimeout(waiting.get(run));
    waiting.delete(run);
    linksOf(run).forEach((link) => link.removeAttribute("aria-busy"));
  };

  /** Say something beside the link of a run. @param {string} run @param {string} text */
  const say = (run, text) => {
    const [link] = linksOf(run);
    const home = link?.parentElement;
    if (!link || !home) return;
    const said = home.querySelector(".nbagent-said") ?? home.appendChild(document.createElement("div"));
    said.className = "nbagent-said";
    said.setAttribute("role", "status");
    said.textContent = text;
  };

  /** Give the focus back to the link of a run, if the record was written anew with the link that had it. @param {string} run */
  const refocus = (run) => setTimeout(() => {
    if (document.activeElement === document.body) linksOf(run)[0]?.focus({ preventScroll: true });
  }, MARK_EVERY);

  /** @param {MouseEvent} event */
  const clicked = (event) => {
    const link = /** @type {Element | null} */ (event.target)?.closest?.('.jp-OutputArea a[href^="#nbagent-"]');
    const [, op, run] = LINK.exec(link?.getAttribute("href") ?? "") ?? [];
    const [, goal] = JUMP.exec(link?.getAttribute("href") ?? "") ?? [];
    const node = panelsOf(context).find((mine) => mine.contains(link ?? null));
    if (live && link && node && jump(link.getAttribute("href") ?? "", node, notebook)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    if (goal && node) {
      event.preventDefault();
      event.stopImmediatePropagation();
      goTo(node, notebook, goal);
      return;
    }
    if (!live || !link || !op || !run || !node) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (waiting.has(run) || !event.isTrusted) return; // a script in an output is no person
    const drawn = cellsOf(node).find((cell) => cell.contains(link));
    const cell = drawn ? cellAt(notebook, drawn)?.getId() : undefined;
    waiting.set(run, setTimeout(() => {
      settle(run);
      say(run, "The kernel does not answer.");
    }, CLICK_PATIENCE));
    linksOf(run).forEach((each) => each.setAttribute("aria-busy", "true"));
    send({ op, run, cell });
  };

  /** @param {any} message */
  const receive = (message) => {
    if (message?.v !== DESK_VERSION || message.page !== page || over) return;
    if (message.op === "live") {
      if (!live) document.head.append(style);
      live = true;
      draw();
      for (const ms of SETTLED_AT) setTimeout(later, ms);
    } else if (message.op === "said") {
      settle(message.run);
      const index = notebook.cells.findIndex((cell) => cell.getId() === message.execute);
      const [node] = panelsOf(context);
      const ran = index >= 0 && node != null && runCell(node, index);
      if (!ran) say(message.run, message.text);
      if (!ran) refocus(message.run);
      later();
    }
  };

  const stop = () => {
    if (over) return;
    over = true;
    clearTimeout(timer);
    readies.forEach(clearTimeout);
    waiting.forEach((each) => clearTimeout(each));
    style.remove();
    cellsMove.disconnect();
    document.removeEventListener("click", clicked, true);
    document.removeEventListener("focusin", later, true);
    context.model.contentChanged?.disconnect(later);
    context.sessionContext?.statusChanged?.disconnect(kernelChanged);
    model.off("msg:custom", receive);
    model.off("change:tray", later);
    model.off("comm_live_update", stop);
    claimed.forEach(letGo);
    trays.sweep(() => false);
  };

  /** @param {unknown} _sender @param {string} status */
  const kernelChanged = (_sender, status) => {
    if (/restarting|dead|terminating/.test(status)) stop();
  };

  model.on("msg:custom", receive);
  model.on("change:tray", later);
  model.on("comm_live_update", stop); // it was alive when it was made: this is its end
  context.sessionContext?.statusChanged?.connect(kernelChanged);
  context.model.contentChanged?.connect(later);
  document.addEventListener("click", clicked, true);
  document.addEventListener("focusin", later, true);
  const readies = READY_AT.map((ms) => setTimeout(() => live || over || send({ op: "ready" }), ms));
  return stop;
}

/** The desk has no view; a front end that draws it all the same gets an empty, hidden element. @param {{el: HTMLElement}} props */
function render({ el }) {
  el.hidden = true;
}

export default { initialize, render };
