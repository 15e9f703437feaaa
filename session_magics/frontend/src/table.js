// The live table of all sessions: an anywidget view that is sent the rows while somebody sees it.

import { fence, hear, viewId } from "./model.js";
import { changes, counts, filter, pressed, sorted } from "./rows.js";
import { RowView } from "./rowview.js";
import { ShownTerminals } from "./shown.js";
import style from "./style.css";
import tableStyle from "./table.css";
import { TableHead } from "./tablehead.js";
import { isDark, onThemeChange } from "./theme.js";

/** Milliseconds between signs of life of a view that is seen; the kernel stops measuring 15 s after the last. */
const SEEN_EVERY = 5000;
/** Milliseconds without rows, of which one set is due each second, after which they are shown to be old. */
const STALE = 8000;
const ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"];

/** @typedef {import("./rows.js").Row} Row */

export class TableView {
  /** @param {{model: import("./model.js").Model, el: HTMLElement}} context */
  constructor({ model, el }) {
    this.model = model;
    this.el = el;
    this.id = viewId();
    /** @type {Row[] | null} */
    this.rows = null;
    this.at = 0;
    /** @type {Map<string, RowView>} */
    this.views = new Map();
    /** The rows on the page, from the top. @type {RowView[]} */
    this.order = [];
    /** @type {import("./rows.js").Sort} */
    this.sort = null;
    /** The row whose buttons Tab comes to. */
    this.current = "";
    this.held = this.visible = this.focused = false;
    /** What the kernel knows; null: nothing yet. @type {boolean | null} */
    this.seen = null;
    this.heard = 0;
    this.actions = model.widget_manager ? ["show"] : [];
    if (!model.get("read_only")) this.actions.push("restart", "stop");
    this.#build();
    this.#listen();
  }

  /** The kernel may be gone, and then sending throws. @param {object} message */
  send(message) {
    try {
      this.model.send({ view: this.id, ...message });
    } catch {
      this.head.notice("the kernel does not answer");
    }
  }

  // ---- what it is made of

  #build() {
    const { ownerDocument: document } = this.el;
    const make = (/** @type {string} */ name, /** @type {HTMLElement} */ parent, tag = "div") => {
      const part = document.createElement(tag);
      part.className = name;
      parent.append(part);
      return part;
    };
    make("", this.el, "style").textContent = style + tableStyle;
    this.outer = make("sm-outer", this.el);
    this.root = make("sm sm-list", this.outer);
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", "Sessions");
    this.root.tabIndex = -1; // where the keyboard goes when nothing else is left
    this.head = new TableHead(document, {
      labels: this.model.get("labels"),
      filter: () => this.#filtered(),
      sort: (column) => this.#sorted(column),
    });
    this.root.append(this.head.bar);
    this.scroller = make("sm-rows", this.root);
    this.table = make("", this.scroller, "table");
    this.table.innerHTML = '<caption class="sm-hidden">Sessions, with their state and what they use. The arrow keys move between the rows.</caption>';
    this.table.append(this.head.titles);
    this.body = make("", this.table, "tbody");
    this.empty = make("sm-empty", this.root);
    this.still = make("sm-still", this.root, "pre");
    this.still.textContent = this.model.get("snapshot") ?? "";
    this.table.hidden = true;
    this.shown = new ShownTerminals(make("sm-shown", this.outer), this.model, () => this.#render());
    this.outer.__session_magics = this; // for tests, and to be found from a page's console
  }

