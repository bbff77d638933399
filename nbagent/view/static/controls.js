// @ts-check
/**
 * Keys, focus and clicks of the whole view: the timeline and the kernel-made buttons beside it. Read `controls`.
 *
 * @import { Model } from "./view.js"
 */
import { QUESTION, TICK, WORDS, chooseByNumber, dressCards, keyInArea, nextQuestion, oneOf, readCard } from "./cards.js";
import { HUMAN, dressHuman, sendByKey } from "./human.js";

/** A card whose choices stand above its bar: there the person begins. */
const BEGINS_ABOVE = ".nbagent-choicesabove";
const ANSWERS = ["approve", "deny", "send"];

/** The name of the button around `target` that answers with what stands in its card, "" if there is none. @param {Element | null} target */
function pressed(target) {
  const button = target?.closest("button");
  if (button?.classList.contains("nbagent-choice")) {
    const place = [...(button.closest(".nbagent-card")?.querySelectorAll(".nbagent-choice") ?? [])].indexOf(button);
    return `choice:${place}`;
  }
  return ANSWERS.find((name) => button?.classList.contains(`nbagent-${name}`)) ?? "";
}

/**
 * Let no script in an output press anything of the view that `el` is in: it is no person. Return how we ourselves click.
 * @param {HTMLElement} el
 * @param {AbortController} stopped
 * @returns {(control: HTMLElement) => void}
 */
export function onlyPersons(el, stopped) {
  /** @type {HTMLElement | null} */
  let ours = null;
  /** @param {Event} event */
  const refuse = (event) => {
    const { target } = event;
    if (event.isTrusted || target === ours || !(target instanceof Node)) return;
    if (!el.closest(".nbagent-view")?.contains(target)) return;
    event.preventDefault(); // a tick stays as it is
    event.stopImmediatePropagation();
  };
  // of the document and from the start, so that nothing of the view, ipywidgets' own listeners too, comes before it
  for (const name of ["click", "keydown", "keypress"]) {
    document.addEventListener(name, refuse, { capture: true, signal: stopped.signal });
  }
  return (control) => {
    ours = control;
    try {
      control.click();
    } finally {
      ours = null;
    }
  };
}

/**
 * Press the button of the card around `target` that is meant, once for a key that is held down.
 * @param {KeyboardEvent} event
 * @param {Element} target
 * @param {string} name
 * @param {(control: HTMLElement) => void} click
 */
function press(event, target, name, click) {
  const found = name && !event.repeat ? target.closest(".nbagent-card")?.querySelector(name) : null;
  if (found instanceof HTMLElement) click(found);
  event.preventDefault();
}

/**
 * Enter approves, on the bar and on a tick; in the box for words it sends them. Escape goes to that box.
 * @param {KeyboardEvent} event
 * @param {(control: HTMLElement) => void} click
 */
function onCardKey(event, click) {
  const target = event.target instanceof HTMLElement ? event.target : null;
  const card = target?.closest(".nbagent-card");
  if (!target || !card || event.isComposing) return;
  if (card.matches(HUMAN) && sendByKey(event, card, click)) return;
  if (keyInArea(event, target) || card.matches(HUMAN)) return;
  const bar = target.closest(".nbagent-bar");
  const tick = target.matches(TICK);
  const question = target.closest(QUESTION);
  const words = card.querySelector(WORDS);
  if (!target.matches(WORDS) && chooseByNumber(event, target, click)) return;
  if (question && event.key === "Enter" && target.matches(WORDS)) {
    if (!event.repeat) nextQuestion(target);
    event.preventDefault();
    return;
  }
  if (question && event.key === "Escape" && !target.matches(WORDS)) {
    const own = question.querySelector(WORDS) ?? words;
    if (own instanceof HTMLInputElement) own.focus();
    event.preventDefault();
    return;
  }
  if (!bar && !tick) return;
  if (event.key === "Escape" && target !== words && words instanceof HTMLInputElement) {
    words.focus();
    event.preventDefault();
  } else if (event.key === "Enter" && (target === bar || tick)) {
    press(event, target, ".nbagent-approve, .nbagent-form .nbagent-send", click);
  } else if (event.key === "Enter" && target === words) {
    const typed = words instanceof HTMLInputElement && words.value.trim() !== "";
    press(event, target, typed ? ".nbagent-deny, .nbagent-send" : "", click);
  }
}

