// @ts-check
/**
 * The items of a run, patched in place, and the messages that they come by. Read `stream`, then `apply`.
 *
 * @import { Message, Model, Operation } from "./view.js"
 */
import { make } from "./dom.js";

const SNAPSHOT_WAITS = [1500, 4000, 10000]; // ms: a request may be lost, or wait behind synchronous code

/**
 * Carry over which folds the person has opened or closed.
 * @param {Element} before
 * @param {ParentNode} after
 */
function keepFolds(before, after) {
  for (const fold of before.querySelectorAll("details[data-touched]")) {
    const name = fold.getAttribute("data-fold") ?? "";
    const same = after.querySelector(`details[data-fold="${CSS.escape(name)}"]`);
    if (same instanceof HTMLDetailsElement && fold instanceof HTMLDetailsElement) {
      same.open = fold.open;
      same.dataset.touched = "1";
    }
  }
}

/**
 * Carry over how far the person has scrolled the boxes of an item that is drawn anew, and which of them has the focus.
 * @param {Element} before
 * @returns {(after: ParentNode) => void} to be called once the new one stands in its place
 */
function keepScroll(before) {
  const boxes = [...before.querySelectorAll("[data-scroll]")].map((box) => ({
    name: CSS.escape(box.getAttribute("data-scroll") ?? ""), top: box.scrollTop, focus: box === document.activeElement,
  }));
  return (after) => boxes.forEach(({ name, top, focus }) => {
    const same = after.querySelector(`[data-scroll="${name}"]`);
    if (same && top) same.scrollTop = top;
    if (focus && same instanceof HTMLElement) same.focus({ preventScroll: true });
  });
}

/**
 * The list of items: patched in place, streaming text only ever appended to; below it the to-do list, of which there is one.
 * @param {HTMLElement} list
 * @param {HTMLElement} todos
 */
export function timeline(list, todos) {
  /** @type {Map<string, Element>} */
  const items = new Map();
  const box = make("div", "nbagent-todobox", todos);
  const told = make("div", "nbagent-sr", todos);
  told.setAttribute("aria-live", "polite");
  /** @param {string} html @param {string} text what is said of it to who does not see it */
  const todo = (html, text) => {
    const fresh = parse(html);
    const top = box.querySelector("ol")?.scrollTop ?? 0;
    keepFolds(box, fresh);
    box.replaceChildren(fresh);
    if (told.textContent !== text) told.textContent = text;
    const steps = box.querySelector("ol");
    const now = steps?.querySelector("[aria-current]");
    if (!(steps instanceof HTMLElement)) return;
    steps.scrollTop = top;
    if (!(now instanceof HTMLElement)) return; // of a list that is too long to be seen whole, what is done now is seen
    const below = now.offsetTop + now.offsetHeight - steps.offsetTop - steps.clientHeight;
    if (below > steps.scrollTop) steps.scrollTop = below;
  };
  /** @param {string} html */
  const parse = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  };
  /** @param {Element | undefined} item @param {string} name */
  const part = (item, name) => // among the children first: a search would walk through all the text before the tail
    [...(item?.children ?? [])].find((c) => c.getAttribute("data-part") === name) ?? item?.querySelector(`[data-part="${name}"]`);
  /** @param {Operation} operation */
  const apply = (operation) => {
    const { op, key, html = "", tail = "", text = "" } = operation;
    const item = items.get(key);
    if (op === "put") {
      const fresh = parse(html).firstElementChild;
      if (!fresh) return;
      if (item) keepFolds(item, fresh);
      const scrolled = item && keepScroll(item);
      item ? item.replaceWith(fresh) : list.append(fresh);
      scrolled?.(fresh);
      items.set(key, fresh);
    } else if (op === "more") {
      part(item, "blocks")?.append(parse(html));
      part(item, "tail")?.replaceChildren(document.createTextNode(tail));
    } else if (op === "add") {
      const open = part(item, "tail");
      if (open?.lastChild instanceof Text) open.lastChild.appendData(text);
      else open?.append(text);
    } else if (op === "set") {
      const target = part(item, operation.part ?? "");
      if (target) target.textContent = text;
    } else if (op === "todos") todo(html, text);
    else if (op === "clear") clear();
  };
  const clear = () => void (items.clear(), list.replaceChildren());
  const empty = () => {
    clear();
    todo("", "");
  };
  return { apply, empty };
}

/**
 * Takes messages in order; a gap makes it ask for everything again.
 * @param {Model} model
 * @param {ReturnType<typeof timeline>} lines
 * @param {(seconds: number) => void} sync
 */
export function stream(model, lines, sync) {
  let seq = -1; // -1: nothing is known yet, a snapshot was asked for
  let tries = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waiting;
  /** @type {Operation[]} */
  let queue = [];
  let scheduled = false;
  const draw = () => {
    scheduled = false;
    const operations = queue;
    queue = [];
    operations.forEach(lines.apply);
  };
  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    if (document.hidden) setTimeout(draw, 250); // no frames are drawn in a hidden tab
    else requestAnimationFrame(draw);
  };
  const ask = () => {
    seq = -1;
    clearTimeout(waiting);
    model.send({ op: "snapshot" });
    if (tries < SNAPSHOT_WAITS.length) waiting = setTimeout(ask, SNAPSHOT_WAITS[tries++]);
  };
  return {
    ask,
    /** @param {Message} message */
    take(message) {
      if (message.op === "snapshot") {
        if (seq >= 0 && message.seq === seq) return; // meant for another view of this model
        clearTimeout(waiting);
        tries = 0;
        seq = message.seq ?? 0;
        queue = [];
        lines.empty();
        message.ops?.forEach(lines.apply);
        if (typeof message.elapsed === "number") sync(message.elapsed);
      } else if (message.op === "patch") {
        if (seq < 0) return;
        if (message.seq !== seq + 1) return ask();
        seq += 1;
        queue.push(...(message.ops ?? []));
        schedule();
      } else if (message.op === "aside" && seq >= 0) { // not kept, so not counted: lost, it is said again a second later
        queue.push(...(message.ops ?? []));
        schedule();
      }
    },
    stop: () => clearTimeout(waiting),
  };
}
