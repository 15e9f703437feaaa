// A live terminal in a notebook: an anywidget view of one session.

import xtermStyle from "@xterm/xterm/css/xterm.css";
import { emulator, textOf } from "./emulator.js";
import { FindBar } from "./findbar.js";
import { Height } from "./height.js";
import { Input } from "./input.js";
import { fence, hear, viewId } from "./model.js";
import {
  chooseScreenReader, isScreenReaderKey, onScreenReader, SCREEN_READER_KEY, screenReader,
} from "./screenreader.js";
import { Stream } from "./stream.js";
import style from "./style.css";
import { onThemeChange, paint } from "./theme.js";
import { LEAVE_KEY, TitleBar } from "./titlebar.js";

/** Milliseconds for which a view must have kept its width before the program is told. */
const SETTLED = 80;
/** Rows that the terminal of a program that has ended keeps. */
const LEAST_ROWS = 3;
/** Rows that a program gets at least that fills the screen: what such programs are made for. */
const FULL_SCREEN_ROWS = 24;
/** States in which a program may go on printing. */
const ALIVE = new Set(["running", "backing-off", "unknown"]);

export class TerminalView {
  /**
   * @param {{model: import("./model.js").Model, el: HTMLElement, close?: () => void}} context - close: what its button
   *   to close it does; without it there is none
   */
  constructor({ model, el, close }) {
    this.model = model;
    this.el = el;
    this.id = viewId();
    this.readOnly = model.get("read_only");
    this.full = this.focused = false;
    /** @type {(() => void)[]} */
    this.endings = [];
    this.#build(model, close);
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

  /** @param {import("./model.js").Model} model @param {() => void} [close] */
  #build(model, close) {
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
    fence(this.root);
    const kind = { readOnly: this.readOnly, cell: model.get("kind") === "cell" };
    this.bar = new TitleBar(document, { ...this.#actions(), close }, kind);
    this.root.append(this.bar.element);
    this.screen = make("sm-screen", this.root);
    this.place = make("sm-place", this.screen);
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
      reader: () => this.#chooseReader(),
    };
  }

  #terminal() {
    Object.assign(this, emulator(this.el, this.model.get("facts").size, this.readOnly));
    const { term } = this;
    this.find = new FindBar(this.el.ownerDocument, this.search, () => term.focus());
    this.bar.element.after(this.find.element);
    const row = Math.ceil(term.options.fontSize * 1.17 * term.options.lineHeight);
    this.height = new Height(this.root, this.screen, row);
    this.rows = this.model.get("rows");
    this.height.setRows(this.rows);
    this.screen.after(this.height.grip);
    this.#reader(screenReader(window));
    paint(this);
    term.open(this.place);
    if (this.readOnly) term.textarea.readOnly = true;
  }

  // ---- what happens to it

