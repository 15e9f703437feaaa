// The height of a terminal's screen, and the grip below it that changes it by pointer or keys.

/** Pixels above and below the rows. */
const PADDING = 16;
const LEAST = 72;
/** Rows by which Page Up and Page Down change it. */
const PAGE = 10;

export class Height {
  /**
   * @param {HTMLElement} root - of the terminal; its style has the height
   * @param {HTMLElement} screen
   * @param {number} row - height of a row in pixels
   */
  constructor(root, screen, row) {
    this.root = root;
    this.screen = screen;
    this.row = row;
    /** Whether the person has chosen it. */
    this.chosen = false;
    this.grip = root.ownerDocument.createElement("div");
    this.grip.className = "sm-grip";
    this.grip.tabIndex = 0;
    this.grip.title = "Drag, or arrow keys, to change the height";
    for (const [name, value] of Object.entries({ role: "separator", "aria-orientation": "horizontal" })) {
      this.grip.setAttribute(name, value);
    }
    this.grip.addEventListener("pointerdown", (event) => this.#drag(event));
    this.grip.addEventListener("keydown", (event) => this.#key(event));
  }

  /** @param {string} name - of the session */
  label(name) {
    this.grip.setAttribute("aria-label", `Height of ${name}`);
  }

  get pixels() {
    return parseInt(this.root.style.getPropertyValue("--sm-height"), 10);
  }

  set pixels(wanted) {
    const pixels = Math.round(Math.max(LEAST, wanted));
    this.root.style.setProperty("--sm-height", `${pixels}px`);
    const rows = Math.floor((pixels - PADDING) / this.row);
    const most = Math.max(rows, this.#most());
    const values = { now: rows, min: Math.floor((LEAST - PADDING) / this.row), max: most, text: `${rows} rows` };
    for (const [name, value] of Object.entries(values)) this.grip.setAttribute(`aria-value${name}`, String(value));
  }

  /** @param {number} rows */
  setRows(rows) {
    this.pixels = rows * this.row + PADDING;
  }

  /** Rows that a window shows at once. */
  #most() {
    return Math.floor(this.root.ownerDocument.defaultView.innerHeight / this.row);
  }

  /** @param {PointerEvent} event */
  #drag(event) {
    const from = this.screen.offsetHeight - event.clientY;
    this.grip.setPointerCapture(event.pointerId);
    this.grip.onpointermove = (move) => {
      this.chosen = true;
      this.pixels = from + move.clientY;
    };
    this.grip.onpointerup = this.grip.onpointercancel = () => (this.grip.onpointermove = null);
    event.preventDefault();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -PAGE, PageDown: PAGE, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    this.chosen = true;
    if (Number.isFinite(step)) this.pixels += step * this.row;
    else this.setRows(step < 0 ? 0 : this.#most());
    event.preventDefault();
  }
}
