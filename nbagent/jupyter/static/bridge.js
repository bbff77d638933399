// @ts-check
/**
 * The page's half of the bridge: plays the kernel's operations on the open document through its shared model.
 *
 * It must not know of agents, models or approvals, and decides nothing: the kernel answers for safety. Every request
 * that carries an id is answered by that id. One page writes: requests name the page that holds the lease, and all
 * other pages stay silent; they only follow what it saved. Read `initialize`, then bridge_operations.js; the kernel's half
 * is nbagent/jupyter/bridge.py.
 *
 * @import { DocumentContext, Json, SharedCell, SharedNotebook } from "./bridge_cells.js"
 *
 * @typedef {object} Model
 * @property {(content: Json) => void} send
 * @property {(name: string, callback: (content: any) => void) => void} on
 * @property {(name: string, callback: (content: any) => void) => void} off
 * @property {{context?: DocumentContext}} [widget_manager]
 */

import { Refusal } from "./bridge_cells.js";
import { operations } from "./bridge_operations.js";
import { follower, notice, watchCell, watchKernel } from "./bridge_tabs.js";

const VERSION = 1;

function frontEnd() {
  if (document.body?.dataset?.notebook) return "notebook";
  if (document.querySelector(".jp-LabShell")) return "jupyterlab";
  if (location.protocol.startsWith("vscode")) return "vscode";
  if ("google" in globalThis && /** @type {any} */ (globalThis).google?.colab) return "colab";
  return "unknown";
}

/** The cell that runs now: the one that the kernel names, else the only one that is running.
 * @param {SharedNotebook} notebook @param {string | null} named @returns {string | null} */
function ownCell(notebook, named) {
  if (named) return notebook.cells.some((cell) => cell.getId() === named) ? named : null;
  const running = notebook.cells.filter((cell) => cell.cell_type === "code" && cell.executionState === "running");
  return running.length === 1 ? /** @type {SharedCell} */ (running[0]).getId() : null;
}

/** What a page that has the document can do and watches for.
 * @param {DocumentContext} context @param {(content: Json) => void} send @param {AbortSignal} stopped */
function withDocument(context, send, stopped) {
  const notebook = () => context.model.sharedModel;
  /** @type {any} */
  let last = null;
  let watching = false;
  let beside = false; // the cell has ended, and its run goes on
  const { follow, ready } = follower(context);
  const moved = () => send({ op: "moved" });
  context.pathChanged?.connect(moved);
  stopped.addEventListener("abort", () => context.pathChanged?.disconnect(moved));
  watchKernel(context, () => last, stopped);
  return {
    ...operations(context, (run, cell) => send({ op: "resend", run, cell })),
    ready,
    /** @param {Json} request */
    hello(request) {
      const own = ownCell(notebook(), request.cell);
      beside = request.beside === true;
      if (own && own === request.cell && !watching) {
        watching = true;
        watchCell(context, own, { gone: () => send({ op: "cell-gone", cell: own }), beside: () => beside }, stopped);
      }
      const running = ownCell(notebook(), null) === request.cell; // in this tab
      return { document: true, own_cell: own, running, session: context.sessionContext?.session?.id ?? "" };
    },
    beside() {
      beside = true;
      return {};
    },
    /** @param {Json} request */
    fallback(request) {
      last = request;
      return {};
    },
    /** @param {Json} request */
    follow(request) {
      const here = context.sessionContext?.session?.id;
      if (request.session && here ? request.session === here : request.path === context.path) follow();
      return {};
    },
  };
}

/** @param {{model: Model}} props */
function initialize({ model }) {
  const page = crypto.randomUUID?.() ?? String(Math.random()).slice(2); // randomUUID needs a secure context
  const context = model.widget_manager?.context;
  const ended = new AbortController();
  /** @param {Json} content */
  const send = (content) => model.send({ v: VERSION, page, path: context?.path ?? "", ...content });
  const { ready, ...perform } = {
    ready: () => /** @type {Promise<void> | null} */ (null),
    ping: () => ({}),
    hello: () => ({ document: false, own_cell: null, running: false }),
    /** @param {Json} request */
    notice(request) {
      notice(String(request.text));
      return {};
    },
    ...(context && typeof context.model?.sharedModel?.insertCell === "function" && withDocument(context, send, ended.signal)),
  };

  /** @param {Json} request */
  const answer = async (request) => {
    /** @type {Json} */
    let reply;
    try {
      const operation = Object.hasOwn(perform, request.op) && /** @type {Record<string, any>} */ (perform)[request.op];
      if (!operation) throw new Refusal("unknown_op", `this page can't do ${request.op}`);
      const waits = request.page === page && ready();
      if (waits) await waits;
      const result = await operation(request);
      const about = request.op === "hello" ? { path: context?.path ?? "", interactive: true, front_end: frontEnd() } : {};
      reply = { ok: true, result: { ...about, ...result } };
    } catch (error) {
      const known = error instanceof Refusal;
      reply = { ok: false, error: String(known ? error.message : error), code: known ? error.code : "failed" };
      if (known) reply.more = error.more;
    }
    if (request.id) send({ id: request.id, ...reply });
  };

  /** @param {any} request */
  const receive = (request) => {
    if (!request || request.v !== VERSION || typeof request.op !== "string") return;
    const others = request.op === "follow" && request.except !== page;
    if (request.op === "hello" || others || request.page === page) void answer(request);
  };
  const leave = () => send({ op: "bye" });
  model.on("msg:custom", receive);
  window.addEventListener("pagehide", leave);
  send({ op: "ready" });
  return () => {
    ended.abort();
    window.removeEventListener("pagehide", leave);
    model.off("msg:custom", receive);
  };
}

/** The bridge has no view; a front end that draws it all the same gets an empty, hidden element. @param {{el: HTMLElement}} props */
function render({ el }) {
  el.hidden = true;
}

export default { initialize, render };