  #listen() {
    const { term } = this;
    this.hear();
    term.buffer.onBufferChange(() => this.#fold());
    term.onData((data) => this.readOnly || this.input.type(data));
    term.onBinary((data) => this.readOnly || this.input.binary(data));
    term.onWriteParsed(() => {
      this.#follow();
      this.#fold();
    });
    term.attachCustomKeyEventHandler((event) => this.#key(event));
    this.bar.element.addEventListener("keydown", (event) => this.#barKey(event));
    this.root.addEventListener("focusin", () => this.#focus(true));
    this.root.addEventListener("focusout", (event) => this.#focus(this.root.contains(event.relatedTarget)));
    const resized = new ResizeObserver(() => this.#settle());
    resized.observe(this.screen);
    this.endings.push(
      () => resized.disconnect(),
      onThemeChange(this.el, () => paint(this)),
      onScreenReader(window, (on) => this.#reader(on)),
    );
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

  hear() {
    this.unhear = hear(this.model, {
      "msg:custom": (content, buffers) => this.#message(content, buffers),
      "change:facts": () => this.#facts(),
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
    this.#label(facts.name);
    this.root.classList.toggle("sm-waiting", Boolean(facts.waiting));
    const [rows, columns] = facts.size;
    this.root.classList.toggle("sm-guest", facts.owner !== this.id);
    this.term.options.cursorInactiveStyle = this.readOnly || !ALIVE.has(facts.state) ? "none" : "outline";
    this.#fold();
    if (facts.owner === this.id) this.#settle();
    else if (rows !== this.term.rows || columns !== this.term.cols) this.term.resize(columns, rows);
  }

  /** @param {string} name - of the session */
  #label(name) {
    const keys = `${LEAVE_KEY} leaves it, ${SCREEN_READER_KEY} turns screen reader mode on or off`;
    const label = this.readOnly ? `Output of ${name}, read-only` : `Terminal of ${name}. ${keys}`;
    if (this.term.textarea.getAttribute("aria-label") !== label) this.term.textarea.setAttribute("aria-label", label);
    this.height.label(name);
  }

  // ---- the keyboard

  /** Whether a key that was pressed in the terminal is for the program. @param {KeyboardEvent} event */
  #key(event) {
    if (this.readOnly && event.key === "Tab") return false; // there is no program to have it
    const action = isScreenReaderKey(event) ? () => this.#chooseReader() : this.#action(event);
    if (!action) return true;
    if (event.type === "keydown") action();
    event.preventDefault();
    return false;
  }

  /** @param {KeyboardEvent} event */
  #action(event) {
    if (!(event.ctrlKey && event.shiftKey) || event.altKey) return undefined;
    return { ENTER: () => this.leave(), F: () => this.find.open(), C: () => this.#copy() }[event.key.toUpperCase()];
  }

  /** @param {KeyboardEvent} event */
  #barKey(event) {
    if (isScreenReaderKey(event)) this.#chooseReader();
    else if (event.key === "Enter" && event.ctrlKey && event.shiftKey) this.term.focus();
    else return;
    event.preventDefault();
  }

  /** Give the keyboard back to the notebook, or to the buttons where there is none. */
  leave() {
    const notebook = /** @type {HTMLElement | null} */ (this.el.closest(".jp-Notebook"));
    this.term.blur();
    if (notebook) {
      notebook.focus();
      return;
    }
    this.term.textarea.tabIndex = -1; // as long as the keyboard is in this widget: Tab would lead back in
    this.bar.focus();
  }

  /** @param {boolean} focused */
  #focus(focused) {
    const { textarea } = this.term;
    const typing = /** @type {Document | ShadowRoot} */ (this.root.getRootNode()).activeElement === textarea;
    if (typing || !focused) textarea.tabIndex = 0;
    clearTimeout(this.hintTimer);
    this.hint.classList.toggle("sm-shown", focused && typing && !this.readOnly);
    if (focused !== this.focused) this.send({ t: "focus", view: this.id, on: focused });
    this.focused = focused;
    if (!focused) return;
    this.hintTimer = setTimeout(() => this.hint.classList.remove("sm-shown"), 4000);
  }

  #chooseReader() {
    const on = !this.term.options.screenReaderMode;
    chooseScreenReader(window, on);
    this.bar.notice(`screen reader mode ${on ? "on" : "off"}`);
  }

  /** @param {boolean} on */
  #reader(on) {
    this.term.options.screenReaderMode = on;
    this.bar.press("reader", on);
  }

  // ---- its size

  /** In a view that is lower than the terminal, keep the cursor in sight. */
  #follow() {
    const { screen, term } = this;
    if (screen.scrollHeight <= screen.clientHeight + 1) return;
    const row = this.place.querySelector(".xterm-screen").offsetHeight / term.rows;
    screen.scrollTop = (term.buffer.active.cursorY + 2) * row - screen.clientHeight;
  }

  /** After the end of a program, give back the rows that it left empty; they come back with it. One that fills the screen has more. */
  #fold() {
    if (this.height.chosen || this.full) return;
    const { active } = this.term.buffer;
    const fold = !ALIVE.has(this.model.get("facts").state) && active.type === "normal";
    const used = active.baseY + active.cursorY + (active.cursorX > 0 ? 1 : 0);
    const usual = this.model.get("rows");
    const open = active.type === "alternate" ? Math.max(usual, FULL_SCREEN_ROWS) : usual;
    const rows = fold ? Math.min(Math.max(used, LEAST_ROWS), usual) : open;
    if (rows !== this.rows) this.height.setRows(rows);
    this.rows = rows;
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

  #fullHeight() {
    this.full = !this.full;
    if (this.full) this.before = this.height.pixels;
    const notebook = this.el.closest(".jp-WindowedPanel-outer, .jp-Notebook");
    const room = (notebook?.clientHeight || window.innerHeight) - this.bar.element.offsetHeight - 24;
    this.height.pixels = this.full ? room : this.before;
    this.bar.press("full", this.full);
    this.root.scrollIntoView({ block: "nearest" });
    this.term.focus();
  }

  // ---- text

  /** All text of scrollback and screen. */
  text() {
    return textOf(this.term.buffer.active);
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

  /** It is in another place of the page. */
  moved() {
    this.#facts();
    this.#settle();
  }

  close() {
    this.unhear();
    for (const end of this.endings) end();
    clearTimeout(this.settleTimer);
    this.stream.close();
    this.input.close();
    this.term.dispose();
    clearTimeout(this.hintTimer);
    this.bar.close();
  }
}
