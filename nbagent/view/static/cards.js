// @ts-check
/**
 * What the page knows of the cards that ask the person: what stands in them at a click, and how the text box behaves.
 * A click that answers is one message with all that was on screen: what widgets sync may lag behind, and the messages of
 * several widgets may reach the kernel's handlers in another order (measured on ipykernel 7.4). Read `readCard`.
 *
 * @import { Model } from "./view.js"
 */

const INDENT = "    ";
const AREA = ".nbagent-area textarea";
export const TICK = ".nbagent-tick input";
export const WORDS = ".nbagent-words input";

/**
 * Tell the kernel what stands in the card around `target`: the words, and of each call whether it is ticked and the text
 * in its box (null: it has none); and which button was pressed, if one of those that answer with all this.
 * @param {Model} model
 * @param {Element} target
 * @param {string} press
 */
export function readCard(model, target, press) {
  const card = target.closest(".nbagent-card");
  const serial = [...(card?.classList ?? [])].map((name) => /^nbagent-card-(\d+)$/.exec(name)?.[1]).find(Boolean);
  if (!card || !serial) return;
  const words = card.querySelector(WORDS);
  const calls = [...card.querySelectorAll(".nbagent-askedcall")];
  model.send({
    op: "card",
    card: Number(serial),
    press,
    words: words instanceof HTMLInputElement ? words.value : null,
    ticks: calls.map((call) => {
      const tick = call.querySelector(TICK);
      return tick instanceof HTMLInputElement ? tick.checked : null;
    }),
    texts: calls.map((call) => {
      const area = call.querySelector(AREA);
      return area instanceof HTMLTextAreaElement ? area.value : null;
    }),
  });
}

/** @param {HTMLTextAreaElement} area */
function grow(area) {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}

/**
 * Name the controls of the cards for who does not see them, and have new text boxes grow and take the focus.
 * @param {HTMLElement} root
 * @param {boolean} focus whether the person is at work here
 */
export function dressCards(root, focus) {
  for (const input of root.querySelectorAll(`${WORDS}:not([aria-label])`)) {
    input.setAttribute("aria-label", input.closest(".nbagent-approving") ? "What to do instead" : "Your answer");
  }
  for (const tick of root.querySelectorAll(`${TICK}:not([aria-label])`)) {
    const title = tick.closest(".nbagent-askedcall")?.querySelector(".nbagent-askedfor")?.textContent;
    if (title) tick.setAttribute("aria-label", `Approve: ${title}`);
  }
  for (const area of root.querySelectorAll(`${AREA}:not([aria-label])`)) {
    if (!(area instanceof HTMLTextAreaElement)) continue;
    area.setAttribute("aria-label", "Your version. Tab indents, Escape leaves the box.");
    area.spellcheck = false;
    area.addEventListener("input", () => grow(area));
    requestAnimationFrame(() => {
      grow(area);
      if (!focus) return;
      area.focus({ preventScroll: true });
      area.setSelectionRange(0, 0);
    });
  }
}

/**
 * Tab indents in a text box and Escape leaves it, so that the box is no trap; return whether the key was one of these.
 * @param {KeyboardEvent} event
 * @param {Element} target
 */
export function keyInArea(event, target) {
  if (!(target instanceof HTMLTextAreaElement) || !target.matches(AREA)) return false;
  if (event.key === "Tab" && !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey) {
    // the only way in which the browser's own undo knows of it
    if (!document.execCommand("insertText", false, INDENT)) target.setRangeText(INDENT, target.selectionStart, target.selectionEnd, "end");
    event.preventDefault();
  } else if (event.key === "Escape") {
    const bar = target.closest(".nbagent-card")?.querySelector(".nbagent-bar");
    if (bar instanceof HTMLElement) bar.focus({ preventScroll: true });
    event.preventDefault();
  }
  return true;
}
