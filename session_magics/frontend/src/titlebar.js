// The line above a terminal: what runs there, how it is, and what can be done with it.

import { badge, elapsed, mood, shortened } from "./facts.js";
import { icon } from "./icons.js";
import { SCREEN_READER_KEY } from "./screenreader.js";

/** Ends the terminal's hold of the keyboard: free in browsers and in JupyterLab, and Enter to programs otherwise. */
export const LEAVE_KEY = "Ctrl+Shift+Enter";

/**
 * @typedef {object} Actions
 * @property {() => void} interrupt
 * @property {() => void} stop
 * @property {() => void} restart
 * @property {() => void} copy
 * @property {() => void} find
 * @property {() => void} clear
 * @property {() => void} full
 * @property {() => void} [close] - where this view can be closed by itself
 * @property {() => void} reader - screen reader mode on or off
 */

/**
 * Name, label with the session's name after it, hint, and whether it changes the program.
 * @type {[string, string, string, boolean][]}
 */
const BUTTONS = [
  ["interrupt", "Interrupt", "Interrupt (as Ctrl+C does)", true],
  ["stop", "Stop", "Stop all its processes", true],
  ["restart", "Restart", "Restart", true],
  ["copy", "Copy the text of", "Copy the selection, or all (Ctrl+Shift+C)", false],
  ["find", "Find in", "Find (Ctrl+Shift+F)", false],
  ["clear", "Clear this view of", "Clear this view", false],
  ["full", "Full height for", "Full height", false],
  ["close", "Close this view of", "Close this view", false],
];

export class TitleBar {
  /**
   * @param {Document} document
   * @param {Actions} actions
   * @param {{readOnly: boolean, cell: boolean}} options - cell: the command of a cell, which ends with it
   */
  constructor(document, actions, { readOnly, cell }) {
    this.actions = actions;
    this.readOnly = readOnly;
    this.stopping = false;
    this.element = document.createElement("div");
    this.element.className = "sm-bar";
    this.element.setAttribute("role", "group");
    this.element.innerHTML =
      '<span class="sm-dot" aria-hidden="true"></span><span class="sm-name"></span><span class="sm-program"></span>' +
      '<span class="sm-directory"></span><span class="sm-space"></span><span class="sm-notice" role="status"></span>' +
      '<span class="sm-elapsed"></span><span class="sm-badge"></span><span class="sm-hidden" role="status"></span>' +
      '<span class="sm-buttons"></span>';
    /** @type {Record<string, HTMLElement>} */
    this.parts = {};
    for (const part of this.element.querySelectorAll("span")) this.parts[part.className.slice(3)] = part;
    /** @type {Record<string, HTMLButtonElement>} */
    this.buttons = {};
    const reader = this.#button("reader");
    reader.textContent = "Screen reader";
    for (const [name, , , changes] of BUTTONS) {
      if ((readOnly && changes) || (cell && (name === "stop" || name === "restart")) || !actions[name]) continue;
      this.#button(name).innerHTML = icon(name);
    }
    this.press("full", false);
  }

  /** @param {string} name */
  #button(name) {
    const button = this.element.ownerDocument.createElement("button");
    button.type = "button";
    button.dataset.action = name;
    button.addEventListener("click", () => button.getAttribute("aria-disabled") !== "true" && this.actions[name]());
    this.parts.buttons.append(button);
    this.buttons[name] = button;
    return button;
  }

  /** @param {string} name @param {string} label @param {string} hint */
  #label(name, label, hint) {
    this.buttons[name]?.setAttribute("aria-label", label);
    if (this.buttons[name]) this.buttons[name].title = hint;
  }

  /** Name everything after the session. @param {string} name */
  #named(name) {
    this.element.setAttribute("aria-label", `Session ${name}`);
    for (const [action, label, hint] of BUTTONS) this.#label(action, `${label} ${name}`, hint);
    this.#label("reader", `Screen reader mode (${SCREEN_READER_KEY})`, `Screen reader mode, ${SCREEN_READER_KEY}`);
  }

  /** Show whether a button that stays down is down. @param {string} name @param {boolean} down */
  press(name, down) {
    this.buttons[name].setAttribute("aria-pressed", String(down));
  }

  focus() {
    Object.values(this.buttons)[1].focus(); // after that for screen readers, which shows itself where it has the focus
  }

  /** @param {import("./facts.js").Facts} facts */
  show(facts) {
    const { parts } = this;
    if (this.facts?.name !== facts.name) this.#named(facts.name);
    const news = this.facts !== undefined;
    this.facts = facts;
    this.element.dataset.mood = mood(facts);
    parts.name.textContent = facts.name;
    parts.program.textContent = facts.command || facts.program;
    parts.program.title = facts.program;
    parts.directory.textContent = shortened(facts.directory);
    parts.directory.title = facts.directory;
    const words = badge(facts) + (this.readOnly ? " · read-only" : "");
    if (parts.badge.textContent !== words) {
      parts.badge.textContent = words;
      const told = words.replace(/ · \d+m\b/, ""); // minutes that pass are no news
      if (news && told !== this.told) parts.hidden.textContent = `${facts.name}: ${told}`;
      this.told = told;
    }
    const running = facts.state === "running";
    if (!running && facts.state !== "backing-off") this.stopping = false;
    this.#allow("interrupt", running);
    this.#allow("stop", running || facts.state === "backing-off");
    if (this.stopping) this.#label("stop", `Stop ${facts.name} now`, "Stop now, without waiting");
    else this.#label("stop", `Stop ${facts.name}`, "Stop all its processes");
    this.buttons.stop?.classList.toggle("sm-busy", this.stopping);
    this.tick();
  }

  /**
   * A button that can do nothing now stays in reach, so that the keyboard is not lost.
   * @param {string} name
   * @param {boolean} allowed
   */
  #allow(name, allowed) {
    this.buttons[name]?.setAttribute("aria-disabled", String(!allowed));
  }

  /** Show the time that has passed. */
  tick() {
    if (this.facts) this.parts.elapsed.textContent = elapsed(this.facts, Date.now() / 1000);
  }

  /** Say something for some seconds. @param {string} text @param {number} seconds */
  notice(text, seconds = 5) {
    this.parts.notice.textContent = text;
    clearTimeout(this.timer);
    if (text) this.timer = setTimeout(() => (this.parts.notice.textContent = ""), seconds * 1000);
  }

  close() {
    clearTimeout(this.timer);
  }
}
