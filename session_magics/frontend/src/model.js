// The widget model, as anywidget hands it to a view.

/**
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(message: object) => void} send
 * @property {Function} on
 * @property {Function} off
 * @property {any} [widget_manager] - missing in marimo
 */

/** Events that the notebook must not see: its shortcuts would take keys, its menu the right button. */
const KEPT = ["keydown", "keyup", "keypress", "paste", "copy", "contextmenu", "wheel"];

/** A name for a view that no other view has, in any page. */
export function viewId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(36)).join("");
}

/**
 * Whether two are one. anywidget makes an object of its own for each view; the layout is the widget's, which every
 * widget has.
 * @param {Model} a
 * @param {Model} b
 */
export function sameModel(a, b) {
  const held = (/** @type {Model} */ model) => model.get("layout") ?? model;
  return held(a) === held(b);
}

/** Listen; the function that ends it is returned. @param {Model} model @param {Record<string, Function>} handlers */
export function hear(model, handlers) {
  for (const [event, handler] of Object.entries(handlers)) model.on(event, handler);
  return () => {
    for (const [event, handler] of Object.entries(handlers)) model.off(event, handler);
  };
}

/** Keep keys and menus of an element from the notebook around it. @param {HTMLElement} root */
export function fence(root) {
  root.dataset.lmSuppressShortcuts = "true";
  for (const kind of KEPT) root.addEventListener(kind, (event) => event.stopPropagation());
}
