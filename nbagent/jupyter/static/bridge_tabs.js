// @ts-check
/**
 * What a page does by itself, beside the kernel's requests: it follows what another tab writes, says when the agent's cell
 * is gone, and leaves no dead view behind when the kernel goes away. Nothing that the person has not saved is ever thrown
 * away. Must not know of the comm. Read `follower`.
 *
 * @import { DocumentContext, Json, Output, SharedCell, SharedNotebook } from "./bridge_cells.js"
 */

import { replaceOutputs, writeSource } from "./bridge_cells.js";

const GONE_MS = 3000; // a cell that is moved, by hand too, or loaded anew is away for less
const STEPS_MS = 100; // one change is often made in several steps
const WIDGET = "application/vnd.jupyter.widget-view+json";
const KERNEL_GONE = new Set(["restarting", "autorestarting", "terminating", "dead"]);
const NO_CODE =
  "The agent's cell is no code cell now, so its run can't be seen or answered. Make it a code cell again (key y) to go on.";
const UNSAVED =
  "An agent is at work in this notebook in another tab. This tab has changes that are not saved, so it stays as it is and " +
  "does not show the run. To see it, go to the other tab, or reload the notebook from disk here, which drops the changes.";

/** Say something to the person in a corner of the page, once, until they close it. @param {string} text */
export function notice(text) {
  const there = [...document.querySelectorAll(".nbagent-notice span")];
  if (there.some((node) => node.textContent === text)) return;
  const box = document.createElement("div");
  box.className = "nbagent-notice";
  box.setAttribute("role", "status");
  Object.assign(box.style, {
    position: "fixed", right: "16px", bottom: "40px", zIndex: "10000", maxWidth: "420px", padding: "10px 12px",
    display: "flex", gap: "10px", alignItems: "start", borderRadius: "4px", font: "13px/1.4 sans-serif",
    background: "var(--jp-layout-color1, Canvas)", color: "var(--jp-ui-font-color1, CanvasText)",
    border: "1px solid var(--jp-border-color1, GrayText)", boxShadow: "0 2px 10px rgba(0, 0, 0, 0.25)",
  });
  const words = document.createElement("span");
  words.textContent = text;
  const close = document.createElement("button");
  close.textContent = "Close";
  close.onclick = () => box.remove();
  box.append(words, close);
  document.body.append(box);
}

/** Whether the person has the cursor in an editor or a text box of this page. */
function atWork() {
  const active = document.activeElement;
  return document.hasFocus() && !!active?.matches(".cm-content, input, textarea");
}

/**
 * Notes what is typed from now on, while the file is read; what is returned puts it back into the cells that came from the
 * file, a cell that is not among them at the end, and says whether there was anything.
 * @param {SharedNotebook} notebook @returns {() => boolean}
 */
function typing(notebook) {
  /** @type {Map<string, {source: string, cell_type: string}>} */
  const typed = new Map();
  /** @type {Map<SharedCell, () => void>} */
  const heard = new Map();
  const listen = () => {
    for (const cell of notebook.cells.filter((one) => !heard.has(one))) {
      const [id, { cell_type }] = [cell.getId(), cell];
      let before = cell.getSource();
      const note = () => {
        const source = notebook.cells.includes(cell) ? cell.getSource() : before; // outputs and metadata change too
        if (source !== before) typed.set(id, { source, cell_type });
        before = source;
      };
      heard.set(cell, note);
      cell.changed?.connect(note);
    }
  };
  listen();
  notebook.changed?.connect(listen); // the person may add a cell and write in it
  return () => {
    notebook.changed?.disconnect(listen);
    for (const [cell, note] of heard) cell.changed?.disconnect(note);
    for (const [id, { source, cell_type }] of typed) {
      const there = notebook.cells.find((cell) => cell.getId() === id);
      if (!there) notebook.insertCell(notebook.cells.length, { id, cell_type, source, metadata: { trusted: true } });
      else if (there.getSource() !== source) writeSource(there, source);
    }
    return typed.size > 0;
  };
}

/**
 * Shows in this page what another one of the same notebook has saved: `follow` soon, but not while the person writes here;
 * `ready` gives what an operation must wait for, so that it is not done on what is about to be replaced.
 * @param {DocumentContext} context
 */
