// @ts-check
/**
 * Small things that all parts of the view use. Read `make`.
 */

/** Whether the keys of a Mac are meant. */
export const MAC = /mac/i.test(navigator.platform);

/** The keys that lead to the card that asks: Alt+A, on a Mac Control+Option+A. @param {KeyboardEvent} event */
export const isShortcut = (event) =>
  event.code === "KeyA" && event.altKey && event.ctrlKey === MAC && !event.shiftKey && !event.metaKey;

/** @param {string} tag @param {string} name @param {HTMLElement} [parent] */
export function make(tag, name, parent) {
  const element = document.createElement(tag);
  element.className = name;
  parent?.append(element);
  return element;
}

/** @param {number} seconds */
export function clock(seconds) {
  const text = new Date(Math.max(0, seconds) * 1000).toISOString().slice(11, 19); // 00:12:07
  return seconds < 3600 ? text.slice(text[3] === "0" ? 4 : 3) : text;
}

/** @param {number} n */
export function short(n) {
  return n < 1000 ? `${n}` : n < 999950 ? `${(n / 1000).toFixed(1)}k` : `${(n / 1e6).toFixed(1)}M`;
}

/** How long something lasts, for people: 12 s, 2 min 10 s, 1 h 02 min. @param {number} seconds */
export function lasted(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  /** @param {number} n */
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  return whole < 3600 ? `${Math.floor(whole / 60)} min ${two(whole % 60)} s` : `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
}
