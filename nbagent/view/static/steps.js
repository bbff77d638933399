// @ts-check
/**
 * Keys of a stepped run, and a sign of life of the page that shows it. Read `steps`.
 *
 * @import { Model } from "./view.js"
 */

const HERE_EVERY = 30_000; // ms

/** @type {Record<string, string>} */
const KEYS = { n: "next", t: "turn", p: "play", ArrowLeft: "back", ArrowRight: "forward" };

const BREAKS = ".nbagent-stepbreaks";

/**
 * While the view has the panel of a stepped run, its keys press its buttons, anywhere in the view but in boxes and cards.
 * @param {HTMLElement} root
 * @param {Model} model
 * @param {(control: HTMLElement) => void} click
 * @param {AbortController} stopped
 */
export function steps(root, model, click, stopped) {
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const name = KEYS[event.key];
    const box = target?.closest(BREAKS);
    const next = box?.closest(".nbagent-steps")?.querySelector(".nbagent-stepnext");
    if (event.key === "Escape" && next instanceof HTMLElement) next.focus();
    if (!name || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || event.isComposing) return;
    if (target?.closest("input, textarea, select, .nbagent-card")) return;
    const found = root.querySelector(`.nbagent-steps .nbagent-step${name}`);
    if (!(found instanceof HTMLElement)) return;
    event.preventDefault();
    if (!event.repeat) click(found);
  };
  /** @param {Event} event */
  const onChange = (event) => {
    const box = event.target instanceof HTMLInputElement && event.target.closest(BREAKS) ? event.target : null;
    if (box) model.send({ op: "breaks", text: box.value }); // what the widget syncs may come after the next click
  };
  const { signal } = stopped;
  root.addEventListener("keydown", onKey, { capture: true, signal });
  root.addEventListener("change", onChange, { capture: true, signal });
  const timer = setInterval(() => {
    if (root.querySelector(".nbagent-steps")) model.send({ op: "here" });
  }, HERE_EVERY);
  stopped.signal.addEventListener("abort", () => clearInterval(timer));
}