  #listen() {
    const { ownerDocument: document } = this.el;
    this.hear();
    fence(this.root);
    this.body.addEventListener("click", (event) => this.#press(event));
    this.body.addEventListener("keydown", (event) => this.#key(event));
    this.body.addEventListener("focusin", (event) => this.#reach(this.#viewAt(event.target)));
    // Rows that change their places under the pointer would have one press what was not meant.
    this.body.addEventListener("pointerenter", () => (this.held = true));
    this.body.addEventListener("pointerleave", () => {
      this.held = false;
      this.#render();
    });
    this.outer.addEventListener("focusin", () => this.#tellFocus(true));
    this.outer.addEventListener("focusout", (event) => this.#tellFocus(this.outer.contains(event.relatedTarget)));
    const watched = new IntersectionObserver((entries) => {
      this.visible = entries[entries.length - 1].isIntersecting;
      this.#look();
    });
    watched.observe(this.outer);
    const look = () => this.#look();
    document.addEventListener("visibilitychange", look);
    const beat = setInterval(() => this.#beat(), SEEN_EVERY);
    const theme = () => this.root.toggleAttribute("data-dark", isDark(this.el));
    theme();
    this.endings = [
      () => watched.disconnect(),
      () => document.removeEventListener("visibilitychange", look),
      () => clearInterval(beat),
      onThemeChange(this.el, theme),
    ];
  }

  hear() {
    this.unhear = hear(this.model, { "msg:custom": (/** @type {any} */ message) => this.#message(message) });
  }

  // ---- whether somebody looks

  #look() {
    const seen = this.visible && !this.el.ownerDocument.hidden;
    if (seen === this.seen) return;
    this.seen = seen;
    this.heard = performance.now();
    this.send({ t: "seen", seen });
  }

  #beat() {
    if (!this.seen) return;
    this.send({ t: "seen", seen: true });
    const stale = this.rows !== null && performance.now() - this.heard > STALE;
    this.root.classList.toggle("sm-stale", stale);
    if (stale) this.head.notice(`not renewed since ${new Date(this.at * 1000).toLocaleTimeString()}`, 2 * SEEN_EVERY);
  }

  /** While the keyboard is here the output should not be renewed. @param {boolean} on */
  #tellFocus(on) {
    if (on !== this.focused) this.send({ t: "focus", on });
    this.focused = on;
  }

  // ---- the rows

  /** @param {any} message */
  #message(message) {
    if (message.t === "rows") this.#take(message);
    else if (message.t === "notice" && (!message.view || message.view === this.id)) this.#notice(message);
    else if (message.t === "shown" && message.view === this.id) void this.shown.show(message.id, message.model);
  }

  /** @param {{text: string, id?: string}} message - with an id: that session cannot be shown */
  #notice({ text, id }) {
    this.head.notice(text);
    if (id) this.shown.giveUp(id);
  }

  /** @param {{at: number, rows: Row[]}} message */
  #take({ at, rows }) {
    const before = this.rows && new Map(this.rows.map((row) => [row.id, row]));
    this.rows = rows;
    this.at = at;
    this.heard = performance.now();
    if (this.root.classList.contains("sm-stale")) {
      this.root.classList.remove("sm-stale");
      this.head.notice("");
    }
    if (before) this.head.say(changes(before, rows));
    this.shown.retain(new Set(rows.map((row) => row.id)));
    this.#render();
  }

  #filtered() {
    this.#render();
    if (this.rows) this.head.say(`${this.order.length} of ${this.rows.length} shown`);
  }

