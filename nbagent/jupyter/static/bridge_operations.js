// @ts-check
/**
 * The operations that the kernel asks for, by name, on the open document. Each does the same when it is asked for twice.
 *
 * Must not know of the comm or of other pages. Read `operations`; the same for nbclient is nbagent/headless/document.py.
 *
 * @import { DocumentContext, Json, Output } from "./bridge_cells.js"
 *
 * @typedef {{next: number, asked: number}} Run  The piece that must come next, and when a resend was last asked for.
 */

import { Refusal, applyPatch, cellOf, checkUnchanged, codeCellOf, describe, describeById, fitting, indexOf, mergeMetadata,
  placeOf, replaceOutputs, writeSource } from "./bridge_cells.js";
import { keepInView, watched } from "./bridge_view.js";

const ASK_AGAIN_MS = 500;
const SAVE_MS = 20_000; // the kernel waits longer
const LOOK_MS = 300;
const LONG_MS = 2000; // what runs as long may see the page reloaded: by then its cell must be in the file

/** Saves, one time after the other: a second save at the same time would find that the file has changed.
 * @param {DocumentContext} context @returns {() => Promise<void>} */
function saver(context) {
  /** @type {Promise<void>} */
  let last = Promise.resolve();
  return () => (last = last.catch(() => {}).then(() => saveNow(context)));
}

/** Save; where the person is asked what to do about the file, that is an answer too. A dialog that was open before it
 * is about something else: behind it the save goes on, or its own question waits. @param {DocumentContext} context */
async function saveNow(context) {
  const before = new Set(document.querySelectorAll(".jp-Dialog"));
  const asks = () => new Refusal("not_saved", "the page asks the person what to do about the file");
  const end = Date.now() + SAVE_MS;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setInterval(() => {
      const asked = [...document.querySelectorAll(".jp-Dialog")].some((dialog) => !before.has(dialog));
      if (asked) reject(asks());
      else if (Date.now() > end) reject(new Refusal("save_late", "the notebook was not saved in time"));
    }, LOOK_MS);
  });
  const saved = context.save().catch((error) => {
    throw /Modal/.test(error?.name ?? error) ? asks() : error; // JupyterLab's ModalCancelError, ModalDuplicateError
  });
  saved.catch(() => {}); // what it says after it was late interests nobody
  try {
    await Promise.race([saved, late]);
  } finally {
    clearInterval(timer);
  }
}

/**
 * Each takes the request and returns the result, or throws a `Refusal`.
 * @param {DocumentContext} context
 * @param {(run: string, cell: string) => void} askAgain
 * @returns {Record<string, (request: Json) => any>}
 */
export function operations(context, askAgain) {
  const save = saver(context);
  return { ...cellOperations(context), ...outputOperations(context, askAgain, save), ...documentOperations(context, save) };
}

/** @param {DocumentContext} context @returns {Record<string, (request: Json) => any>} */
function cellOperations(context) {
  const notebook = () => context.model.sharedModel;
  return {
    list: () => ({ cells: notebook().cells.map(describe) }),
    read(request) {
      const cell = cellOf(notebook(), request.cell);
      const wanted = cell.cell_type === "code" && request.outputs !== false;
      const outputs = wanted ? fitting(cell.getOutputs()) : [];
      return { cell: { ...describeById(notebook(), request.cell), outputs } };
    },
    insert(request) {
      const { cell: id, cell_type, source, metadata } = request;
      const there = notebook().cells.some((cell) => cell.getId() === id);
      if (there && !request.retry) throw new Refusal("exists", `there is a cell ${id}`, { cell: id });
      if (!there) {
        // cells without `trusted` show widgets as text and drop styles
        const given = Object.entries({ trusted: true, ...metadata }).filter(([, value]) => value !== null);
        const value = { id, cell_type, source, metadata: Object.fromEntries(given) };
        notebook().insertCell(placeOf(notebook(), request.anchor), value);
      }
      return { cell: describeById(notebook(), id) };
    },
    edit(request) {
      const cell = cellOf(notebook(), request.cell);
      const written = cell.getSource() === request.source;
      if (!written) checkUnchanged(cell, request);
      notebook().transact(() => {
        if (!written) writeSource(cell, request.source);
        mergeMetadata(cell, request.metadata);
      });
      return { cell: describeById(notebook(), request.cell) };
    },
    delete(request) {
      const known = notebook().cells.some((cell) => cell.getId() === request.cell);
      if (!known && request.retry) return {}; // done by the first try, whose answer was lost
      checkUnchanged(cellOf(notebook(), request.cell), request);
      notebook().deleteCell(indexOf(notebook(), request.cell));
      return {};
    },
    move(request) {
      const from = indexOf(notebook(), request.cell);
      const place = placeOf(notebook(), request.anchor);
      const to = from < place ? place - 1 : place;
      if (from !== to) notebook().moveCell(from, to);
      return { cell: describeById(notebook(), request.cell) };
    },
    set_metadata(request) {
      const cell = cellOf(notebook(), request.cell);
      notebook().transact(() => mergeMetadata(cell, request.metadata));
      return { cell: describeById(notebook(), request.cell) };
    },
  };
}

/**
 * @param {DocumentContext} context
 * @param {(run: string, cell: string) => void} askAgain
 * @param {() => Promise<void>} save
 * @returns {Record<string, (request: Json) => any>}
 */
function outputOperations(context, askAgain, save) {
  const notebook = () => context.model.sharedModel;
  /** @type {Map<string, Run>} */
  const runs = new Map();
  return {
    set_outputs(request) {
      const cell = codeCellOf(notebook(), request.cell);
      replaceOutputs(cell, request.outputs);
      cell.execution_count = request.number;
      return { cell: { ...describeById(notebook(), request.cell), outputs: fitting(cell.getOutputs()) } };
    },
    begin(request) {
      const cell = codeCellOf(notebook(), request.cell);
      cell.clearOutputs();
      cell.execution_count = null;
      cell.executionState = "running";
      runs.set(request.run, { next: 0, asked: 0 });
      setTimeout(() => runs.has(request.run) && !context.isDisposed && void save().catch(() => {}), LONG_MS);
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
      const gap = run?.next !== request.seq || cell.getOutputs().length !== request.count;
      if (gap && !request.last) return { gap };
      runs.delete(request.run);
      cell.execution_count = request.number;
      cell.executionState = "idle";
      return { gap };
    },
  };
}

/** @param {DocumentContext} context @param {() => Promise<void>} save @returns {Record<string, (request: Json) => any>} */
function documentOperations(context, save) {
  const notebook = () => context.model.sharedModel;
  return {
    ping: () => ({}),
    record(request) {
      const cell = codeCellOf(notebook(), request.cell);
      const seen = watched(notebook(), indexOf(notebook(), request.cell), new Set(request.added));
      replaceOutputs(cell, request.outputs);
      seen.forEach(keepInView);
      if (request.number !== null) cell.execution_count = request.number; // a save in mid-run would store null
      return {};
    },
    async save() {
      await save();
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
