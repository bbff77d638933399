// @ts-check
/**
 * The page's half of the bridge: plays the kernel's operations on the open document through its shared model.
 *
 * It must not know of agents, models or approvals, and decides nothing: the kernel answers for safety. Every request
 * that carries an id is answered by that id. One page writes: requests name the page that holds the lease, and all
 * other pages stay silent. Read `operations` first; the kernel's half is nbagent/jupyter/bridge.py.
 *
 * @typedef {Record<string, any>} Json
 * @typedef {{output_type: string, name?: string, text?: string | string[], data?: Record<string, any>} & Json} Output
 *
 * @typedef {object} SharedCell
 * @property {string} cell_type
 * @property {number | null} execution_count
 * @property {string} [executionState]
 * @property {() => string} getId
 * @property {() => string} getSource
 * @property {(source: string) => void} setSource
 * @property {(start: number, end: number, value?: string) => void} [updateSource]
 * @property {() => Json} getMetadata
 * @property {() => Output[]} getOutputs
 * @property {(outputs: Output[]) => void} setOutputs
 * @property {() => void} clearOutputs
 * @property {(start: number, end: number, outputs: Output[]) => void} updateOutputs
 * @property {(index: number, text: string) => void} [appendStreamOutput]
 * @property {(index: number, start: number) => void} [removeStreamOutput]
 *
 * @typedef {object} SharedNotebook
 * @property {SharedCell[]} cells
 * @property {(index: number, cell: Json) => SharedCell} insertCell
 * @property {(from: number, to: number) => void} moveCell
 * @property {(index: number) => void} deleteCell
 *
 * @typedef {object} DocumentContext
 * @property {string} path
 * @property {() => Promise<void>} save
 * @property {{sharedModel: SharedNotebook}} model
 * @property {{session: {kernel: {interrupt: () => Promise<void>} | null} | null}} [sessionContext]
 *
 * @typedef {object} Model
 * @property {(content: Json) => void} send
 * @property {(name: string, callback: (content: any) => void) => void} on
 * @property {(name: string, callback: (content: any) => void) => void} off
 * @property {{context?: DocumentContext}} [widget_manager]
 *
 * @typedef {{next: number, asked: number}} Run  The piece that must come next, and when a resend was last asked for.
 */

const VERSION = 1;
const READ_LIMIT = 4_000_000; // characters of outputs in one answer: the server's websocket takes 10 MiB at most
const ASK_AGAIN_MS = 500;
const SETTLE_MS = 1500; // in which a new output finds its height

/** A failure that the kernel turns into a sentence by its `code`. */
class Refusal extends Error {
  /** @param {string} code @param {string} message @param {Json} [more] */
  constructor(code, message, more = {}) {
    super(message);
    this.code = code;
    this.more = more;
  }
}

/** @param {SharedNotebook} notebook @param {string} id */
function indexOf(notebook, id) {
  const index = notebook.cells.findIndex((cell) => cell.getId() === id);
  if (index < 0) throw new Refusal("unknown_cell", `no cell ${id}`, { cell: id });
  return index;
}

/** @param {SharedNotebook} notebook @param {string} id */
function cellOf(notebook, id) {
  return /** @type {SharedCell} */ (notebook.cells[indexOf(notebook, id)]);
}

/** @param {SharedNotebook} notebook @param {string} id */
function codeCellOf(notebook, id) {
  const cell = cellOf(notebook, id);
  if (cell.cell_type !== "code") throw new Refusal("not_code", `cell ${id} is not a code cell`, { cell: id });
  return cell;
}

/** @param {SharedCell} cell @param {number} index @returns {Json} */
function describe(cell, index) {
  const number = cell.cell_type === "code" ? (cell.execution_count ?? null) : null;
  const { cell_type: type } = cell;
  return { id: cell.getId(), type, source: cell.getSource(), index, number, metadata: cell.getMetadata() };
}

/** @param {SharedNotebook} notebook @param {string} id */
function describeById(notebook, id) {
  const index = indexOf(notebook, id);
  return describe(/** @type {SharedCell} */ (notebook.cells[index]), index);
}

/** @param {SharedNotebook} notebook @param {{id: string, where: string}} anchor */
function placeOf(notebook, anchor) {
  return indexOf(notebook, anchor.id) + (anchor.where === "before" ? 0 : 1);
}

/** Refuse a change to a cell whose source is no longer what the kernel read. @param {SharedCell} cell @param {Json} request */
function checkUnchanged(cell, request) {
  if (cell.getSource() === request.expected) return;
  throw new Refusal("changed", `cell ${request.cell} was changed`, { cell: request.cell });
}