  /** @param {import("./rows.js").Column} column */
  #sorted(column) {
    this.sort = pressed(this.sort, column);
    this.head.show(this.sort);
    this.#render();
  }

  #render() {
    const { rows, head } = this;
    if (!rows) return;
    const active = this.#active(); // asked before anything is changed: else the page would be laid out for it
    const selected = this.#viewAt(this.el.ownerDocument.getSelection()?.anchorNode);
    let wanted = sorted(rows.filter(filter(head.filter.value)), this.sort, this.at);
    if (this.held) wanted = this.#asBefore(wanted);
    this.still.remove();
    head.counts.textContent = counts(rows, wanted.length);
    this.root.classList.toggle("sm-agents", rows.some((row) => row.doing));
    head.filter.hidden = !rows.length && !head.filter.value;
    this.table.hidden = !wanted.length;
    this.#tellEmpty(!wanted.length);
    this.#place(wanted.map((row) => this.#view(row)), active, selected);
  }

  /** @param {Row[]} wanted */
  #asBefore(wanted) {
    const left = new Map(wanted.map((row) => [row.id, row]));
    const known = this.order.map((view) => left.get(view.row.id)).filter((row) => row && left.delete(row.id));
    return [...known, ...left.values()];
  }

  /** @param {Row} row */
  #view(row) {
    let view = this.views.get(row.id);
    if (!view) this.views.set(row.id, (view = new RowView(this.el.ownerDocument, this.actions)));
    view.update(row, this.at, this.shown.has(row.id));
    return view;
  }

  /**
   * Put rows into an order around the one that has the focus or the selection, which would lose it by a move.
   * @param {RowView[]} wanted
   * @param {Element | null} active
   * @param {RowView} [selected]
   */
  #place(wanted, active, selected) {
    const kept = new Set(wanted);
    const focused = this.#viewAt(active);
    const lost = focused && !kept.has(focused) ? this.order.indexOf(focused) : -1;
    const place = lost < 0 ? "" : this.#placeOf(active);
    for (const [id, view] of this.views) {
      if (kept.has(view)) continue;
      view.remove();
      this.views.delete(id);
    }
    const pinned = Math.max(0, wanted.indexOf(focused ?? selected));
    if (wanted.length && wanted[pinned].element.parentNode !== this.body) this.body.prepend(wanted[pinned].element);
    for (let at = pinned - 1; at >= 0; at--) {
      const next = wanted[at + 1].element;
      if (next.previousSibling !== wanted[at].element) next.before(wanted[at].element);
    }
    for (let at = pinned + 1; at < wanted.length; at++) {
      const last = wanted[at - 1].element;
      if (last.nextSibling !== wanted[at].element) last.after(wanted[at].element);
    }
    this.order = wanted;
    if (!wanted.some((view) => view.row.id === this.current)) this.#reach(wanted[0]);
    if (lost < 0) return;
    wanted[Math.min(lost, wanted.length - 1)]?.guard();
    this.#focus(lost, place);
  }

  /** @param {boolean} empty */
  #tellEmpty(empty) {
    const labels = Object.entries(this.model.get("labels") ?? {}).map((pair) => pair.join("=")).join(" ");
    const none = labels ? `no sessions with ${labels}` : "no sessions";
    const html = this.rows.length
      ? "<p>no session matches the filter</p>"
      : "<p></p><p>This starts one: <code>%session start NAME -- PROGRAM</code></p>";
    this.empty.hidden = !empty;
    if (!empty || this.emptyHtml === html) return;
    this.empty.innerHTML = this.emptyHtml = html;
    if (!this.rows.length) this.empty.firstChild.textContent = none;
  }

  // ---- what the person does

  /** @param {MouseEvent} event */
  #press(event) {
    const button = /** @type {HTMLElement} */ (event.target).closest("button");
    const view = this.#viewAt(button);
    if (!button || !view) return;
    const { id, busy } = view.row;
    const action = view.pressed(button);
    if (action === "stop") this.send({ t: "stop", id, now: busy === "stopping" });
    else if (action === "restart" || action === "remove") this.send({ t: action, id });
    else if (action === "show" && this.shown.toggle(id)) this.send({ t: "show", id });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const view = this.#viewAt(event.target);
    if (event.repeat && event.key === "Enter") event.preventDefault(); // held: the next row may be there by then
    const modified = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
    if (!view || !ARROWS.includes(event.key) || modified) return;
    event.preventDefault();
    const places = Object.keys(view.buttons);
    const place = this.#placeOf(/** @type {HTMLElement} */ (event.target));
    const row = this.order.indexOf(view);
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) this.#focus(row, places[places.indexOf(place) + step] ?? place);
    else this.#focus({ ArrowUp: Math.max(row - 1, 0), ArrowDown: row + 1, Home: 0 }[event.key] ?? Infinity, place);
  }

  /** @param {number} row - or the last one, if there are fewer @param {string} place */
  #focus(row, place) {
    const view = this.order[Math.min(row, this.order.length - 1)];
    const { filter } = this.head;
    (view?.buttons[place] ?? (filter.hidden ? this.root : filter)).focus();
  }

  /** Which of a row's buttons it is. @param {Element | null} button */
  #placeOf(button) {
    const { buttons } = this.#viewAt(button) ?? { buttons: {} };
    return Object.keys(buttons).find((place) => buttons[place] === button) ?? "";
  }

  /** @param {any} node */
  #viewAt(node) {
    const row = (node?.nodeType === 3 ? node.parentElement : node)?.closest?.("tr");
    return row && this.body.contains(row) ? [...this.views.values()].find((view) => view.element === row) : undefined;
  }

  #active() {
    return /** @type {Document | ShadowRoot} */ (this.root.getRootNode()).activeElement;
  }

  /** @param {RowView} [view] */
  #reach(view) {
    this.views.get(this.current)?.reach(false);
    view?.reach(true);
    this.current = view?.row.id ?? "";
  }

  // ---- its end

  /** It is in another place of the page. */
  moved() {
    this.shown.model = this.model;
  }

  close() {
    this.send({ t: "bye" });
    this.unhear();
    for (const end of this.endings) end();
    this.shown.close();
    this.head.close();
    for (const view of this.views.values()) view.remove();
    this.el.replaceChildren();
  }
}
