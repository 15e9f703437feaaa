// The terminals that were asked for from the table of sessions, below it.

import { hear } from "./model.js";
import { TerminalView } from "./terminal.js";

export class ShownTerminals {
  /**
   * @param {HTMLElement} place
   * @param {import("./model.js").Model} model - of the table
   * @param {() => void} changed - called when another one is shown, or one less
   */
  constructor(place, model, changed) {
    this.place = place;
    this.model = model;
    this.changed = changed;
    /**
     * Sessions whose terminal is wanted, and how to close it once it is there.
     * @type {Map<string, (() => void) | null>}
     */
    this.closers = new Map();
  }

  /** @param {string} id - of a session */
  has(id) {
    return this.closers.has(id);
  }

  /** Want one, or no longer. True if the kernel has to be asked. @param {string} id */
  toggle(id) {
    if (this.has(id)) {
      this.#end(id);
      return false;
    }
    this.closers.set(id, null);
    this.changed();
    return true;
  }

  /** The kernel has made a model. @param {string} id @param {string} modelId */
  async show(id, modelId) {
    const model = await this.model.widget_manager.get_model(modelId).catch(() => null);
    if (this.closers.get(id) !== null) return; // closed meanwhile, or there already
    if (!model) {
      this.#end(id);
      return;
    }
    const el = this.place.ownerDocument.createElement("div");
    this.place.append(el);
    const view = new TerminalView({ model, el, close: () => this.#end(id) });
    const unhear = hear(model, { destroy: () => this.#end(id) });
    this.closers.set(id, () => {
      unhear();
      view.close();
      el.remove();
    });
    el.scrollIntoView({ block: "nearest" });
  }

  /** What has not come will not come. */
  giveUp() {
    for (const [id, close] of [...this.closers]) if (!close) this.#end(id);
  }

  /** No session of this name will answer any more. @param {Set<string>} ids - of the sessions that are listed */
  retain(ids) {
    for (const id of [...this.closers.keys()]) if (!ids.has(id)) this.#end(id);
  }

  /** @param {string} id */
  #end(id) {
    const close = this.closers.get(id);
    this.closers.delete(id);
    close?.();
    this.changed();
  }

  close() {
    this.changed = () => {};
    this.retain(new Set());
  }
}
