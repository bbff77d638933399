// @ts-check
/**
 * The page's side of the live view. It shows what the kernel sends and decides nothing, except that Stop interrupts the
 * kernel when the kernel does not answer. All HTML was made safe in Python (view/html.py); all else is written as text.
 * Read `render`, then `apply`.
 *
 * @typedef {{op: string, key: string, html?: string, tail?: string, text?: string, part?: string}} Operation
 * @typedef {{op: string, seq?: number, ops?: Operation[], elapsed?: number}} Message
 * @typedef {{state: string, activity: string, model: string, mode: string, turn: number, max_turns: number,
 *   tokens: number, cost: string, running: boolean, ended: string, asking: boolean, elapsed: number}} Head
 * @typedef {{get(name: string): any, on(name: string, f: (...args: any[]) => void): void,
 *   off(name: string, f: (...args: any[]) => void): void, send(content: unknown): void, widget_manager?: any}} Model
 */

const STOP_WAIT = 300; // ms in which the kernel must have seen a click on Stop
const SNAPSHOT_WAITS = [1500, 4000, 10000]; // ms: a request may be lost, or wait behind synchronous code
const GONE = new Set(["restarting", "autorestarting", "terminating", "dead"]);
const TYPING = "input, textarea, select, [contenteditable=true]";

/** @param {string} tag @param {string} name @param {HTMLElement} [parent] */
function make(tag, name, parent) {
  const element = document.createElement(tag);
  element.className = name;
  parent?.append(element);
  return element;
}

/** @param {number} seconds */
function clock(seconds) {
  const text = new Date(Math.max(0, seconds) * 1000).toISOString().slice(11, 19); // 00:12:07
  return seconds < 3600 ? text.slice(text[3] === "0" ? 4 : 3) : text;
}

/** @param {number} n */
function short(n) {
  return n < 1000 ? `${n}` : n < 999950 ? `${(n / 1000).toFixed(1)}k` : `${(n / 1e6).toFixed(1)}M`;
}

/**
 * The line on top: state, model, turn, tokens, cost, elapsed time; it counts by itself while nothing comes.
 * @param {HTMLElement} parent
 */
function header(parent) {
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
  const tick = () => {
    if (running) elapsed.textContent = clock((performance.now() - zero) / 1000);
  };
  const timer = setInterval(tick, 1000);
  return {
    /** @param {Partial<Head>} head */
    show(head) {
      if (typeof head.elapsed === "number") this.sync(head.elapsed);
      running = head.running !== false;
      pill.textContent = running ? head.state ?? "Starting…" : head.state || "Done";
      pill.dataset.state = head.asking ? "asking" : (head.state ?? "").toLowerCase();
      activity.textContent = !running || head.activity === head.state ? "" : head.activity ?? "";
      const turn = head.turn ? `turn ${head.turn}${head.max_turns ? `/${head.max_turns}` : ""}` : "";
      const parts = [head.model, head.mode, turn, head.tokens ? `${short(head.tokens)} tokens` : "", head.cost];
      facts.replaceChildren(...parts.filter(Boolean).map((part) => {
        const fact = document.createElement("span");
        fact.textContent = part ?? "";
        return fact;
      }));
      const said = running ? head.activity ?? "" : "The run is over";
      if (live.textContent !== said) live.textContent = said;
    },
    /** @param {number} seconds */
    sync(seconds) {
      zero = performance.now() - seconds * 1000;
      tick();
    },
    /** The kernel is gone: nothing of this run goes on. */
    gone() {
      running = false;
      pill.textContent = "Ended";
      pill.dataset.state = "done";
      activity.textContent = live.textContent = "The kernel went away: this run has ended and nothing more will run.";
    },
    stop: () => clearInterval(timer),
  };
}

/**
 * Carry over which folds the person has opened or closed.
 * @param {Element} before
 * @param {Element} after
 */
function keepFolds(before, after) {
  for (const fold of before.querySelectorAll("details[data-touched]")) {
    const name = fold.getAttribute("data-fold") ?? "";
    const same = after.querySelector(`details[data-fold="${CSS.escape(name)}"]`);
    if (same instanceof HTMLDetailsElement && fold instanceof HTMLDetailsElement) {
      same.open = fold.open;
      same.dataset.touched = "1";
    }
  }
}

/**
 * The list of items: patched in place, streaming text only ever appended to.
 * @param {HTMLElement} list
 */
