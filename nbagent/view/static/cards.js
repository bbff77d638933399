// @ts-check
/**
 * What the page knows of the cards that ask the person: what stands in them at a click, and how the text box behaves.
 * A click that answers is one message with all that was on screen: what widgets sync may lag behind, and the messages of
 * several widgets may reach the kernel's handlers in another order (measured on ipykernel 7.4). Read `readCard`.
 *
 * @import { Model } from "./view.js"
 */

import { make } from "./dom.js";

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
 * Say so below a preview while not all of it is on screen, by its height, and let the person see all of it at once.
 * @param {HTMLElement} box
 */
function watchPreview(box) {
  const more = make("div", "nbagent-size nbagent-more");
  const text = make("span", "", more);
  const button = make("button", "nbagent-whole", more);
  button.setAttribute("type", "button");
  button.textContent = "Show all of it";
  more.hidden = true;
  box.after(more);
  const look = () => {
    const below = box.scrollHeight - box.clientHeight - box.scrollTop;
    const cut = box.scrollHeight > box.clientHeight + 4;
    if (more.hidden !== !cut) more.hidden = !cut;
    box.classList.toggle("nbagent-cut", cut && below > 4);
    const said = below > 4 ? "There is more below: scroll to read it. " : "This is its end. ";
    if (text.textContent !== said) text.textContent = said;
  };
  const sizes = new ResizeObserver(look);
  for (const each of [box, ...box.children]) sizes.observe(each);
  box.addEventListener("scroll", look, { passive: true });
  button.addEventListener("click", () => {
    box.classList.add("nbagent-allshown");
    look();
    box.focus({ preventScroll: true });
  });
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
  for (const box of root.querySelectorAll(".nbagent-preview:not([data-watched])")) {
    if (!(box instanceof HTMLElement)) continue;
    box.dataset.watched = "1";
    watchPreview(box);
  }
  for (const tick of root.querySelectorAll(`${TICK}:not([aria-label])`)) {
    const call = tick.closest(".nbagent-askedcall");
    const title = call?.querySelector(".nbagent-askedfor")?.textContent;
    const place = [...(tick.closest(".nbagent-card")?.querySelectorAll(".nbagent-askedcall") ?? [])].findIndex((each) => each === call) + 1;
    if (title && place) tick.setAttribute("aria-label", `Approve ${place}: ${title}`); // two of a card may have one title
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
