// @ts-check
/**
 * The card in which a person is the model: what stands in its boxes at a click, its keys, and names for who does not see them.
 * Ctrl+Enter sends from anywhere in the card; Tab goes on, and indents in a box for code, which Escape leaves.
 */

export const HUMAN = ".nbagent-human";
const BOX = "input, textarea, select";

/** @param {Element | null} box */
function standsIn(box) {
  if (box instanceof HTMLInputElement) return box.type === "checkbox" ? `${box.checked}` : box.value;
  return box instanceof HTMLTextAreaElement || box instanceof HTMLSelectElement ? box.value : null;
}

/** What stands in each box of a card, by its number. @param {Element} card @returns {Record<string, string>} */
export function fieldsOf(card) {
  /** @type {Record<string, string>} */
  const found = {};
  for (const field of card.querySelectorAll(".nbagent-field")) {
    const key = [...field.classList].map((name) => /^nbagent-field-(\d+)$/.exec(name)?.[1]).find(Boolean);
    const value = standsIn(field.matches(BOX) ? field : field.querySelector(BOX));
    if (key && value !== null) found[key] = value;
  }
  return found;
}

/**
 * Ctrl+Enter (⌘+Enter) sends the reply; return whether it was that.
 * @param {KeyboardEvent} event
 * @param {Element} card
 * @param {(control: HTMLElement) => void} click
 */
export function sendByKey(event, card, click) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return false;
  const send = card.querySelector(".nbagent-send");
  if (send instanceof HTMLButtonElement && !send.disabled && !event.repeat) click(send);
  event.preventDefault();
  return true;
}

/**
 * Name the boxes of the cards, and put the cursor where a person begins.
 * @param {HTMLElement} root
 * @param {boolean} focus whether the person is at work here
 */
export function dressHuman(root, focus) {
  for (const row of root.querySelectorAll(".nbagent-fieldrow")) {
    const box = row.querySelector(BOX);
    const name = row.querySelector(".nbagent-fieldname")?.textContent;
    const call = row.closest(".nbagent-callform")?.querySelector(".nbagent-callhead b")?.textContent;
    if (box && name && !box.hasAttribute("data-named")) {
      box.setAttribute("aria-label", call ? `${call}: ${name}` : name);
      box.setAttribute("data-named", "1");
      if (box instanceof HTMLTextAreaElement) box.spellcheck = false;
    }
  }
  for (const choice of root.querySelectorAll(".nbagent-toolchoice select:not([aria-label])")) {
    choice.setAttribute("aria-label", "Tool to call");
  }
  for (const card of root.querySelectorAll(`${HUMAN}:not([data-begun])`)) {
    const first = card.querySelector("textarea");
    if (!(card instanceof HTMLElement) || !first) continue; // not there yet
    card.dataset.begun = "1";
    if (focus) first.focus({ preventScroll: true });
  }
}
