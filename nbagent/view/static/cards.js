// @ts-check
/**
 * What the page knows of the cards that ask the person: what stands in them at a click, and how the text box behaves.
 * A click that answers is one message with all that was on screen: what widgets sync may lag behind, and the messages of
 * several widgets may reach the kernel's handlers in another order (measured on ipykernel 7.4). Read `readCard`.
 *
 * @import { Model } from "./view.js"
 */

import { make } from "./dom.js";
import { HUMAN, fieldsOf } from "./human.js";

const INDENT = "    ";
const AREA = ".nbagent-area textarea";
export const TICK = ".nbagent-tick input";
export const WORDS = ".nbagent-words input";
export const QUESTION = ".nbagent-askedquestion";
const PICK = ".nbagent-pick";

/** What was written in the box for words of an element, null if it has none. @param {Element | null} element */
function written(element) {
  const box = element?.querySelector(WORDS);
  return box instanceof HTMLInputElement ? box.value : null;
}

/**
 * What stands in the questions of a card: of each what is written (the box of a single one is in the bar), and its switches.
 * @param {Element} card
 */
function answers(card) {
  const asked = [...card.querySelectorAll(QUESTION)];
  return asked.map((question) => ({
    words: written(asked.length > 1 ? question : card),
    picks: [...question.querySelectorAll(PICK)].map((pick) => pick.classList.contains("mod-active")),
  }));
}

/**
 * Let go of the other choice where a question has one answer and this switch is about to be turned on.
 * @param {Element} pick
 * @param {(control: HTMLElement) => void} click
 */
export function oneOf(pick, click) {
  if (pick.classList.contains("mod-active")) return;
  for (const other of pick.closest(".nbagent-one")?.querySelectorAll(`${PICK}.mod-active`) ?? []) {
    if (other instanceof HTMLElement && other !== pick) click(other);
  }
}

/**
 * A number is the choice with that number: of the question that has the focus, else of the first without an answer.
 * @param {KeyboardEvent} event
 * @param {Element} target
 * @param {(control: HTMLElement) => void} click
 */
export function chooseByNumber(event, target, click) {
  const card = target.closest(".nbagent-asking");
  if (!card || !/^[1-9]$/.test(event.key) || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return false;
  const questions = [...card.querySelectorAll(QUESTION)];
  const open = questions.find((each) => !each.querySelector(`${PICK}.mod-active`) && written(each) === "");
  const question = target.closest(QUESTION) ?? open ?? questions[0];
  const found = (questions.length > 1 ? question : card)?.querySelectorAll(`.nbagent-choice, ${PICK}`)[Number(event.key) - 1];
  if (!(found instanceof HTMLElement)) return false;
  click(found);
  event.preventDefault();
  return true;
}

/**
 * Enter in a box of one of several questions goes on to the next, and from the last to Send.
 * @param {Element} words
 */
export function nextQuestion(words) {
  const card = words.closest(".nbagent-card");
  const questions = [...(card?.querySelectorAll(QUESTION) ?? [])];
  const next = questions[questions.findIndex((each) => each.contains(words)) + 1];
  const found = (next ?? card)?.querySelector(next ? `button, ${WORDS}` : ".nbagent-send");
  if (found instanceof HTMLElement) found.focus();
}

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
    answers: answers(card),
    fields: card.matches(HUMAN) ? fieldsOf(card) : null,
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
  for (const pick of root.querySelectorAll(PICK)) {
    const pressed = `${pick.classList.contains("mod-active")}`;
    if (pick.getAttribute("aria-pressed") !== pressed) pick.setAttribute("aria-pressed", pressed);
  }
  for (const question of root.querySelectorAll(`${QUESTION}:not([role])`)) {
    const asked = question.querySelector(".nbagent-asked");
    if (!asked) continue; // its children are not there yet
    question.setAttribute("role", "group");
    question.setAttribute("aria-label", `${asked.textContent ?? ""} A number chooses, Escape goes to the box for words.`);
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