export function follower(context) {
  let due = false;
  /** @type {Promise<void> | null} */
  let loading = null;
  const loadWhileDue = async () => {
    while (due) {
      due = false;
      if (context.isDisposed || context.model.collaborative || !context.revert) return; // there the tabs share one document
      if (context.model.dirty) return notice(UNSAVED);
      const typed = typing(context.model.sharedModel);
      const frames = [...document.querySelectorAll(".jp-WindowedPanel-outer")].map((frame) => ({ frame, top: frame.scrollTop }));
      try {
        await context.revert();
      } finally {
        if (typed()) notice(UNSAVED);
      }
      requestAnimationFrame(() => frames.forEach(({ frame, top }) => (frame.scrollTop = top)));
    }
  };
  const load = () => (loading ??= loadWhileDue().catch(() => {}).finally(() => (loading = null)));
  const loadWhenLeft = () => {
    const left = () => setTimeout(() => due && (atWork() ? loadWhenLeft() : load()));
    document.addEventListener("focusout", left, { once: true });
  };
  return {
    follow() {
      const waits = due;
      due = true;
      if (loading) return;
      if (!atWork()) load();
      else if (!waits) loadWhenLeft();
    },
    ready: () => (due || loading ? load() : null),
  };
}

/**
 * Watch the agent's cell while its run lives: call `gone` once when it is there no more. Where the person has taken the live
 * view out of it (cleared its output, made it another kind of cell and back) it is put back: the run may wait for an answer.
 * Where the run goes on `beside` a cell that has ended, one that runs anew gets the view from the kernel.
 * @param {DocumentContext} context
 * @param {string} cell
 * @param {{gone: () => void, beside: () => boolean}} run
 * @param {AbortSignal} stopped
 */
export function watchCell(context, cell, { gone, beside }, stopped) {
  const { changed } = context.model.sharedModel;
  if (!changed) return;
  /** @type {Output[]} */
  let view = [];
  let seen = "there";
  /** @type {SharedCell | undefined} */
  let heard;
  /** @type {SharedCell | undefined} */
  let back;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const own = () => context.model.sharedModel.cells.find((one) => one.getId() === cell);
  const found = () => {
    const now = own();
    if (now?.cell_type !== "code") return now ? "other" : "gone";
    const outputs = now.getOutputs();
    const shown = outputs.filter((output) => WIDGET in (output.data ?? {}));
    if (outputs.some((output) => output.output_type !== "stream")) view = shown; // none: it is the record by now
    return view.length && !shown.length ? "empty" : "there";
  };
  const settle = () => {
    if (stopped.aborted || context.isDisposed) return;
    if (seen === "gone") return gone();
    if (seen === "other") return notice(NO_CODE);
    back = own();
    if (!back) return;
    if (beside() && back.executionState === "running") {
      seen = ""; // looked at again when that ends: it may not have come to its turn
      return;
    }
    if (seen === "empty") replaceOutputs(back, [...view, ...back.getOutputs()]);
    if (view.length && !beside()) back.executionState = "running"; // the page took it as never run
  };
  const look = () => {
    const now = own();
    if (now && now !== heard) {
      heard?.changed?.disconnect(look);
      heard = now;
      now.changed?.connect(look);
    }
    const state = found();
    if (state === seen) return;
    seen = state;
    clearTimeout(timer);
    timer = setTimeout(settle, state === "gone" ? GONE_MS : STEPS_MS);
  };
  look();
  changed.connect(look);
  stopped.addEventListener("abort", () => {
    clearTimeout(timer);
    changed.disconnect(look);
    heard?.changed?.disconnect(look);
    if (back?.executionState === "running" && !context.isDisposed) back.executionState = "idle";
  });
}

/**
 * When the kernel goes away, put `last.outputs` in the place of the live view of `last.cell`, whose buttons are dead.
 * @param {DocumentContext} context
 * @param {() => {cell: string, outputs: Output[], number: number | null} | null} last
 * @param {AbortSignal} stopped
 */
export function watchKernel(context, last, stopped) {
  const signal = context.sessionContext?.statusChanged;
  if (!signal) return;
  /** @param {unknown} _sender @param {string} status */
  const look = (_sender, status) => {
    const left = KERNEL_GONE.has(status) && last();
    const cell = left && context.model.sharedModel.cells.find((one) => one.getId() === left.cell);
    if (!left || !cell || !cell.getOutputs().some((output) => WIDGET in (output.data ?? {}))) return;
    replaceOutputs(cell, left.outputs);
    cell.execution_count = left.number;
  };
  signal.connect(look);
  stopped.addEventListener("abort", () => signal.disconnect(look));
}