/** Write only what differs, so that the person's cursor in the rest of the cell stays. @param {SharedCell} cell @param {string} source */
function writeSource(cell, source) {
  const old = cell.getSource();
  if (!cell.updateSource) return cell.setSource(source);
  let start = 0;
  while (start < old.length && start < source.length && old[start] === source[start]) start += 1;
  if (start > 0 && /[\ud800-\udbff]/.test(old[start - 1] ?? "")) start -= 1; // never cut a surrogate pair
  cell.updateSource(start, old.length, source.slice(start));
}

/** @param {Output} output */
function sizeOf(output) {
  let size = 100;
  for (const value of Object.values(output.data ?? {})) {
    size += typeof value === "string" ? value.length : JSON.stringify(value).length;
  }
  return size + String(output.text ?? "").length + String(output.traceback ?? "").length;
}

/** Leave out what would not fit in one message, and say so. @param {Output[]} outputs @returns {Output[]} */
function fitting(outputs) {
  let room = READ_LIMIT;
  return outputs.map((output) => {
    const size = sizeOf(output);
    if (size <= room) {
      room -= size;
      return output;
    }
    const kinds = output.data ? Object.keys(output.data).join(", ") : output.output_type;
    const text = `[${kinds}: ${size} characters, too large to read back]`;
    return { output_type: "display_data", data: { "text/plain": text }, metadata: {} };
  });
}

/** Play one patch on a cell's outputs; false if they are not what the patch was made for.
 * @param {SharedCell} cell @param {Json} patch @returns {boolean} */