/**
 * @param {HTMLElement} root
 * @param {HTMLElement} home takes the focus where the button that had it is gone and no card is left
 * @param {Model} model
 * @param {{stop: () => void, spare: () => void, back: () => HTMLElement | null}} clicked what a click on Stop and on Interrupt
 *   cell does beside, and where the person came from by key
 * @param {(control: HTMLElement) => void} click how `onlyPersons` has us click
 * @param {AbortController} stopped
 */
export function controls(root, home, model, clicked, click, stopped) {
  let inside = false; // whether the person's last focus or click was in the view
  const decorate = () => {
    const free = document.activeElement === document.body || root.contains(document.activeElement);
    const atWork = () => document.activeElement?.closest(".nbagent-card") != null; // another card must not take their keys
    dressCards(root, inside && free);
    dressHuman(root, inside && free && !atWork());
    for (const bar of root.querySelectorAll(".nbagent-bar:not([tabindex])")) {
      if (!(bar instanceof HTMLElement)) continue;
      if (bar.closest(HUMAN)) { // Escape in a box for code comes here
        bar.tabIndex = -1;
        continue;
      }
      const approval = bar.classList.contains("nbagent-approving"); // its children may not be there yet
      bar.tabIndex = 0;
      bar.setAttribute("role", "group");
      bar.setAttribute("aria-label", approval
        ? "Approve or deny the call. Enter approves, Escape goes to the box for what to do instead."
        : "Answer the question: a number chooses, Escape goes to the box for words.");
      if (inside && free && !atWork() && !bar.closest(BEGINS_ABOVE)) bar.focus({ preventScroll: true });
    }
    for (const card of root.querySelectorAll(`${BEGINS_ABOVE}:not([data-begun])`)) {
      const first = card.querySelector(QUESTION);
      if (!(card instanceof HTMLElement) || !(first instanceof HTMLElement)) continue; // not there yet
      card.dataset.begun = "1";
      first.tabIndex = 0;
      if (inside && free && !atWork()) first.focus({ preventScroll: true });
    }
    if (!inside || document.activeElement !== document.body) return; // else the button that had the focus is gone
    const bar = root.querySelector(`${BEGINS_ABOVE} ${QUESTION}, .nbagent-bar`);
    (bar instanceof HTMLElement ? bar : home).focus({ preventScroll: true });
  };
  /** @param {MouseEvent} event */
  const onClick = (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest(".nbagent-stop")) clicked.stop();
    if (target?.closest(".nbagent-spare")) clicked.spare();
    const answer = pressed(target);
    if (target && answer) {
      readCard(model, target, answer);
      event.stopImmediatePropagation(); // the button must not say it too, in a message of its own
      return;
    }
    const pick = target?.closest(".nbagent-pick");
    if (pick) oneOf(pick, click);
    if (target?.closest(".nbagent-keep")) readCard(model, target, "");
    const title = target?.closest(".nbagent-tickrow .nbagent-asktitle");
    const tick = title?.closest(".nbagent-tickrow")?.querySelector(TICK);
    if (tick instanceof HTMLElement) click(tick);
    const fold = target?.closest("summary")?.parentElement;
    if (fold) fold.dataset.touched = "1";
  };
  /** @param {KeyboardEvent} event */
  const keep = (event) => event.stopPropagation(); // no key typed here is a command for the notebook
  /** @param {Event} event */
  const onAnywhere = (event) => {
    inside = event.target instanceof Node && root.contains(event.target);
    if (inside) decorate();
  };
  const observer = new MutationObserver((changes) => {
    decorate();
    // a button that is disabled loses the focus a moment later
    if (changes.some((change) => change.type === "attributes")) requestAnimationFrame(decorate);
  });
  const asks = root.querySelector(".nbagent-asks");
  if (asks) observer.observe(asks, { childList: true, subtree: true, attributeFilter: ["disabled", "class"] });
  const { signal } = stopped;
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.addEventListener("click", onClick, { capture: true, signal });
  // before the text box, which keeps its keys
  root.addEventListener("keydown", (event) => onCardKey(event, click), { capture: true, signal });
  root.addEventListener("keydown", keep, { signal });
  document.addEventListener("focusin", onAnywhere, { signal });
  document.addEventListener("pointerdown", onAnywhere, { capture: true, signal });
  const cell = root.closest(".jp-Cell");
  signal.addEventListener("abort", () => {
    observer.disconnect();
    if (!inside) return;
    setTimeout(() => { // the record takes the view's place: who came to it by key goes back, another stays at the cell
      const home = [clicked.back(), cell].find((one) => one?.isConnected);
      if (document.activeElement === document.body && home instanceof HTMLElement) home.focus({ preventScroll: true });
    }, 100);
  });
  decorate();
}
