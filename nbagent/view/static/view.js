// @ts-check
/**
 * The page's side of the live view. It shows what the kernel sends and decides nothing, except that it interrupts the
 * kernel when the person wants that and the kernel does not answer. All HTML was made safe in Python (view/html.py); all
 * else is written as text. This file and those that it imports become one module (nbagent/esm). Read `render`.
 *
 * @typedef {{op: string, key: string, html?: string, tail?: string, text?: string, part?: string}} Operation
 * @typedef {{op: string, seq?: number, ops?: Operation[], elapsed?: number}} Message
 * @typedef {{key: string, name: string, cell: boolean, began: number, asked: number}} Running a call: since when it runs,
 *   and since when the time limit counts, in seconds since the run began
 * @typedef {{state: string, activity: string, model: string, mode: string, turn: number, max_turns: number,
 *   tokens: number, cost: string, running: boolean, ended: string, asking: boolean, elapsed: number,
 *   since?: number | null, call: Running | null, limit: number | null}} Head
 * @typedef {{get(name: string): any, on(name: string, f: (...args: any[]) => void): void,
 *   off(name: string, f: (...args: any[]) => void): void, send(content: unknown): void, widget_manager?: any}} Model
 */
import { attention } from "./attention.js";
import { controls, onlyPersons } from "./controls.js";
import { make } from "./dom.js";
import { header } from "./header.js";
import { interrupter, patience, watchKernel } from "./interrupts.js";
import { steps } from "./steps.js";
import { stream, timeline } from "./timeline.js";

export default {
  /** @param {{model: Model, el: HTMLElement}} context */
  render({ model, el }) {
    const box = make("div", "nbagent-timeline", el);
    box.tabIndex = -1;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Agent run");
    box.setAttribute("data-lm-suppress-shortcuts", "true");
    const head = header(box);
    const lines = timeline(make("div", "nbagent-items", box), make("div", "nbagent-todoplace", box));
    const interrupts = interrupter(model);
    const waiting = patience(model, box, head.now, interrupts.spare);
    const feed = stream(model, lines, (seconds) => {
      head.sync(seconds);
      waiting.look();
    });
    const stopped = new AbortController();
    const click = onlyPersons(el, stopped);
    const onHead = () => {
      head.show(model.get("head"));
      waiting.look();
    };
    /** @param {Message} message */
    const onMessage = (message) => {
      if (message.op === "stop-seen") interrupts.seen("stop");
      else if (message.op === "spare-seen") interrupts.seen("spare");
      else feed.take(message);
    };
    model.on("change:head", onHead);
    model.on("msg:custom", onMessage);
    onHead();
    feed.ask();
    const attach = () => {
      if (stopped.signal.aborted) return;
      const outer = el.closest(".nbagent-view");
      const ready = outer instanceof HTMLElement && outer.querySelector(".nbagent-asks");
      if (ready) {
        const stop = () => model.get("head")?.running && interrupts.stop();
        const back = attention(outer, stopped);
        controls(outer, box, model, { stop, spare: interrupts.spare, back }, click, stopped);
        steps(outer, model, click, stopped);
      } else setTimeout(attach, 50); // the container puts its children in one by one
    };
    attach();
    watchKernel(model, () => {
      if (!model.get("head")?.running) return;
      head.gone();
      waiting.end();
      for (const control of (el.closest(".nbagent-view") ?? el).querySelectorAll("button, input, textarea")) {
        control.setAttribute("disabled", "");
      }
    }, stopped);
    return () => {
      stopped.abort();
      model.off("change:head", onHead);
      model.off("msg:custom", onMessage);
      feed.stop();
      waiting.end();
      interrupts.end();
      head.stop();
    };
  },
};
