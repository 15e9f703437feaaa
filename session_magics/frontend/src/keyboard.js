// The keyboard of a view that moves to another place of the page: what leaves the page for a moment loses it.

export class Keyboard {
  /** @param {HTMLElement} root - of a view; moves with it */
  constructor(root) {
    this.root = root;
    /** What has it, or had it when it left the page. @type {HTMLElement | null} */
    this.holder = null;
    root.addEventListener("focusin", (event) => (this.holder = /** @type {HTMLElement} */ (event.target)));
    root.addEventListener("focusout", () => queueMicrotask(() => this.#left()));
  }

  /** Some browsers tell nothing of what leaves the page with the keyboard, others that it has lost it. */
  #left() {
    if (this.root.isConnected && !this.root.contains(this.#active())) this.holder = null;
  }

  #active() {
    return /** @type {Document | ShadowRoot} */ (this.root.getRootNode()).activeElement ?? null;
  }

  /** Take it again once the view is in the page, unless somebody else has got it meanwhile. */
  regain() {
    const { holder, root } = this;
    if (!holder) return;
    const shown = new ResizeObserver(() => {
      if (!root.isConnected) return;
      shown.disconnect();
      const { activeElement, body } = root.ownerDocument;
      if (!activeElement || activeElement === body) holder.focus({ preventScroll: true });
    });
    shown.observe(root);
  }
}
