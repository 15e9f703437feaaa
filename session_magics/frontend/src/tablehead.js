// What stands above the rows: title, counts and filter in the bar, and the columns' titles, which sort.

import { COLUMNS } from "./rows.js";

const TIP = "All words must match. crew=a finds the sessions with that label.";

export class TableHead {
  /**
   * @param {Document} document
   * @param {object} options
   * @param {Record<string, string>} options.labels - those that all rows have
   * @param {() => void} options.filter - called when another filter is typed
   * @param {(column: import("./rows.js").Column) => void} options.sort - called when a title is pressed
   */
  constructor(document, { labels, filter, sort }) {
    this.bar = document.createElement("div");
    this.bar.className = "sm-bar";
    this.bar.innerHTML =
      '<span class="sm-name">Sessions</span><span class="sm-labels"></span><span class="sm-counts"></span>' +
      '<span class="sm-space"></span><span class="sm-notice" role="status"></span>' +
      '<input class="sm-filter" type="search" placeholder="Filter" aria-label="Filter sessions" spellcheck="false" ' +
      'autocomplete="off">' +
      '<span class="sm-hidden" role="status"></span>';
    const part = (/** @type {string} */ name) => /** @type {HTMLElement} */ (this.bar.querySelector(`.sm-${name}`));
    part("labels").textContent = Object.entries(labels ?? {}).map((pair) => pair.join("=")).join(" ");
    this.counts = part("counts");
    this.said = part("hidden");
    this.notices = part("notice");
    this.filter = /** @type {HTMLInputElement} */ (part("filter"));
    this.filter.title = TIP;
    this.filter.addEventListener("input", filter);
    this.filter.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.filter.value) return;
      this.filter.value = "";
      filter();
    });
    this.titles = document.createElement("thead");
    const row = this.titles.appendChild(document.createElement("tr"));
    /** @type {Map<string, HTMLElement>} */
    this.columns = new Map();
    for (const column of COLUMNS) this.columns.set(column.key, row.appendChild(this.#title(document, column, sort)));
    const actions = row.appendChild(document.createElement("th"));
    actions.scope = "col";
    actions.className = "sm-col-actions";
    actions.innerHTML = '<span class="sm-hidden">Actions</span>';
  }

  /** @param {Document} document @param {import("./rows.js").Column} column @param {(column: any) => void} sort */
  #title(document, column, sort) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.className = `sm-col-${column.key}${column.number ? " sm-number" : ""}`;
    const button = cell.appendChild(document.createElement("button"));
    button.type = "button";
    button.className = "sm-sort";
    button.textContent = column.title;
    button.addEventListener("click", () => sort(column));
    return cell;
  }

  /** @param {import("./rows.js").Sort} sort */
  show(sort) {
    for (const [key, cell] of this.columns) {
      if (sort?.key === key) cell.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  /** Tell it to those who do not see it. @param {string} text */
  say(text) {
    if (text) this.said.textContent = text;
  }

  /** Say something for some seconds. @param {string} text @param {number} seconds */
  notice(text, seconds = 5) {
    this.notices.textContent = this.notices.title = text;
    clearTimeout(this.timer);
    if (text) this.timer = setTimeout(() => (this.notices.textContent = ""), seconds * 1000);
  }

  close() {
    clearTimeout(this.timer);
  }
}
