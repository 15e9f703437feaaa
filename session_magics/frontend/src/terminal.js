// A live terminal in a notebook: an anywidget view of one session.

import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { SerializeAddon } from "@xterm/addon-serialize";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import xtermStyle from "@xterm/xterm/css/xterm.css";
import { FindBar } from "./findbar.js";
import { Input } from "./input.js";
import { mute } from "./reports.js";
import { Stream } from "./stream.js";
import style from "./style.css";
import { isDark, onThemeChange, palette } from "./theme.js";
import { LEAVE_KEY, TitleBar } from "./titlebar.js";

/** Lines above the screen. A line of 80 columns takes 1 KB of the page's memory. */
const SCROLLBACK = 10_000;
/** Milliseconds for which a view must have kept its width before the program is told. */
const SETTLED = 80;
/** Events that the notebook must not see: its shortcuts would take keys, its menu the right button. */
const KEPT = ["keydown", "keyup", "keypress", "paste", "copy", "contextmenu", "wheel"];
const LEAST_HEIGHT = 72;

/** @typedef {{get: (name: string) => any, send: (message: object) => void, on: Function, off: Function}} Model */

export class TerminalView {
  /** @param {{model: Model, el: HTMLElement}} context */
  constructor({ model, el }) {
    this.model = model;
    this.el = el;
    this.id = Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(36)).join("");
    this.readOnly = model.get("read_only");
    this.full = this.focused = false;
    /** @type {(() => void)[]} */
    this.endings = [];
    this.#build(model);
    this.#terminal();
    this.stream = new Stream(this.id, (message) => this.send(message), {
      write: (bytes, done) => this.term.write(bytes, done),
      reset: () => this.term.reset(),
      hole: (bytes) => this.term.write(`\x1b[0m\r\n\x1b[2m… ${bytes.toLocaleString("en")} bytes are not shown …\x1b[0m\r\n`),
    });
    this.input = new Input(this.id, (message) => this.send(message));
    this.#listen();
    this.#facts();
    this.stream.start();
  }

  /** The kernel may be gone, and then sending throws. @param {object} message */
  send(message) {
    try {
      this.model.send(message);
    } catch {
      this.bar.notice("the kernel does not answer");
    }
  }

  // ---- what it is made of

  #build(model) {
    const { ownerDocument: document } = this.el;
    const make = (name, parent) => {
      const part = document.createElement("div");
      part.className = name;
      parent.append(part);
      return part;
    };
    const sheet = document.createElement("style");
    sheet.textContent = xtermStyle + style;
    this.el.append(sheet);
    this.outer = make("sm-outer", this.el);
    this.root = make("sm", this.outer);
    this.root.dataset.lmSuppressShortcuts = "true";
    this.bar = new TitleBar(document, this.#actions(), { readOnly: this.readOnly, cell: model.get("kind") === "cell" });
    this.root.append(this.bar.element);
    this.screen = make("sm-screen", this.root);
    this.place = make("sm-place", this.screen);
    this.grip = make("sm-grip", this.root);
    this.hint = make("sm-hint", this.root);
    this.hint.textContent = `${LEAVE_KEY} leaves the terminal`;
    this.outer.__session_magics = this; // for tests, and to be found from a page's console
  }

  #actions() {
    return {
      interrupt: () => this.send({ t: "interrupt", view: this.id }),
      stop: () => {
        this.send({ t: "stop", view: this.id, now: this.bar.stopping });
        this.bar.stopping = true;
        this.#facts();
      },
      restart: () => this.send({ t: "restart", view: this.id }),
      copy: () => this.#copy(),
      find: () => this.find.open(),
      clear: () => this.term.clear(),
      full: () => this.#fullHeight(),
    };
  }

  #terminal() {
    const css = getComputedStyle(this.el);
    this.term = new Terminal({
      allowProposedApi: true,
      fontFamily: css.getPropertyValue("--jp-code-font-family").trim() || "ui-monospace, Menlo, Consolas, monospace",
      fontSize: parseInt(css.getPropertyValue("--jp-code-font-size"), 10) || 13,
      lineHeight: 1.15,
      scrollback: SCROLLBACK,
      cursorBlink: !this.readOnly,
      cursorInactiveStyle: this.readOnly ? "none" : "outline",
      disableStdin: this.readOnly,
      minimumContrastRatio: 4.5,
      convertEol: true,
      rows: this.model.get("facts").size[0],
      cols: this.model.get("facts").size[1],
    });
    const { term } = this;
    this.fit = new FitAddon();
    this.search = new SearchAddon();
    this.serialize = new SerializeAddon();
    for (const addon of [this.fit, this.search, this.serialize, new WebLinksAddon(), new Unicode11Addon()]) {
      term.loadAddon(addon);
    }
    term.unicode.activeVersion = "11";
    mute(term);
    // The session's terminal leaves LF as it is, which programs that print lines mean as a new line. Those that
    // draw a screen know it, and mean "one row down".
    term.buffer.onBufferChange((buffer) => (term.options.convertEol = buffer.type === "normal"));
    this.find = new FindBar(this.el.ownerDocument, this.search, () => term.focus());
    this.root.append(this.find.element);
    this.#height(this.model.get("rows"));
    this.#theme();
    term.open(this.place);
    if (this.readOnly) term.textarea.readOnly = true;
  }

  #theme() {
    const dark = isDark(this.el);
    const colours = palette(dark);
    this.root.toggleAttribute("data-dark", dark);
    this.root.style.setProperty("--sm-term", colours.background);
    this.term.options.theme = colours;
  }

  // ---- what happens to it

  #listen() {
    const { term } = this;
    const message = (content, buffers) => this.#message(content, buffers);
    const facts = () => this.#facts();
    this.model.on("msg:custom", message);
    this.model.on("change:facts", facts);
    this.endings.push(() => this.model.off("msg:custom", message), () => this.model.off("change:facts", facts));
    term.onData((data) => this.readOnly || this.input.type(data));
    term.onBinary((data) => this.readOnly || this.input.binary(data));
    term.onWriteParsed(() => this.#follow());
    term.attachCustomKeyEventHandler((event) => this.#key(event));
    for (const kind of KEPT) this.root.addEventListener(kind, (event) => event.stopPropagation());
    this.root.addEventListener("focusin", () => this.#focus(true));
    this.root.addEventListener("focusout", () => this.#focus(false));
    this.#grip();
    const resized = new ResizeObserver(() => this.#settle());
    resized.observe(this.screen);
    this.endings.push(() => resized.disconnect(), onThemeChange(this.el, () => this.#theme()));
    const ticking = setInterval(() => this.bar.tick(), 1000);
    const seen = () => {
      this.send({ t: "hidden", view: this.id, hidden: document.hidden });
      if (!document.hidden) this.stream.here();
    };
    const { ownerDocument: document } = this.el;
    document.addEventListener("visibilitychange", seen);
    window.addEventListener("online", seen);
    this.endings.push(() => {
      clearInterval(ticking);
      document.removeEventListener("visibilitychange", seen);
      window.removeEventListener("online", seen);
    });
  }

  /** @param {any} content @param {DataView[]} buffers */
  #message(content, buffers) {
    if (content.t === "o" || content.t === "head") {
      const data = buffers[0];
      const bytes = data ? new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength) : new Uint8Array();
      if (this.stream.receive(content, bytes)) this.input.answered();
    } else if (content.t === "notice" && (!content.view || content.view === this.id)) {
      this.bar.notice(content.text);
    }
  }

  #facts() {
    const facts = this.model.get("facts");
    this.bar.show(facts);
    this.root.classList.toggle("sm-waiting", Boolean(facts.waiting));
    const [rows, columns] = facts.size;
    this.root.classList.toggle("sm-guest", facts.owner !== this.id);
    if (facts.owner === this.id) this.#settle();
    else if (rows !== this.term.rows || columns !== this.term.cols) this.term.resize(columns, rows);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (!(event.ctrlKey && event.shiftKey) || event.altKey) return true;
    const action = { ENTER: () => this.leave(), F: () => this.find.open(), C: () => this.#copy() }[event.key.toUpperCase()];
    if (!action) return true;
    if (event.type === "keydown") action();
    event.preventDefault();
    return false;
  }

  /** Give the keyboard back to the notebook, or to the buttons where there is none. */
  leave() {
    const notebook = /** @type {HTMLElement | null} */ (this.el.closest(".jp-Notebook"));
    this.term.blur();
    if (notebook) notebook.focus();
    else this.bar.element.querySelector("button")?.focus();
  }

  /** @param {boolean} focused */
  #focus(focused) {
    this.hint.classList.toggle("sm-shown", focused && !this.readOnly);
    clearTimeout(this.hintTimer);
    if (focused !== this.focused) this.send({ t: "focus", view: this.id, on: focused });
    this.focused = focused;
    if (!focused) return;
    this.hintTimer = setTimeout(() => this.hint.classList.remove("sm-shown"), 4000);
  }

  // ---- its size

  /** In a view that is lower than the terminal, keep the cursor in sight. */
  #follow() {
    const { screen, term } = this;
    if (screen.scrollHeight <= screen.clientHeight + 1) return;
    const row = this.place.querySelector(".xterm-screen").offsetHeight / term.rows;
    screen.scrollTop = (term.buffer.active.cursorY + 2) * row - screen.clientHeight;
  }

  #settle() {
    clearTimeout(this.settleTimer);
    this.settleTimer = setTimeout(() => this.#measure(), SETTLED);
  }

  #measure() {
    if (this.model.get("facts").owner !== this.id || !this.screen.clientWidth) return;
    const size = this.fit.proposeDimensions();
    if (!size || !(size.cols > 1) || !(size.rows > 1)) return;
    const [rows, columns] = this.model.get("facts").size;
    if (size.rows !== this.term.rows || size.cols !== this.term.cols) this.term.resize(size.cols, size.rows);
    if (size.rows !== rows || size.cols !== columns) {
      this.send({ t: "resize", view: this.id, rows: size.rows, columns: size.cols });
    }
  }

  /** @param {number} rows */
  #height(rows) {
    const row = Math.ceil(this.term.options.fontSize * 1.17 * this.term.options.lineHeight);
    this.root.style.setProperty("--sm-height", `${rows * row + 16}px`);
  }

  #fullHeight() {
    this.full = !this.full;
    if (this.full) this.before = this.root.style.getPropertyValue("--sm-height");
    const notebook = this.el.closest(".jp-WindowedPanel-outer, .jp-Notebook");
    const room = (notebook?.clientHeight || window.innerHeight) - this.bar.element.offsetHeight - 24;
    this.root.style.setProperty("--sm-height", this.full ? `${Math.max(room, LEAST_HEIGHT)}px` : this.before);
    this.bar.buttons.full.setAttribute("aria-pressed", String(this.full));
    this.root.scrollIntoView({ block: "nearest" });
    this.term.focus();
  }

  #grip() {
    this.grip.addEventListener("pointerdown", (event) => {
      const height = this.screen.offsetHeight;
      this.grip.setPointerCapture(event.pointerId);
      this.grip.onpointermove = (move) => {
        const wanted = Math.max(LEAST_HEIGHT, height + move.clientY - event.clientY);
        this.root.style.setProperty("--sm-height", `${wanted}px`);
      };
      this.grip.onpointerup = () => (this.grip.onpointermove = null);
      event.preventDefault();
    });
  }

  // ---- text

  /** All text of scrollback and screen. */
  text() {
    const buffer = this.term.buffer.active;
    const lines = [];
    const joined = (line) => buffer.type === "normal" && line?.isWrapped; // a drawn screen has no long lines
    for (let at = 0; at < buffer.length; at++) {
      const line = buffer.getLine(at);
      const part = line.translateToString(!joined(buffer.getLine(at + 1)));
      if (joined(line) && lines.length) lines[lines.length - 1] += part;
      else lines.push(part);
    }
    return lines.map((line) => line.trimEnd()).join("\n").trimEnd();
  }

  async #copy() {
    const selected = this.term.getSelection();
    try {
      await navigator.clipboard.writeText(selected || this.text());
      this.bar.notice(selected ? "selection copied" : "all text copied", 2);
    } catch {
      this.bar.notice("the browser does not allow it");
    }
  }

  /** Go on in another place of the page. @param {HTMLElement} el */
  move(el) {
    el.append(...this.el.childNodes);
    this.el = el;
    this.#settle();
  }

  close() {
    for (const end of this.endings) end();
    clearTimeout(this.settleTimer);
    clearTimeout(this.hintTimer);
    this.stream.close();
    this.input.close();
    this.bar.close();
    this.term.dispose();
  }
}

/** Views that are not closed. @type {Set<TerminalView>} */
const open = new Set();

/**
 * Show a session. When the text in a notebook's output is renewed, JupyterLab makes a second view and forgets the first
 * one, which is out of the page by then: it moves to the new place, with its scrollback and selection.
 * @param {{model: Model, el: HTMLElement}} context
 */
export function render({ model, el }) {
  const left = [...open].find((one) => one.model === model && !one.el.isConnected);
  const view = left ?? new TerminalView({ model, el });
  if (left) left.move(el);
  open.add(view);
  return () => {
    if (view.el !== el) return; // it has moved on
    open.delete(view);
    view.close();
  };
}
