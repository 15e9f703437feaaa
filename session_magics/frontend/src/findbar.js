// The field to look for something in a terminal's scrollback.

import { icon } from "./icons.js";

export class FindBar {
  /**
   * @param {Document} document
   * @param {import("@xterm/addon-search").SearchAddon} search
   * @param {() => void} left - where the keyboard goes when it closes
   */
  constructor(document, search, left) {
    this.search = search;
    this.left = left;
    this.element = document.createElement("div");
    this.element.className = "sm-find";
    this.element.hidden = true;
    this.element.setAttribute("role", "search");
    this.element.setAttribute("aria-label", "Find in the terminal");
    this.field = document.createElement("input");
    this.field.type = "text";
    this.field.placeholder = "Find";
    this.field.setAttribute("aria-label", "Find in the terminal");
    this.count = document.createElement("span");
    this.count.setAttribute("role", "status");
    this.element.append(
      this.field,
      this.count,
      this.#button("previous", "Previous match (Shift+Enter)", () => this.#look(-1)),
      this.#button("next", "Next match (Enter)", () => this.#look(1)),
      this.#button("close", "Close Find (Escape)", () => this.close()),
    );
    this.field.addEventListener("input", () => this.#look(1, true));
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target === this.field) this.#look(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") this.close();
      else return;
      event.preventDefault();
    });
    search.onDidChangeResults(({ resultIndex, resultCount }) => {
      this.count.textContent = this.field.value ? `${resultCount ? resultIndex + 1 : 0} of ${resultCount}` : "";
    });
  }

  /** @param {string} name @param {string} label @param {() => void} action */
  #button(name, label, action) {
    const button = this.element.ownerDocument.createElement("button");
    button.type = "button";
    button.innerHTML = icon(name);
    button.title = label;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", action);
    return button;
  }

  /** @param {number} direction @param {boolean} incremental */
  #look(direction, incremental = false) {
    const decorations = {
      matchBackground: "#c8a02c", matchOverviewRuler: "#c8a02c",
      activeMatchBackground: "#e06c20", activeMatchColorOverviewRuler: "#e06c20",
    };
    const options = { incremental, decorations };
    if (direction > 0) this.search.findNext(this.field.value, options);
    else this.search.findPrevious(this.field.value, options);
  }

  open() {
    this.element.hidden = false;
    this.field.focus();
    this.field.select();
  }

  close() {
    this.element.hidden = true;
    this.search.clearDecorations();
    this.left();
  }
}
