// @ts-check
/**
 * Puts the tray of a kernel into the panels of its notebook: at the bottom, in room that the cells make for it only while
 * there is something to show. Must not know what is in it; a tray that cannot be put there is left out, and what waits is
 * in the runs' own panels all the same. Read `trayHanger`.
 */

/**
 * Where a panel's tray stands, and the room that it takes from the cells.
 * @param {HTMLElement} panel
 */
function makePlace(panel) {
  const host = document.createElement("div");
  host.className = "nbagent-trayhost";
  panel.append(host);
  panel.dataset.nbagentTray = "1";
  /** Keep the cell that the person types in above the edge that has just moved. @param {number} by */
  const follow = (by) => {
    const active = document.activeElement?.closest(".jp-Cell") ? document.activeElement : null;
    const scroller = panel.querySelector(".jp-WindowedPanel-outer");
    if (by <= 0 || !active || !scroller?.contains(active)) return;
    const line = active.querySelector(".cm-activeLine") ?? active;
    const over = line.getBoundingClientRect().bottom - scroller.getBoundingClientRect().bottom;
    if (over > 0) scroller.scrollTop += over + 4;
  };
  let height = 0;
  const sizes = new ResizeObserver(() => {
    const now = Math.ceil(host.getBoundingClientRect().height);
    if (now === height) return;
    panel.style.setProperty("--nbagent-tray", `${now}px`);
    follow(now - height);
    height = now;
  });
  sizes.observe(host);
  return {
    host,
    clear() {
      sizes.disconnect();
      host.remove();
      panel.style.removeProperty("--nbagent-tray");
      delete panel.dataset.nbagentTray;
    },
  };
}

/** @param {any} manager */
export function trayHanger(manager) {
  /** @type {Map<HTMLElement, {id: string, place: ReturnType<typeof makePlace>, view: any, over: boolean}>} */
  const hung = new Map();
  /** @param {HTMLElement} panel */
  const drop = (panel) => {
    const one = hung.get(panel);
    if (!one) return;
    hung.delete(panel);
    one.over = true;
    try {
      one.view?.luminoWidget.dispose();
    } catch {
      one.view?.remove();
    }
    one.place.clear();
  };
  /**
   * @param {HTMLElement} panel
   * @param {string} id of the model that is shown; "": none
   */
  const hang = async (panel, id) => {
    if (hung.get(panel)?.id === id) return;
    drop(panel);
    if (!id || !manager.has_model?.(id)) return;
    const one = { id, place: makePlace(panel), view: /** @type {any} */ (null), over: false };
    hung.set(panel, one);
    try {
      const view = await manager.create_view(await manager.get_model(id));
      if (one.over) return void view.remove();
      one.view = view;
      view.luminoWidget.constructor.attach(view.luminoWidget, one.place.host); // Lumino's own: a view hears that it stands
    } catch {
      drop(panel);
    }
  };
  return {
    hang,
    drop,
    /** Let go of the panels that are none any more. @param {(panel: HTMLElement) => boolean} isMine */
    sweep: (isMine) => [...hung.keys()].filter((panel) => !panel.isConnected || !isMine(panel)).forEach(drop),
  };
}