function timeline(list) {
  /** @type {Map<string, Element>} */
  const items = new Map();
  /** @param {string} html */
  const parse = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  };
  /** @param {Element | undefined} item @param {string} name */
  const part = (item, name) => // among the children first: a search would walk through all the text before the tail
    [...(item?.children ?? [])].find((c) => c.getAttribute("data-part") === name) ?? item?.querySelector(`[data-part="${name}"]`);
  /** @param {Operation} operation */
  const apply = (operation) => {
    const { op, key, html = "", tail = "", text = "" } = operation;
    const item = items.get(key);
    if (op === "put") {
      const fresh = parse(html).firstElementChild;
      if (!fresh) return;
      if (item) keepFolds(item, fresh);
      item ? item.replaceWith(fresh) : list.append(fresh);
      items.set(key, fresh);
    } else if (op === "more") {
      part(item, "blocks")?.append(parse(html));
      part(item, "tail")?.replaceChildren(document.createTextNode(tail));
    } else if (op === "add") {
      const open = part(item, "tail");
      if (open?.lastChild instanceof Text) open.lastChild.appendData(text);
      else open?.append(text);
    } else if (op === "set") {
      const target = part(item, operation.part ?? "");
      if (target) target.textContent = text;
    }
  };
  const clear = () => void (items.clear(), list.replaceChildren());
  return { apply, clear };
}

/**
 * Takes messages in order; a gap makes it ask for everything again.
 * @param {Model} model
 * @param {ReturnType<typeof timeline>} lines
 * @param {(seconds: number) => void} sync
 */
function stream(model, lines, sync) {
  let seq = -1; // -1: nothing is known yet, a snapshot was asked for
  let tries = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waiting;
  /** @type {Operation[]} */
  let queue = [];
  let scheduled = false;
  const draw = () => {
    scheduled = false;
    const operations = queue;
    queue = [];
    operations.forEach(lines.apply);
  };
  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    if (document.hidden) setTimeout(draw, 250); // no frames are drawn in a hidden tab
    else requestAnimationFrame(draw);
  };
  const ask = () => {
    seq = -1;
    clearTimeout(waiting);
    model.send({ op: "snapshot" });
    if (tries < SNAPSHOT_WAITS.length) waiting = setTimeout(ask, SNAPSHOT_WAITS[tries++]);
  };
  return {
    ask,
    /** @param {Message} message */
    take(message) {
      if (message.op === "snapshot") {
        if (seq >= 0 && message.seq === seq) return; // meant for another view of this model
        clearTimeout(waiting);
        tries = 0;
        seq = message.seq ?? 0;
        queue = [];
        lines.clear();
        message.ops?.forEach(lines.apply);
        if (typeof message.elapsed === "number") sync(message.elapsed);
      } else if (message.op === "patch") {
        if (seq < 0) return;
        if (message.seq !== seq + 1) return ask();
        seq += 1;
        queue.push(...(message.ops ?? []));
        schedule();
      }
    },
    stop: () => clearTimeout(waiting),
  };
}

/**
 * While the end of the view is on screen, keep it there as the view grows, unless the person is at work elsewhere.
 * @param {Element} root
 * @param {AbortController} stopped
 */
function follow(root, stopped) {
  const scroller = root.closest(".jp-mod-outputsScrolled, .jp-WindowedPanel-outer, .jp-Notebook");
  if (!scroller) return;
  let atEnd = false;
  const over = () => root.getBoundingClientRect().bottom - scroller.getBoundingClientRect().bottom;
  const look = () => {
    const frame = scroller.getBoundingClientRect();
    const end = root.getBoundingClientRect().bottom;
    atEnd = end <= frame.bottom + 8 && end > frame.top;
  };
  const observer = new ResizeObserver(() => {
    const active = document.activeElement;
    const elsewhere = active && !root.contains(active) && active.matches(`${TYPING}, .cm-content`);
    if (atEnd && !elsewhere && over() > 0) scroller.scrollTop += over() + 8;
    else look();
  });
  look();
  observer.observe(root);
  scroller.addEventListener("scroll", look, { passive: true, signal: stopped.signal });
  stopped.signal.addEventListener("abort", () => observer.disconnect());
}

/**
 * Stop must work while synchronous code keeps the kernel from hearing the click: then the page interrupts it.
 * @param {Model} model
 */
function stopper(model) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return {
    clicked() {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const kernel = model.widget_manager?.context?.sessionContext?.session?.kernel;
        if (typeof kernel?.interrupt === "function") kernel.interrupt();
      }, STOP_WAIT);
    },
    seen: () => clearTimeout(timer),
  };
}

/**
 * Keys, focus and labels of the whole view: the timeline and the kernel-made buttons beside it.
 * @param {HTMLElement} root
 * @param {HTMLElement} home takes the focus when the button that had it is gone
 * @param {Model} model
 * @param {() => void} stopClicked
 * @param {AbortController} stopped
 */
