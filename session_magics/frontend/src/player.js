// A recording that plays in a notebook. Nothing that is done here reaches a program, and no terminal is asked.

import xtermStyle from "@xterm/xterm/css/xterm.css";
import { Cast, clock, unpacked } from "./cast.js";
import { emulator, textOf } from "./emulator.js";
import { icon } from "./icons.js";
import { fence, hear } from "./model.js";
import { Playback, SPEEDS } from "./playback.js";
import playerStyle from "./player.css";
import style from "./style.css";
import { onThemeChange, paint } from "./theme.js";

/** Milliseconds after which a piece of the recording is asked for again. */
const ASK_AGAIN = 2000;
/** Bytes that may come as fast as they do, and milliseconds before each piece after them: the server drops more. */
const AT_ONCE = 2_000_000;
const PACE = 600;
/** Seconds that an arrow key goes. */
const SKIP = 5;
/** Pauses that there are to choose from; 0: as long as they were. */
const IDLE = [0, 0.5, 1, 2, 5];
/** Pixels of the smallest letters that a wide terminal gets. */
const SMALLEST = 7;
/** Parts of the seek bar. */
const STEPS = 1000;

export class PlayerView {
  /** @param {{model: import("./model.js").Model, el: HTMLElement}} context */
  constructor({ model, el }) {
    this.model = model;
    this.el = el;
    this.settings = model.get("settings");
    /** @type {Uint8Array[]} */
    this.pieces = [];
    this.have = 0;
    this.closed = false;
    this.#build();
    this.#terminal();
    this.hear();
    const resized = new ResizeObserver(() => this.#scale());
    resized.observe(this.screen);
    this.endings = [() => resized.disconnect(), onThemeChange(this.el, () => paint(this))];
    this.#ask();
  }

  // ---- the recording

  hear() {
    this.unhear = hear(this.model, { "msg:custom": (message, buffers) => this.#take(message, buffers) });
  }

  #ask() {
    clearTimeout(this.askTimer);
    try {
      this.model.send({ t: "cast", at: this.have });
    } catch {
      this.label.textContent = "the kernel does not answer";
    }
    this.askTimer = setTimeout(() => this.#ask(), ASK_AGAIN);
  }

  /** @param {{t: string, at: number}} message @param {DataView[]} buffers */
  async #take(message, buffers) {
    if (message.t !== "cast" || message.at !== this.have || this.playback) return;
    const { buffer, byteOffset, byteLength } = buffers[0];
    this.pieces.push(new Uint8Array(buffer, byteOffset, byteLength));
    this.have += byteLength;
    if (this.have < this.model.get("size")) {
      clearTimeout(this.askTimer);
      this.askTimer = setTimeout(() => this.#ask(), this.have < AT_ONCE ? 0 : PACE);
      return;
    }
    clearTimeout(this.askTimer);
    const events = await unpacked(this.pieces);
    this.pieces = [];
    if (!this.closed) this.#begin(events);
  }

  /** @param {import("./cast.js").CastEvent[]} events */
  #begin(events) {
    const { idleLimit, rows, columns, speed, startAt, autoplay } = this.settings;
    const { term } = this;
    this.cast = new Cast(events, idleLimit);
    const stage = {
      write: (/** @type {string} */ text, /** @type {() => void} */ done) => term.write(text, done),
      reset: () => term.reset(),
      resize: (/** @type {number} */ cols, /** @type {number} */ lines) => {
        if (cols !== term.cols || lines !== term.rows) term.resize(cols, lines);
        this.#scale();
      },
    };
    this.playback = new Playback(this.cast, stage, [rows, columns], () => this.#changed());
    this.playback.setSpeed(speed);
    this.#marks();
    this.playback.seek(startAt ? this.cast.played(startAt) : 0);
    if (autoplay) this.playback.play();
    this.#changed();
  }

  // ---- what it is made of

  #build() {
    const { ownerDocument: document } = this.el;
    const make = (name, parent, kind = "div") => {
      const part = document.createElement(kind);
      part.className = name;
      parent.append(part);
      return part;
    };
    const sheet = document.createElement("style");
    sheet.textContent = xtermStyle + style + playerStyle;
    this.el.append(sheet);
    this.outer = make("sm-outer", this.el);
    this.root = make("sm sm-player", this.outer);
    fence(this.root);
    const { title } = this.settings;
    const bar = make("sm-bar", this.root);
    make("sm-name", bar, "span").textContent = title;
    this.label = make("sm-label", bar, "span");
    make("sm-space", bar, "span");
    make("sm-badge", bar, "span").textContent = "recording";
    this.screen = make("sm-screen", this.root);
    this.place = make("sm-place", this.screen);
    this.controls = make("sm-controls", this.root);
    this.controls.setAttribute("role", "group");
    this.controls.setAttribute("aria-label", `Player of ${title}`);
    this.#controls(make);
    this.root.addEventListener("keydown", (event) => this.#key(event));
    this.outer.__session_magics = this; // for tests, and to be found from a page's console
  }

  /** @param {(name: string, parent: HTMLElement, kind?: string) => any} make */
  #controls(make) {
    this.button = this.#button(make, "play", "Play (Space)", () => this.playback?.toggle());
    this.#button(make, "back", "Previous marker ([)", () => this.playback?.jump(-1));
    this.#button(make, "forth", "Next marker (])", () => this.playback?.jump(1));
    this.clock = make("sm-clock", this.controls, "span");
    this.seek = make("sm-seek", this.controls);
    this.range = make("", this.seek, "input");
    Object.assign(this.range, { type: "range", min: 0, max: STEPS, value: 0, step: 1 });
    this.range.setAttribute("aria-label", "Position");
    this.range.addEventListener("input", () => this.playback?.seek((this.range.value / STEPS) * this.cast.duration));
    const { speed, idleLimit } = this.settings;
    this.speed = this.#select(make, "speed", "Speed (< and >)", SPEEDS, speed, (one) => `${one}×`);
    this.speed.addEventListener("change", () => this.playback?.setSpeed(Number(this.speed.value)));
    const pauses = (/** @type {number} */ one) => (one ? `pauses ≤ ${one} s` : "real pauses");
    this.idle = this.#select(make, "idle", "Longest pause", IDLE, idleLimit ?? 0, pauses);
    this.idle.addEventListener("change", () => {
      this.playback?.limit(Number(this.idle.value) || null);
      this.#marks();
    });
  }

  #button(make, name, label, action) {
    const button = make("", this.controls, "button");
    button.type = "button";
    button.dataset.action = name;
    button.addEventListener("click", action);
    this.#name(button, name, label);
    return button;
  }

  /** @param {HTMLElement} button @param {string} picture @param {string} label */
  #name(button, picture, label) {
    button.innerHTML = icon(picture);
    button.title = label;
    button.setAttribute("aria-label", label);
  }

