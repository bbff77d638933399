// @ts-check
/**
 * Where the view stands in the notebook's window: its end stays on screen as it grows, and a card that has just come is
 * brought there once. Who types elsewhere is not moved: a sign at the edge says that there is a question. Read `attention`.
 */
import { isShortcut, make } from "./dom.js";

const TYPING = "input, textarea, select, [contenteditable=true], .cm-content";
const SETTLES = 1000; // ms in which a new card gets its height
const EDGE = 8; // px

/**
 * Return what had the focus when the person came to the card by key: they go back there, null where they did not.
 * @param {HTMLElement} root
 * @param {AbortController} stopped
 * @returns {() => HTMLElement | null}
 */
export function attention(root, stopped) {
  const scrollers = [".jp-mod-outputsScrolled", ".jp-WindowedPanel-outer, .jp-Notebook"]
    .flatMap((name) => root.closest(name) ?? []);
  const [inner] = scrollers;
  const outer = scrollers.at(-1);
  if (!inner || !outer) return () => null;
  const { signal } = stopped;
  /** @type {WeakSet<Element>} */
  const seen = new WeakSet();
  /** @type {Element | null} */
  let fresh = null; // the card that is being brought on screen
  let until = 0;
  let atEnd = false;
  /** @type {HTMLElement | null} */
  let before = null;
  const home = root.closest(".jp-NotebookPanel");
  const sign = home instanceof HTMLElement ? make("button", "nbagent-sign", home) : null;
  if (sign) sign.hidden = true;

  const elsewhere = () => {
    const active = document.activeElement;
    return active !== null && !root.contains(active) && active.matches(TYPING);
  };
  const waiting = () => [...root.querySelectorAll(".nbagent-card")].find((card) => card.querySelector(".nbagent-bar")) ?? null;
  /** @param {Element} card */
  const reveal = (card) => {
    for (const scroller of scrollers) {
      const frame = scroller.getBoundingClientRect();
      const at = card.getBoundingClientRect();
      const tall = at.height > frame.height - 2 * EDGE;
      if (tall || at.top < frame.top + EDGE) scroller.scrollTop += at.top - frame.top - EDGE;
      else if (at.bottom > frame.bottom - EDGE) scroller.scrollTop += at.bottom - frame.bottom + EDGE;
    }
  };
  const point = () => {
    if (!sign || !root.isConnected) return;
    const card = waiting();
    const frame = outer.getBoundingClientRect();
    const at = card?.getBoundingClientRect();
    const above = at !== undefined && at.bottom < frame.top + 3 * EDGE;
    const below = at !== undefined && at.top > frame.bottom - 3 * EDGE;
    const hidden = !(above || below);
    if (sign.hidden !== hidden) sign.hidden = hidden;
    if (hidden) return;
    sign.classList.toggle("nbagent-above", above);
    const text = `${above ? "↑" : "↓"} The agent asks you`;
    if (sign.textContent !== text) sign.textContent = text;
  };
  const look = () => {
    const frame = inner.getBoundingClientRect();
    const end = root.getBoundingClientRect().bottom;
    atEnd = end <= frame.bottom + EDGE && end > frame.top;
    point();
  };
  const grown = () => {
    const over = root.getBoundingClientRect().bottom - inner.getBoundingClientRect().bottom;
    if (fresh?.isConnected && performance.now() < until && !elsewhere()) reveal(fresh);
    else if (atEnd && !elsewhere() && over > 0) inner.scrollTop += over + EDGE;
    look();
  };
  const cards = () => {
    const card = [...root.querySelectorAll(".nbagent-card")].find((each) => !seen.has(each) && each.querySelector(".nbagent-bar"));
    if (card) {
      seen.add(card);
      if (!elsewhere()) {
        fresh = card;
        until = performance.now() + SETTLES;
      }
      requestAnimationFrame(grown);
    } else point();
  };
  const moved = () => void (fresh = null); // from now on the person says what is on screen
  const sizes = new ResizeObserver(grown);
  const changes = new MutationObserver(cards);
  const asks = root.querySelector(".nbagent-asks");
  look();
  cards();
  sizes.observe(root);
  if (asks) changes.observe(asks, { childList: true, subtree: true });
  for (const scroller of scrollers) scroller.addEventListener("scroll", look, { passive: true, signal });
  for (const kind of ["wheel", "pointerdown", "keydown", "touchmove"]) {
    document.addEventListener(kind, moved, { capture: true, passive: true, signal });
  }
  /** @param {Element} card */
  const visit = (card) => {
    reveal(card);
    const bar = card.querySelector(".nbagent-bar");
    if (bar instanceof HTMLElement) bar.focus({ preventScroll: true });
    look();
  };
  /** The card is in sight, so that no tray is there to hear the keys. @param {KeyboardEvent} event */
  const onShortcut = (event) => {
    if (!event.isTrusted || !isShortcut(event) || root.offsetParent === null) return;
    const card = waiting();
    if (!card || !home || home.querySelector(".nbagent-tray:not([hidden])")) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // an editor would make a comment of its line
    const active = document.activeElement;
    if (active instanceof HTMLElement && active.closest(".jp-Cell") && !root.contains(active)) before = active;
    visit(card);
  };
  document.addEventListener("keydown", onShortcut, { capture: true, signal });
  document.addEventListener("pointerdown", () => void (before = null), { capture: true, signal }); // now they are where they click
  sign?.addEventListener("click", () => {
    const card = waiting();
    if (card) visit(card);
  }, { signal });
  signal.addEventListener("abort", () => {
    sizes.disconnect();
    changes.disconnect();
    sign?.remove();
  });
  return () => before;
}
