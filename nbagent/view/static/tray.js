// @ts-check
/**
 * The page's side of the tray: a bar that says how many approvals and questions wait, of all runs, and the list of them.
 * The bar is there only while something waits that the person does not see: of a run in the background, or out of sight.
 * Each page opens and closes its own; what waits is the kernel's. Read `render`, then `hidden`.
 *
 * @import { Model } from "./view.js"
 *
 * @typedef {{key: string, who: string, what: string, question: boolean, age: number, since: number, cell: string,
 *   background: boolean}} Entry `age` in seconds when the kernel said it, `since` in ms of the kernel's clock
 */
import { controls, onlyPersons } from "./controls.js";
import { isShortcut, MAC, make } from "./dom.js";
import { documentOf, drawnCell, goTo, isInSight } from "./places.js";

const LOOK_EVERY = 1000; // ms
const LOOK_AGAIN = 150; // ms after a scroll
const BUSY_AFTER = 700; // ms without an answer of the kernel
const SETTLES = 900; // ms in which a card of the run in the foreground is brought into sight by itself
const KEYS = MAC ? "⌃⌥A" : "Alt+A";

/** @param {number} seconds */
export function ageWords(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** "2 approvals and 1 question wait" @param {Entry[]} entries */
export function waitWords(entries) {
  const asked = entries.filter((entry) => entry.question).length;
  const named = [[entries.length - asked, "approval"], [asked, "question"]]
    .filter(([number]) => number)
    .map(([number, noun]) => `${number} ${noun}${number === 1 ? "" : "s"}`);
  return `${named.join(" and ")} ${entries.length === 1 ? "waits" : "wait"}`;
}

/**
 * The bar: a button that opens and closes the list, what the oldest wants, and the way to its cell.
 * @param {HTMLElement} el
 */
function makeBar(el) {
  const bar = make("div", "nbagent-traybar", el);
  const toggle = /** @type {HTMLButtonElement} */ (make("button", "nbagent-traytoggle", bar));
  toggle.type = "button";
  const count = make("span", "nbagent-traycount", toggle);
  const oldest = make("span", "nbagent-trayoldest", toggle);
  const what = make("span", "nbagent-traywhat", bar);
  const go = /** @type {HTMLButtonElement} */ (make("button", "nbagent-goto", bar));
  go.type = "button";
  go.textContent = "Go to its cell";
  const keys = make("span", "nbagent-traykeys", bar);
  keys.textContent = KEYS;
  const live = make("div", "nbagent-sr", el);
  live.setAttribute("aria-live", "polite");
  return { bar, toggle, count, oldest, what, go, keys, live };
}

/** @param {{model: Model, el: HTMLElement}} context */
function render({ model, el }) {
  const stopped = new AbortController();
  const { signal } = stopped;
  const click = onlyPersons(el, stopped);
  const parts = makeBar(el);
  /** @type {HTMLElement | null} */
  let root = null;
  /** @type {Element | null} */
  let before = null; // what had the focus when the list was opened by key
  /** @type {Map<string, number>} */
  let zeros = new Map(); // when each began to wait, by the page's own clock
  let open = false;
  let openedAt = 0;
  let outOfSight = 0; // since when something waits unseen, 0: nothing does
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @returns {Entry[]} */
  const entries = () => model.get("entries") ?? [];
  const page = documentOf(model);
  /** @param {string} key */
  const age = (key) => (performance.now() - (zeros.get(key) ?? performance.now())) / 1000;

  /** Whether nothing is to be shown: nothing waits, or only what the person sees in its own panel. */
  const hidden = () => {
    if (!entries().length) return true;
    if (open || entries().some((entry) => entry.background)) return false;
    const frame = root?.closest(".jp-NotebookPanel") ?? document;
    if (entries().every((entry) => isInSight(page, frame, entry.cell))) {
      outOfSight = 0;
      return true;
    }
    outOfSight ||= performance.now();
    return performance.now() - outOfSight < SETTLES;
  };
  const draw = () => {
    if (!root) return;
    const list = entries();
    const [first] = list;
    const none = hidden();
    const had = root.contains(document.activeElement);
    root.hidden = none;
    root.classList.toggle("nbagent-opened", open && !none);
    parts.toggle.setAttribute("aria-expanded", `${open}`);
    parts.toggle.setAttribute("aria-keyshortcuts", MAC ? "Control+Alt+A" : "Alt+A");
    if (first) {
      parts.count.textContent = waitWords(list);
      parts.oldest.textContent = `${list.length > 1 ? "oldest " : ""}${ageWords(age(first.key))}`;
      const busy = open && !root.querySelector(".nbagent-card") && performance.now() - openedAt > BUSY_AFTER;
      parts.what.classList.toggle("nbagent-traybusy", busy);
      parts.what.textContent = busy ? "The kernel is busy: the list comes when it can answer." : `${first.who.replace(/[.:]$/, "")}: ${first.what}`;
      parts.what.hidden = open && !busy; // the list says it
      parts.go.hidden = open || !drawnCell(page, root.closest(".jp-NotebookPanel") ?? document, first.cell).known;
    }
    parts.keys.textContent = open ? "Esc closes" : `${KEYS} opens`;
    const said = none || !first ? "" : `${waitWords(list)}. ${KEYS} opens the list.`;
    if (parts.live.textContent !== said) parts.live.textContent = said;
    for (const head of root.querySelectorAll(".nbagent-trayhead")) {
      const at = head.querySelector(".nbagent-age");
      const text = `waiting ${ageWords(age(head.getAttribute("data-entry") ?? ""))}`;
      if (at && at.textContent !== text) at.textContent = text;
      const go = head.querySelector(".nbagent-goto");
      const there = drawnCell(page, root.closest(".jp-NotebookPanel") ?? document, go?.getAttribute("data-cell") ?? "").known;
      if (go instanceof HTMLElement && go.hidden === there) go.hidden = !there;
    }
    if (none && had) giveBack();
  };
  const giveBack = () => {
    const cell = root?.closest(".jp-NotebookPanel")?.querySelector(".jp-Cell.jp-mod-active");
    const target = before?.isConnected ? before : cell;
    if (target instanceof HTMLElement) target.focus({ preventScroll: true });
    before = null;
  };
  const tick = () => {
    clearTimeout(timer);
    draw();
    if (entries().length && !signal.aborted) timer = setTimeout(tick, LOOK_EVERY);
  };
  const later = () => {
    if (!entries().length) return;
    clearTimeout(timer);
    timer = setTimeout(tick, LOOK_AGAIN);
  };
  const changed = () => {
    const known = zeros;
    zeros = new Map(entries().map((entry) => {
      const fresh = performance.now() - entry.age * 1000;
      return [entry.key, known.get(entry.key) ?? fresh];
    }));
    if (!entries().length) open = false;
    outOfSight = 0;
    tick();
  };
  /** @param {boolean} wanted */
  const turn = (wanted) => {
    open = wanted && entries().length > 0;
    openedAt = performance.now();
    if (open) send({ op: "open" });
    tick();
  };
  const collapse = () => {
    turn(false);
    if (root && !root.hidden && !before) parts.toggle.focus({ preventScroll: true });
    else giveBack();
  };
  /** @param {MouseEvent} event */
  const onClick = (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest(".nbagent-traytoggle")) {
      before = null;
      turn(!open);
    }
    const go = target?.closest(".nbagent-goto");
    const cell = go === parts.go ? entries()[0]?.cell : go?.getAttribute("data-cell");
    if (root && go && cell) goTo(page, root.closest(".jp-NotebookPanel") ?? document, cell, turn.bind(null, false));
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || !open) return;
    event.preventDefault();
    collapse();
  };
  /** @param {KeyboardEvent} event */
  const onShortcut = (event) => {
    const panel = root?.closest(".jp-NotebookPanel");
    if (!root || root.hidden || !event.isTrusted || !isShortcut(event)) return;
    if (panel instanceof HTMLElement && panel.offsetParent === null) return; // a notebook in another tab of the page
    const other = document.activeElement?.closest(".jp-NotebookPanel");
    if (other && other !== panel && other.querySelector(".nbagent-tray:not([hidden])")) return; // the person is in that one
    event.preventDefault();
    event.stopImmediatePropagation();
    if (open && root.contains(document.activeElement)) return collapse();
    before = root.contains(document.activeElement) ? before : document.activeElement;
    turn(true);
    const bar = root.querySelector(".nbagent-bar");
    (bar instanceof HTMLElement ? bar : parts.toggle).focus({ preventScroll: true }); // a new card takes it from there
  };
  /** @param {{op: string}} message */
  function send(message) {
    try {
      model.send(message);
    } catch {
      // its comm is closed: the page's panel was closed and opened again, and another view stands for it
    }
  }
  /** @param {{op: string, ages?: Record<string, number>}} message */
  const onMessage = (message) => {
    if (message.op !== "ages") return;
    for (const [key, seconds] of Object.entries(message.ages ?? {})) zeros.set(key, performance.now() - seconds * 1000);
    draw();
  };
  const attach = () => {
    if (signal.aborted) return;
    const outer = el.closest(".nbagent-tray");
    if (!(outer instanceof HTMLElement) || !outer.querySelector(".nbagent-asks")) return void setTimeout(attach, 50);
    root = outer;
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", "Approvals and questions that wait");
    root.addEventListener("click", onClick, { signal });
    controls(root, parts.toggle, model, { stop() {}, spare() {}, back: () => null }, click, stopped);
    root.addEventListener("keydown", onKey, { capture: true, signal }); // after those of the cards; a text box keeps its keys
    document.addEventListener("keydown", onShortcut, { capture: true, signal });
    document.addEventListener("scroll", later, { capture: true, passive: true, signal });
    changed();
    if (entries().length) send({ op: "ages" }); // of a page that was just loaded: what it knows may be old
  };
  model.on("change:entries", changed);
  model.on("msg:custom", onMessage);
  attach();
  return () => {
    stopped.abort();
    clearTimeout(timer);
    model.off("change:entries", changed);
    model.off("msg:custom", onMessage);
  };
}

export default { render };