  #select(make, name, label, values, chosen, text) {
    const select = make("", this.controls, "select");
    select.name = name;
    select.title = label;
    select.setAttribute("aria-label", label);
    for (const value of [...new Set([...values, chosen])].sort((a, b) => a - b)) {
      const option = make("", select, "option");
      option.value = value;
      option.textContent = text(value);
    }
    select.value = chosen;
    return select;
  }

  #terminal() {
    const { rows, columns } = this.settings;
    Object.assign(this, emulator(this.el, [rows, columns], true, false));
    paint(this);
    this.largest = this.term.options.fontSize;
    this.term.open(this.place);
    this.term.textarea.readOnly = true;
    this.term.textarea.setAttribute("aria-label", `Recording ${this.settings.title}. Space plays and pauses`);
    this.term.attachCustomKeyEventHandler(() => false);
  }

  /** Letters as small as it takes to have a whole row in sight, and no smaller than can be read. */
  #scale() {
    const width = this.place.querySelector(".xterm-screen")?.offsetWidth;
    if (!width || !this.place.clientWidth) return;
    const { options } = this.term;
    const fitting = Math.floor(((options.fontSize * this.place.clientWidth) / width) * 2) / 2;
    const size = Math.max(SMALLEST, Math.min(this.largest, fitting));
    if (size !== options.fontSize) options.fontSize = size;
  }

  // ---- what it shows

  /** Show where the markers are. */
  #marks() {
    for (const mark of [...this.seek.querySelectorAll("span")]) mark.remove();
    for (const { at } of this.cast.markers) {
      const mark = this.el.ownerDocument.createElement("span");
      mark.style.left = `${(100 * at) / (this.cast.duration || 1)}%`;
      this.seek.append(mark);
    }
  }

  #changed() {
    const { playback } = this;
    if (!playback) return;
    const name = playback.playing ? "pause" : "play";
    if (this.button.dataset.action !== name) {
      this.button.dataset.action = name;
      this.#name(this.button, name, `${name === "play" ? "Play" : "Pause"} (Space)`);
    }
    this.speed.value = String(playback.speed);
    this.#draw();
    if (playback.playing) this.#follow();
  }

  /** Go on while it plays. */
  #follow() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.playback.step();
      this.#draw();
      if (this.playback.playing && !this.closed) this.#follow();
    });
  }

  #draw() {
    const { playback, cast } = this;
    const [time, duration] = [clock(playback.time), clock(cast.duration)];
    const words = `${time} / ${duration}`;
    if (this.clock.textContent !== words) {
      this.clock.textContent = words;
      this.range.setAttribute("aria-valuetext", `${time} of ${duration}`);
    }
    this.range.value = String(Math.round((STEPS * playback.time) / (cast.duration || 1)));
    if (this.label.textContent !== playback.label) this.label.textContent = this.label.title = playback.label;
  }

  // ---- the keyboard

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { playback } = this;
    const target = /** @type {HTMLElement} */ (event.target);
    if (!playback || event.ctrlKey || event.metaKey || event.altKey || target.tagName === "SELECT") return;
    if (event.key === " " && target.tagName === "BUTTON") return; // it is pressed
    const actions = {
      " ": () => playback.toggle(),
      ArrowLeft: () => playback.seek(playback.time - SKIP),
      ArrowRight: () => playback.seek(playback.time + SKIP),
      Home: () => playback.seek(0),
      End: () => playback.seek(this.cast.duration),
      "<": () => playback.shift(-1),
      ">": () => playback.shift(1),
      "[": () => playback.jump(-1),
      "]": () => playback.jump(1),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** All text of scrollback and screen. */
  text() {
    return textOf(this.term.buffer.active);
  }

  /** It is in another place of the page. */
  moved() {
    this.#scale();
  }

  close() {
    this.closed = true;
    this.unhear();
    for (const end of this.endings) end();
    clearTimeout(this.askTimer);
    cancelAnimationFrame(this.frame);
    this.term.dispose();
  }
}