function applyPatch(cell, patch) {
  const outputs = cell.getOutputs();
  const base = patch.base < 0 ? outputs.length : patch.base;
  if (outputs.length !== base) return false;
  if (patch.base < 0 || patch.keep < base) {
    // an output in the middle may not be replaced in place: page and document would diverge
    const all = [...outputs.slice(0, patch.keep), ...patch.add];
    cell.clearOutputs();
    if (all.length) cell.setOutputs(all);
    return true;
  }
  if (patch.drop || patch.text) {
    const last = outputs[base - 1];
    if (!last || last.output_type !== "stream" || typeof last.text !== "string") return false;
    const kept = last.text.length - patch.drop;
    if (cell.appendStreamOutput && (cell.removeStreamOutput || !patch.drop)) {
      if (patch.drop) cell.removeStreamOutput?.(base - 1, kept);
      if (patch.text) cell.appendStreamOutput(base - 1, patch.text);
    } else {
      cell.clearOutputs();
      cell.setOutputs([...outputs.slice(0, -1), { ...last, text: last.text.slice(0, kept) + patch.text }]);
    }
  }
  if (patch.add.length) cell.updateOutputs(base, base, patch.add);
  return true;
}

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
function watched(notebook, index, added) {
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
function keepInView(cell) {
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

/**
 * The operations by name; each takes the request and returns the result, or throws a `Refusal`.
 * @param {DocumentContext} context
 * @param {Map<string, Run>} runs
 * @param {(run: string, cell: string) => void} askAgain
 * @returns {Record<string, (request: Json) => any>}
 */
function operations(context, runs, askAgain) {
  const notebook = () => context.model.sharedModel;
  /** @type {Set<string>} */
  const added = new Set();
  return {
    ping: () => ({}),
    list: () => ({ cells: notebook().cells.map(describe) }),
    read(request) {
      const cell = cellOf(notebook(), request.cell);
      const wanted = cell.cell_type === "code" && request.outputs !== false;
      const outputs = wanted ? fitting(cell.getOutputs()) : [];
      return { cell: { ...describeById(notebook(), request.cell), outputs } };
    },
    insert(request) {
      const { cell: id, cell_type, source } = request;
      if (!notebook().cells.some((cell) => cell.getId() === id)) {
        // cells without `trusted` show widgets as text and drop styles
        const value = { id, cell_type, source, metadata: { trusted: true } };
        notebook().insertCell(placeOf(notebook(), request.anchor), value);
      }
      added.add(id);
      return { cell: describeById(notebook(), id) };
    },
    edit(request) {
      const cell = cellOf(notebook(), request.cell);
      if (cell.getSource() !== request.source) {
        checkUnchanged(cell, request);
        writeSource(cell, request.source);
      }
      return { cell: describeById(notebook(), request.cell) };
    },
    delete(request) {
      const known = notebook().cells.some((cell) => cell.getId() === request.cell);
      if (!known && request.retry) return {}; // done by the first try, whose answer was lost
      const index = indexOf(notebook(), request.cell);
      checkUnchanged(/** @type {SharedCell} */ (notebook().cells[index]), request);
      notebook().deleteCell(index);
      return {};
    },
    move(request) {
      const from = indexOf(notebook(), request.cell);
      const place = placeOf(notebook(), request.anchor);
      const to = from < place ? place - 1 : place;
      if (from !== to) notebook().moveCell(from, to);
      return { cell: describeById(notebook(), request.cell) };
    },
    begin(request) {
      const cell = codeCellOf(notebook(), request.cell);
      cell.clearOutputs();
      cell.execution_count = null;
      cell.executionState = "running";
      runs.set(request.run, { next: 0, asked: 0 });
      return {};
    },
    outputs(request) {
      const cell = codeCellOf(notebook(), request.cell);
      const run = runs.get(request.run) ?? { next: -1, asked: 0 };
      runs.set(request.run, run);
      const whole = request.patch.base < 0;
      if ((whole || request.seq === run.next) && applyPatch(cell, request.patch)) {
        run.next = request.seq + 1;
        return {};
      }
      if (whole || request.seq < run.next) return {}; // seen before
      run.next = -1; // nothing fits until a snapshot comes
      if (Date.now() - run.asked > ASK_AGAIN_MS) {
        run.asked = Date.now();
        askAgain(request.run, request.cell);
      }
      return {};
    },
    end(request) {
      const cell = codeCellOf(notebook(), request.cell);
      const run = runs.get(request.run);
      if (run?.next !== request.seq || cell.getOutputs().length !== request.count) return { gap: true };
      runs.delete(request.run);
      cell.execution_count = request.number;
      cell.executionState = "idle";
      return { gap: false };
    },
    record(request) {
      const cell = codeCellOf(notebook(), request.cell);
      const seen = watched(notebook(), indexOf(notebook(), request.cell), added);
      cell.clearOutputs();
      cell.setOutputs(request.outputs);
      seen.forEach(keepInView);
      if (request.number !== null) cell.execution_count = request.number; // a save in mid-run would store null
      return {};
    },
    async save() {
      await context.save();
      return {};
    },
    async interrupt() {
      const kernel = context.sessionContext?.session?.kernel;
      if (!kernel) throw new Refusal("no_kernel", "this page has no connection to the kernel");
      await kernel.interrupt();
      return {};
    },
  };
}

/** @param {{model: Model}} props */
function initialize({ model }) {
  const page = crypto.randomUUID?.() ?? String(Math.random()).slice(2); // randomUUID needs a secure context
  const context = model.widget_manager?.context;
  const hasDocument = typeof context?.model?.sharedModel?.insertCell === "function";
  /** @type {Map<string, Run>} */
  const runs = new Map();
  /** @param {Json} content */
  const send = (content) => model.send({ v: VERSION, page, ...content });
  const perform = hasDocument
    ? operations(/** @type {DocumentContext} */ (context), runs, (run, cell) => send({ op: "resend", run, cell }))
    : { ping: () => ({}) };

  /** @param {Json} request */
  const hello = (request) => ({
    path: context?.path ?? "",
    document: hasDocument,
    own_cell: hasDocument ? ownCell(/** @type {DocumentContext} */ (context).model.sharedModel, request.cell) : null,
    interactive: true,
    front_end: frontEnd(),
    running: hasDocument && ownCell(context.model.sharedModel, null) === request.cell, // in this tab
  });

  /** @param {Json} request */
  const answer = async (request) => {
    /** @type {Json} */
    let reply;
    try {
      const operation = request.op === "hello" ? hello : /** @type {Record<string, any>} */ (perform)[request.op];
      if (!operation) throw new Refusal("unknown_op", `this page can't do ${request.op}`);
      reply = { ok: true, result: await operation(request) };
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
    if (request.op === "hello" || request.page === page) void answer(request);
  };
  const leave = () => send({ op: "bye" });
  model.on("msg:custom", receive);
  window.addEventListener("pagehide", leave);
  send({ op: "ready" });
  return () => {
    window.removeEventListener("pagehide", leave);
    model.off("msg:custom", receive);
  };
}

/** The bridge has no view; a front end that draws it all the same gets an empty, hidden element. @param {{el: HTMLElement}} props */
function render({ el }) {
  el.hidden = true;
}

export default { initialize, render };
