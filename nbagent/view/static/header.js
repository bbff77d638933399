// @ts-check
/**
 * The line on top of the view. Read `header`.
 *
 * @import { Head } from "./view.js"
 */
import { clock, lasted, make, short } from "./dom.js";

/**
 * The line on top: state, model, turn, tokens, cost, elapsed time; it counts by itself while nothing comes.
 * @param {HTMLElement} parent
 */
export function header(parent) {
  const bar = make("div", "nbagent-head", parent);
  const pill = make("span", "nbagent-pill", bar);
  const activity = make("span", "nbagent-activity", bar);
  const facts = make("span", "nbagent-facts", bar);
  const elapsed = make("span", "nbagent-elapsed", bar);
  elapsed.title = "time since the run began";
  const live = make("div", "nbagent-sr", parent);
  live.setAttribute("aria-live", "polite");
  let zero = performance.now();
  let running = true;
  let said = ""; // what goes on
  /** @type {number | null} */
  let since = null; // when it began, if that is counted
  const tick = () => {
    if (!running) return;
    const now = (performance.now() - zero) / 1000;
    elapsed.textContent = clock(now);
    if (since !== null) activity.textContent = `${said} (${lasted(now - since)})…`;
  };
  const timer = setInterval(tick, 1000);
  return {
    /** @param {Partial<Head>} head */
    show(head) {
      if (typeof head.elapsed === "number") this.sync(head.elapsed);
      running = head.running !== false;
      pill.textContent = running ? head.state ?? "Starting…" : head.state || "Done";
      pill.dataset.state = head.asking ? "asking" : (head.state ?? "").toLowerCase();
      said = !running || head.activity === head.state ? "" : head.activity ?? "";
      since = running ? head.since ?? null : null;
      activity.textContent = said;
      tick();
      const turn = head.turn ? `turn ${head.turn}${head.max_turns ? `/${head.max_turns}` : ""}` : "";
      const parts = [head.model, head.mode, turn, head.tokens ? `${short(head.tokens)} tokens` : "", head.cost];
      facts.replaceChildren(...parts.filter(Boolean).map((part) => {
        const fact = document.createElement("span");
        fact.textContent = part ?? "";
        return fact;
      }));
      const heard = running ? head.activity ?? "" : "The run is over"; // without the seconds
      if (live.textContent !== heard) live.textContent = heard;
    },
    /** @param {number} seconds */
    sync(seconds) {
      zero = performance.now() - seconds * 1000;
      tick();
    },
    now: () => (performance.now() - zero) / 1000, // seconds since the run began
    /** The kernel is gone: nothing of this run goes on. */
    gone() {
      running = false;
      since = null;
      pill.textContent = "Ended";
      pill.dataset.state = "done";
      activity.textContent = live.textContent = "The kernel went away: this run has ended and nothing more will run.";
    },
    stop: () => clearInterval(timer),
  };
}
