// One row of the table of sessions. It stays the same element while its session is listed, and only what has changed in
// it is touched: so focus, selection and the pointer's place are kept.

import { mood } from "./facts.js";
import { icon } from "./icons.js";
import { COLUMNS, hasEnded } from "./rows.js";

/** Milliseconds for which a button that was another one before takes no press: it would be meant for that one. */
const GUARD = 600;

/** @typedef {import("./rows.js").Row} Row */

/** @param {number} time - Unix time */
const clock = (time) => new Date(time * 1000).toLocaleString();

export class RowView {
  /**
   * @param {Document} document
   * @param {string[]} actions - of "show", "restart", "stop"
   */
  constructor(document, actions) {
    this.element = document.createElement("tr");
    /** @type {Record<string, HTMLElement>} */
    this.cells = {};
    for (const { key, number } of COLUMNS) {
      const cell = document.createElement(key === "name" ? "th" : "td");
      cell.className = `sm-col-${key}${number ? " sm-number" : ""}`;
      if (key === "name") cell.setAttribute("scope", "row");
      this.cells[key] = this.#inside(cell, key);
      this.element.append(cell);
    }
    const place = document.createElement("td");
    place.className = "sm-col-actions";
    const group = place.appendChild(document.createElement("span"));
    group.className = "sm-buttons";
    this.element.append(place);
    /** @type {Record<string, HTMLButtonElement>} */
    this.buttons = {};
    for (const action of actions) {
      const button = group.appendChild(document.createElement("button"));
      button.type = "button";
      button.tabIndex = -1;
      this.buttons[action] = button;
    }
  }

  /** The element that says what a cell says. @param {HTMLElement} cell @param {string} key */
  #inside(cell, key) {
    const { ownerDocument: document } = cell;
    if (key === "directory") {
      const path = cell.appendChild(document.createElement("bdi")); // in a cell that is cut at its beginning
      path.dir = "ltr";
      return path;
    }
    if (key !== "name" && key !== "state") return cell;
    if (key === "name") {
      const dot = cell.appendChild(document.createElement("span"));
      dot.className = "sm-dot";
      dot.setAttribute("aria-hidden", "true");
    }
    const text = cell.appendChild(document.createElement("span"));
    text.className = key === "name" ? "sm-name" : "sm-badge";
    return text;
  }

  /** @param {Row} row @param {number} at - the kernel's time @param {boolean} shown - whether its terminal is */
  update(row, at, shown) {
    const before = this.row;
    this.row = row;
    for (const { key, text } of COLUMNS) this.#say(this.cells[key], text(row, at));
    const look = row.busy ? "waiting" : mood(row);
    if (this.element.dataset.mood !== look) this.element.dataset.mood = look;
    this.#titles(row, before);
    this.#button("show", "show", `Show the terminal of ${row.name}`);
    if (this.buttons.show) this.#attribute(this.buttons.show, "aria-expanded", String(shown));
    this.#button("restart", "restart", `Restart ${row.name}`);
    if (hasEnded(row)) this.#button("stop", "remove", `Remove ${row.name} from the list`);
    else this.#button("stop", "stop", `Stop ${row.name}${row.busy === "stopping" ? " now, without waiting" : ""}`);
    this.buttons.stop?.classList.toggle("sm-busy", row.busy === "stopping");
    this.#allow();
  }

  /** @param {HTMLElement} element @param {string} text */
  #say(element, text) {
    const node = /** @type {Text | null} */ (element.firstChild);
    if (!node) element.append(text);
    else if (node.data !== text) node.data = text;
  }

  /** What is cut in the cells, and what has no column. @param {Row} row @param {Row} [before] */
  #titles(row, before) {
    for (const key of ["program", "directory", "last"]) {
      if (row[key] !== before?.[key]) this.cells[key].title = row[key];
    }
    const labels = Object.entries(row.labels).map((pair) => pair.join("="));
    const name = [row.name, ...(row.pid ? [`pid ${row.pid}`] : []), ...labels].join(" · ");
    this.#attribute(this.cells.name, "title", name);
    this.#attribute(this.cells.state, "title", row.doing ? `${row.text} · ${row.doing}` : row.text);
    this.#attribute(this.cells.ports, "title", row.ports.join(", "));
    if (row.since === before?.since && row.until === before?.until) return;
    const times = row.since ? [`started ${clock(row.since)}`] : [];
    if (row.until) times.push(`ended ${clock(row.until)}`);
    this.cells.age.title = times.join("\n");
  }

  /** @param {string} place @param {string} action @param {string} label */
  #button(place, action, label) {
    const button = this.buttons[place];
    if (!button) return;
    if (button.dataset.action !== action) {
      if (button.dataset.action) this.guard();
      button.dataset.action = action;
      button.innerHTML = icon(action);
    }
    this.#attribute(button, "aria-label", label);
    this.#attribute(button, "title", label);
  }

  /** Buttons that can do nothing now stay in reach, so that the keyboard is not lost. */
  #allow() {
    const { busy } = this.row;
    const allow = (/** @type {string} */ place, /** @type {boolean} */ allowed) => {
      const button = this.buttons[place];
      if (button) this.#attribute(button, "aria-disabled", String(!allowed || this.timer !== undefined));
    };
    allow("restart", !busy);
    allow("stop", busy !== "restarting");
  }

  /** Take no press that changes something for a moment, in which people see what has become of the button. */
  guard() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.#allow();
    }, GUARD);
  }

  /** @param {HTMLElement} element @param {string} name @param {string} value */
  #attribute(element, name, value) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  }

  /** What a press on a button means now; "" for nothing. @param {HTMLElement} button */
  pressed(button) {
    return button.getAttribute("aria-disabled") === "true" ? "" : (button.dataset.action ?? "");
  }

  /** Whether Tab comes to its buttons. @param {boolean} reached */
  reach(reached) {
    for (const button of Object.values(this.buttons)) {
      const wanted = reached ? 0 : -1;
      if (button.tabIndex !== wanted) button.tabIndex = wanted;
    }
  }

  remove() {
    clearTimeout(this.timer);
    this.element.remove();
  }
}
