// @ts-check
/**
 * Cells of the open document through its shared model: found by id, described, changed. Must not know of requests'
 * ids, pages or the kernel. Read `describe`, then `applyPatch`.
 *
 * @typedef {Record<string, any>} Json
 * @typedef {{output_type: string, name?: string, text?: string | string[], data?: Record<string, any>} & Json} Output
 *
 * @typedef {object} SharedCell
 * @property {string} cell_type
 * @property {number | null} execution_count
 * @property {string} [executionState]
 * @property {Signal} [changed]
 * @property {() => string} getId
 * @property {() => string} getSource
 * @property {(source: string) => void} setSource
 * @property {(start: number, end: number, value?: string) => void} [updateSource]
 * @property {() => Json} getMetadata
 * @property {(key: string, value: any) => void} setMetadata
 * @property {(key: string) => void} deleteMetadata
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
 * @property {(change: () => void) => void} transact
 * @property {Signal} [changed]
 *
 * @typedef {{connect: (slot: (sender: any, value: any) => void) => void, disconnect: (slot: (sender: any, value: any) => void) => void}} Signal
 *
 * @typedef {object} DocumentContext
 * @property {string} path
 * @property {boolean} [isDisposed]
 * @property {() => Promise<void>} save
 * @property {() => Promise<void>} [revert]
 * @property {Signal} [pathChanged]
 * @property {{sharedModel: SharedNotebook, dirty?: boolean, collaborative?: boolean}} model
 * @property {{session: {id?: string, kernel: {interrupt: () => Promise<void>} | null} | null, statusChanged?: Signal}} [sessionContext]
 *
 * @typedef {object} Model
 * @property {(content: Json) => void} send
 * @property {(name: string, callback: (content: any) => void) => void} on
 * @property {(name: string, callback: (content: any) => void) => void} off
 * @property {{context?: DocumentContext}} [widget_manager]
 *
 * @typedef {{next: number, asked: number}} Run  The piece that must come next, and when a resend was last asked for.
 */

const READ_LIMIT = 4_000_000; // characters of outputs in one answer: the server's websocket takes 10 MiB at most

/** A failure that the kernel turns into a sentence by its `code`. */
export class Refusal extends Error {
  /** @param {string} code @param {string} message @param {Json} [more] */
  constructor(code, message, more = {}) {
    super(message);
    this.code = code;
    this.more = more;
  }
}

/** @param {SharedNotebook} notebook @param {string} id */
export function indexOf(notebook, id) {
  const index = notebook.cells.findIndex((cell) => cell.getId() === id);
  if (index < 0) throw new Refusal("unknown_cell", `no cell ${id}`, { cell: id });
  return index;
}

/** @param {SharedNotebook} notebook @param {string} id */
export function cellOf(notebook, id) {
  return /** @type {SharedCell} */ (notebook.cells[indexOf(notebook, id)]);
}

/** @param {SharedNotebook} notebook @param {string} id */
export function codeCellOf(notebook, id) {
  const cell = cellOf(notebook, id);
  if (cell.cell_type !== "code") throw new Refusal("not_code", `cell ${id} is not a code cell`, { cell: id });
  return cell;
}

/** @param {SharedCell} cell @param {number} index @returns {Json} */
export function describe(cell, index) {
  const number = cell.cell_type === "code" ? (cell.execution_count ?? null) : null;
  const { cell_type: type } = cell;
  return { id: cell.getId(), type, source: cell.getSource(), index, number, metadata: cell.getMetadata() };
}

/** @param {SharedNotebook} notebook @param {string} id */
export function describeById(notebook, id) {
  const index = indexOf(notebook, id);
  return describe(/** @type {SharedCell} */ (notebook.cells[index]), index);
}

/** @param {SharedNotebook} notebook @param {{id: string, where: string}} anchor */
export function placeOf(notebook, anchor) {
  return indexOf(notebook, anchor.id) + (anchor.where === "before" ? 0 : 1);
}

/** Refuse a change to a cell whose source is no longer what the kernel read. @param {SharedCell} cell @param {Json} request */
export function checkUnchanged(cell, request) {
  if (cell.getSource() === request.expected) return;
  throw new Refusal("changed", `cell ${request.cell} was changed`, { cell: request.cell });
}

/** Write only what differs, so that the person's cursor in the rest of the cell stays. @param {SharedCell} cell @param {string} source */
export function writeSource(cell, source) {
  const old = cell.getSource();
  if (!cell.updateSource) return cell.setSource(source);
  let start = 0;
  while (start < old.length && start < source.length && old[start] === source[start]) start += 1;
  if (start > 0 && /[\ud800-\udbff]/.test(old[start - 1] ?? "")) start -= 1; // never cut a surrogate pair
  cell.updateSource(start, old.length, source.slice(start));
}

/** Set the top-level keys of a cell's metadata; null takes one away. @param {SharedCell} cell @param {Json} [metadata] */
export function mergeMetadata(cell, metadata = {}) {
  for (const [key, value] of Object.entries(metadata)) {
    if (value !== null) cell.setMetadata(key, value);
    else if (key in cell.getMetadata()) cell.deleteMetadata(key);
  }
}

/** Outputs that are there are cleared first, and not in one transaction: else page and document diverge.
 * @param {SharedCell} cell @param {Output[]} outputs */
export function replaceOutputs(cell, outputs) {
  cell.clearOutputs();
  if (outputs.length) cell.setOutputs(outputs);
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
export function fitting(outputs) {
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
export function applyPatch(cell, patch) {
  const outputs = cell.getOutputs();
  const base = patch.base < 0 ? outputs.length : patch.base;
  if (outputs.length !== base) return false;
  if (patch.base < 0 || patch.keep < base) {
    // an output in the middle may not be replaced in place: page and document would diverge
    const all = [...outputs.slice(0, patch.keep), ...patch.add];
    replaceOutputs(cell, all);
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
      replaceOutputs(cell, [...outputs.slice(0, -1), { ...last, text: last.text.slice(0, kept) + patch.text }]);
    }
  }
  if (patch.add.length) cell.updateOutputs(base, base, patch.add);
  return true;
}
