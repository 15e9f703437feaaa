// What the page loads once: the views of all our widgets.

import { finalise } from "./finalise.js";
import { Keyboard } from "./keyboard.js";
import { sameModel } from "./model.js";
import { PlayerView } from "./player.js";
import { TableView } from "./table.js";
import { TerminalView } from "./terminal.js";

/** Views that are not closed. @type {Map<PlayerView | TableView | TerminalView, Keyboard>} */
const open = new Map();
const KINDS = { table: TableView, player: PlayerView };

/**
 * Have a view go on in another place of the page.
 * @param {PlayerView | TableView | TerminalView} view
 * @param {import("./model.js").Model} model
 * @param {HTMLElement} el
 */
function move(view, model, el) {
  view.unhear();
  view.model = model;
  view.hear();
  el.append(...view.el.childNodes);
  view.el = el;
  view.moved();
}

/**
 * Show a session, the table of them, or a recording. When the text in a notebook's output is renewed, JupyterLab makes a second view
 * and forgets the first one, which is out of the page by then: it moves to the new place, with all that it shows.
 * @param {{model: import("./model.js").Model, el: HTMLElement}} context
 */
export function render({ model, el }) {
  const left = [...open.keys()].find((one) => sameModel(one.model, model) && !one.el.isConnected);
  const view = left ?? new (KINDS[model.get("kind")] ?? TerminalView)({ model, el });
  if (left) {
    move(left, model, el);
    open.get(left)?.regain();
  } else open.set(view, new Keyboard(view.outer));
  finalise(model);
  return () => {
    if (view.el !== el) return; // it has moved on
    open.delete(view);
    view.close();
  };
}
