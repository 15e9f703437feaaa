// The line above a terminal: what runs there, how it is, and what can be done with it.

import { badge, elapsed, mood, shortened } from "./facts.js";
import { icon } from "./icons.js";

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
 */

/** Name, label and whether it changes the program. @type {[keyof Actions, string, boolean][]} */
const BUTTONS = [
  ["interrupt", "Interrupt (as Ctrl+C does)", true],
  ["stop", "Stop all its processes", true],
  ["restart", "Restart", true],
  ["copy", "Copy the selection, or all", false],
  ["find", "Find (Ctrl+Shift+F)", false],
  ["clear", "Clear this view", false],
  ["full", "Full height", false],
];

export class TitleBar {
  /**
   * @param {Document} document
   * @param {Actions} actions
   * @param {{readOnly: boolean, cell: boolean}} options - cell: the command of a cell, which ends with it
   */
  constructor(document, actions, { readOnly, cell }) {
    this.element = document.createElement("div");
    this.element.className = "sm-bar";
    this.element.innerHTML =
      '<span class="sm-dot" aria-hidden="true"></span><span class="sm-name"></span><span class="sm-program"></span>' +
      '<span class="sm-directory"></span><span class="sm-space"></span><span class="sm-notice" role="status"></span>' +
      '<span class="sm-elapsed"></span><span class="sm-badge" role="status"></span>' +
      '<span class="sm-buttons" role="toolbar" aria-label="Session"></span>';
    /** @type {Record<string, HTMLElement>} */
    this.parts = {};
    for (const part of this.element.querySelectorAll("span")) this.parts[part.className.slice(3)] = part;
    /** @type {Record<string, HTMLButtonElement>} */
    this.buttons = {};
    for (const [name, label, changes] of BUTTONS) {
      if ((readOnly && changes) || (cell && (name === "stop" || name === "restart"))) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.action = name;
      button.innerHTML = icon(name);
      this.#label(button, label);
      button.addEventListener("click", () => actions[name]());
      this.parts.buttons.append(button);
      this.buttons[name] = button;
    }
    this.readOnly = readOnly;
    this.stopping = false;
  }

  /** @param {HTMLButtonElement} button @param {string} label */
  #label(button, label) {
    button.title = label;
    button.setAttribute("aria-label", label);
  }

  /** @param {import("./facts.js").Facts} facts */
  show(facts) {
    const { parts } = this;
    this.facts = facts;
    this.element.dataset.mood = mood(facts);
    parts.name.textContent = facts.name;
    parts.program.textContent = facts.command || facts.program;
    parts.program.title = facts.program;
    parts.directory.textContent = shortened(facts.directory);
    parts.directory.title = facts.directory;
    const words = badge(facts) + (this.readOnly ? " · read-only" : "");
    if (parts.badge.textContent !== words) parts.badge.textContent = words;
    const running = facts.state === "running";
    if (!running && facts.state !== "backing-off") this.stopping = false;
    this.#allow("interrupt", running);
    this.#allow("stop", running || facts.state === "backing-off");
    if (this.buttons.stop) {
      this.#label(this.buttons.stop, this.stopping ? "Stop now, without waiting" : "Stop all its processes");
      this.buttons.stop.classList.toggle("sm-busy", this.stopping);
    }
    this.tick();
  }

  /** @param {string} name @param {boolean} allowed */
  #allow(name, allowed) {
    if (this.buttons[name]) this.buttons[name].disabled = !allowed;
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
