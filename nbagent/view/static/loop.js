// @ts-check
/**
 * The page's side of the live loop view: pieces of HTML by their keys, put in place as they come. All HTML was made safe in
 * Python (view/loopview). What was opened stays open where a piece does not change. Read `render`.
 *
 * @typedef {{region: string, key: string, html: string | null}} Piece null takes the piece away
 * @typedef {{op: string, seq: number, pieces: Piece[]}} LoopMessage
 * @typedef {{on(name: string, f: (...args: any[]) => void): void, off(name: string, f: (...args: any[]) => void): void,
 *   send(content: unknown): void}} LoopModel
 */
import { make } from "./dom.js";

const REGIONS = ["state", "turns", "source", "exchange", "transcript"];

export default {
  /** @param {{model: LoopModel, el: HTMLElement}} context */
  render({ model, el }) {
    const box = make("div", "nbl nbagent-loop", el);
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "The loop");
    const top = make("div", "nbl-top", box);
    const left = make("div", "", top);
    const places = new Map(REGIONS.map((name) => [
      name, make("div", `nbl-${name}`, name === "source" ? top : name === "state" || name === "turns" ? left : box),
    ]));
    /** @type {Map<string, HTMLElement>} */
    const pieces = new Map();
    let seq = -1;
    /** @param {LoopMessage} message */
    const take = (message) => {
      if (message.op !== "snapshot" && (seq < 0 || message.seq !== seq + 1)) {
        if (seq >= 0 && message.seq <= seq) return;
        seq = -1;
        model.send({ op: "snapshot" });
        return;
      }
      if (message.op === "snapshot") {
        for (const piece of pieces.values()) piece.remove();
        pieces.clear();
      }
      seq = message.seq;
      for (const { region, key, html } of message.pieces) {
        const there = pieces.get(key);
        if (html === null) {
          there?.remove();
          pieces.delete(key);
          continue;
        }
        const piece = there ?? make("div", "", places.get(region));
        piece.innerHTML = html;
        pieces.set(key, piece);
      }
    };
    model.on("msg:custom", take);
    model.send({ op: "snapshot" });
    return () => model.off("msg:custom", take);
  },
};