function controls(root, home, model, stopClicked, stopped) {
  let inside = false; // whether the person's last focus or click was in the view
  /** @param {Element} target */
  const sendWords = (target) => {
    const card = target.closest(".nbagent-card");
    const input = card?.querySelector(".nbagent-words input");
    const serial = [...(card?.classList ?? [])].map((name) => /^nbagent-card-(\d+)$/.exec(name)?.[1]).find(Boolean);
    if (input instanceof HTMLInputElement && serial) model.send({ op: "words", card: Number(serial), text: input.value });
  };
  const decorate = () => {
    for (const input of root.querySelectorAll(".nbagent-words input:not([aria-label])")) {
      input.setAttribute("aria-label", input.closest(".nbagent-approving") ? "What to do instead" : "Your answer");
    }
    for (const bar of root.querySelectorAll(".nbagent-bar:not([tabindex])")) {
      if (!(bar instanceof HTMLElement)) continue;
      const approval = bar.classList.contains("nbagent-approving"); // its children may not be there yet
      bar.tabIndex = 0;
      bar.setAttribute("role", "group");
      bar.setAttribute("aria-label", approval
        ? "Approve or deny the call. Enter approves, Escape goes to the box for what to do instead."
        : "Answer the question");
      if (inside && (document.activeElement === document.body || root.contains(document.activeElement))) {
        bar.focus({ preventScroll: true });
      }
    }
    if (inside && document.activeElement === document.body) home.focus({ preventScroll: true });
  };
  /** @param {MouseEvent} event */
  const onClick = (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest(".nbagent-stop")) stopClicked();
    if (target?.closest(".nbagent-deny, .nbagent-send")) sendWords(target);
    const fold = target?.closest("summary")?.parentElement;
    if (fold) fold.dataset.touched = "1";
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const target = event.target instanceof HTMLElement ? event.target : null;
    const bar = target?.closest(".nbagent-bar");
    if (!target || !bar || event.isComposing) return;
    const words = bar.querySelector(".nbagent-words input");
    if (event.key === "Escape" && target !== words && words instanceof HTMLInputElement) {
      words.focus();
      event.preventDefault();
    } else if (event.key === "Enter" && (target === bar || target === words)) {
      const typed = words instanceof HTMLInputElement && words.value.trim() !== "";
      const name = target === bar ? ".nbagent-approve" : typed ? ".nbagent-deny, .nbagent-send" : "";
      const button = name && !event.repeat ? bar.querySelector(name) : null;
      if (button instanceof HTMLElement) button.click();
      event.preventDefault();
    }
  };
  /** @param {KeyboardEvent} event */
  const keep = (event) => event.stopPropagation(); // no key typed here is a command for the notebook
  /** @param {Event} event */
  const onAnywhere = (event) => {
    inside = event.target instanceof Node && root.contains(event.target);
    if (inside) decorate();
  };
  const observer = new MutationObserver(decorate);
  const asks = root.querySelector(".nbagent-asks");
  if (asks) observer.observe(asks, { childList: true, subtree: true });
  const { signal } = stopped;
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.addEventListener("click", onClick, { capture: true, signal });
  root.addEventListener("keydown", onKey, { capture: true, signal }); // before the text box, which keeps its keys
  root.addEventListener("keydown", keep, { signal });
  document.addEventListener("focusin", onAnywhere, { signal });
  document.addEventListener("pointerdown", onAnywhere, { capture: true, signal });
  signal.addEventListener("abort", () => observer.disconnect());
  decorate();
}

/**
 * Call `lost` when the kernel behind the model goes away.
 * @param {Model} model
 * @param {() => void} lost
 * @param {AbortController} stopped
 */
function watchKernel(model, lost, stopped) {
  const signal = model.widget_manager?.context?.sessionContext?.statusChanged;
  if (typeof signal?.connect !== "function") return;
  /** @param {unknown} _sender @param {string} status */
  const changed = (_sender, status) => {
    if (GONE.has(status)) lost();
  };
  signal.connect(changed);
  stopped.signal.addEventListener("abort", () => signal.disconnect(changed));
}

export default {
  /** @param {{model: Model, el: HTMLElement}} context */
  render({ model, el }) {
    const box = make("div", "nbagent-timeline", el);
    box.tabIndex = -1;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Agent run");
    box.setAttribute("data-lm-suppress-shortcuts", "true");
    const head = header(box);
    const lines = timeline(make("div", "nbagent-items", box));
    const feed = stream(model, lines, head.sync);
    const stop = stopper(model);
    const stopped = new AbortController();
    const onHead = () => head.show(model.get("head"));
    /** @param {Message} message */
    const onMessage = (message) => (message.op === "stop-seen" ? stop.seen() : feed.take(message));
    model.on("change:head", onHead);
    model.on("msg:custom", onMessage);
    onHead();
    feed.ask();
    const attach = () => {
      if (stopped.signal.aborted) return;
      const outer = el.closest(".nbagent-view");
      const ready = outer instanceof HTMLElement && outer.querySelector(".nbagent-asks");
      if (ready) {
        controls(outer, box, model, () => model.get("head")?.running && stop.clicked(), stopped);
        follow(outer, stopped);
      } else setTimeout(attach, 50); // the container puts its children in one by one
    };
    attach();
    watchKernel(model, () => {
      if (!model.get("head")?.running) return;
      head.gone();
      for (const button of (el.closest(".nbagent-view") ?? el).querySelectorAll(".nbagent-button, input")) {
        button.setAttribute("disabled", "");
      }
    }, stopped);
    return () => {
      stopped.abort();
      model.off("change:head", onHead);
      model.off("msg:custom", onMessage);
      feed.stop();
      stop.seen();
      head.stop();
    };
  },
};
