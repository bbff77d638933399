// @ts-check
/**
 * What must work while synchronous code keeps the kernel from hearing a click: Stop, Interrupt cell, and the question
 * whether to go on waiting for a call. The page owns the timers, and interrupts the kernel by its own connection.
 * Read `interrupter`, then `patience`.
 *
 * @import { Head, Model } from "./view.js"
 */
import { clock, make } from "./dom.js";

const ANSWER_WAIT = 300; // ms in which the kernel must have seen a click
const GONE = new Set(["restarting", "autorestarting", "terminating", "dead"]);

/**
 * Stop (of the run) and Interrupt cell (of what runs now) are first said to the kernel. If it does not answer, it is
 * busy, and gets an interrupt; the message, which it then finds, tells it which of the two was meant.
 * @param {Model} model
 */
export function interrupter(model) {
  /** @type {Map<string, ReturnType<typeof setTimeout>>} */
  const timers = new Map();
  /** @param {string} what */
  const seen = (what) => clearTimeout(timers.get(what));
  /** @param {string} what */
  const clicked = (what) => {
    seen(what);
    timers.set(what, setTimeout(() => {
      const kernel = model.widget_manager?.context?.sessionContext?.session?.kernel;
      if (typeof kernel?.interrupt === "function") kernel.interrupt();
    }, ANSWER_WAIT));
  };
  return {
    seen,
    stop: () => clicked("stop"),
    spare() {
      if (!model.get("head")?.call) return; // it has just ended: the interrupt would hit the run
      model.send({ op: "spare" });
      clicked("spare");
    },
    end: () => timers.forEach((timer) => clearTimeout(timer)),
  };
}

/**
 * When a call runs longer than the limit, ask whether to go on waiting. Nothing is ended by itself.
 * @param {Model} model
 * @param {HTMLElement} parent
 * @param {() => number} now seconds since the run began
 * @param {() => void} spare interrupts what runs
 */
export function patience(model, parent, now, spare) {
  const bar = make("div", "nbagent-patience", parent);
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Still running");
  const text = make("span", "nbagent-patiencetext", bar);
  text.setAttribute("role", "status");
  const wait = make("button", "nbagent-wait", bar);
  const interrupt = make("button", "nbagent-interrupt", bar);
  wait.textContent = "Keep waiting";
  bar.hidden = true;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let waited = { key: "", asked: 0 }; // what the person said here; the kernel may not have heard it yet
  /** @type {Head["call"]} */
  let call = null;
  const hide = () => {
    if (bar.contains(document.activeElement)) parent.focus({ preventScroll: true });
    bar.hidden = true;
  };
  const look = () => {
    clearTimeout(timer);
    /** @type {Head | undefined} */
    const head = model.get("head");
    call = head?.running && !head.asking ? head.call : null;
    if (!call || !head?.limit) return hide();
    const asked = waited.key === call.key ? Math.max(waited.asked, call.asked) : call.asked;
    const left = asked + head.limit - now();
    if (left > 0) {
      hide();
      timer = setTimeout(look, Math.min(left, 3600) * 1000 + 20);
      return;
    }
    interrupt.textContent = call.cell ? "Interrupt the cell" : "Interrupt it";
    const limit = `(limit ${clock(head.limit)})`;
    text.textContent = `${call.name} has run for ${clock(now() - call.began)} ${limit}. It goes on until you interrupt it.`;
    if (bar.hidden) bar.hidden = false;
    timer = setTimeout(look, 1000); // the time goes on
  };
  wait.addEventListener("click", () => {
    if (call) {
      waited = { key: call.key, asked: now() };
      model.send({ op: "wait", key: call.key });
    }
    look();
  });
  interrupt.addEventListener("click", () => {
    if (call) waited = { key: call.key, asked: now() }; // code that goes on all the same is asked about again
    spare();
    look();
  });
  return { look, end: () => clearTimeout(timer) };
}

/**
 * Call `lost` when the kernel behind the model goes away.
 * @param {Model} model
 * @param {() => void} lost
 * @param {AbortController} stopped
 */
export function watchKernel(model, lost, stopped) {
  const signal = model.widget_manager?.context?.sessionContext?.statusChanged;
  if (typeof signal?.connect !== "function") return;
  /** @param {unknown} _sender @param {string} status */
  const changed = (_sender, status) => {
    if (GONE.has(status)) lost();
  };
  signal.connect(changed);
  stopped.signal.addEventListener("abort", () => signal.disconnect(changed));
}
