// Colours of the terminal that go with the page's theme.

/** @typedef {import("@xterm/xterm").ITheme} Theme */

/** @type {Theme} */
const DARK = {
  black: "#3b4252", red: "#f07178", green: "#a6d189", yellow: "#e8c57a", blue: "#82aaff", magenta: "#c792ea",
  cyan: "#7fd5e6", white: "#d5dae5", brightBlack: "#7a849c", brightRed: "#ff8b92", brightGreen: "#bfe6a3",
  brightYellow: "#ffdc96", brightBlue: "#a0c0ff", brightMagenta: "#ddb3ff", brightCyan: "#a1e8f5",
  brightWhite: "#ffffff", foreground: "#d8dee9", background: "#15181e", cursor: "#e8eaf0", cursorAccent: "#15181e",
  selectionBackground: "#3d5a8a99",
};

/** @type {Theme} */
const LIGHT = {
  black: "#24292f", red: "#b3261e", green: "#1a6e2e", yellow: "#7a5600", blue: "#0a58ca", magenta: "#8430c4",
  cyan: "#0b6b7a", white: "#6a7380", brightBlack: "#57606a", brightRed: "#c62828", brightGreen: "#1f7d36",
  brightYellow: "#8a6200", brightBlue: "#1967d2", brightMagenta: "#9036d6", brightCyan: "#0d7686",
  brightWhite: "#24292f", foreground: "#24292f", background: "#ffffff", cursor: "#24292f", cursorAccent: "#ffffff",
  selectionBackground: "#a8c7fa99",
};

/** Whether the page around an element is dark. @param {HTMLElement} el */
export function isDark(el) {
  const body = el.ownerDocument.body;
  const said = body.dataset.jpThemeLight ?? body.closest("[data-jp-theme-light]")?.dataset?.jpThemeLight;
  if (said !== undefined) return said === "false";
  if (body.classList.contains("vscode-dark")) return true;
  if (body.classList.contains("vscode-light")) return false;
  for (let at = /** @type {HTMLElement | null} */ (el); at; at = at.parentElement) {
    const shade = brightness(getComputedStyle(at).backgroundColor);
    if (shade !== null) return shade < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** 0 to 255; null for what one can look through. @param {string} colour */
export function brightness(colour) {
  const numbers = colour.match(/[\d.]+/g)?.map(Number) ?? [];
  if (numbers.length < 3 || (numbers.length > 3 && numbers[3] < 0.5)) return null;
  return 0.299 * numbers[0] + 0.587 * numbers[1] + 0.114 * numbers[2];
}

/** @param {boolean} dark @returns {Theme} */
export function palette(dark) {
  return dark ? DARK : LIGHT;
}

/**
 * Give a view of a terminal the colours of the page around it.
 * @param {{ el: HTMLElement, root: HTMLElement, term: import("@xterm/xterm").Terminal }} view
 */
export function paint({ el, root, term }) {
  const dark = isDark(el);
  const colours = palette(dark);
  root.toggleAttribute("data-dark", dark);
  root.style.setProperty("--sm-term", String(colours.background));
  term.options.theme = colours;
}

/**
 * Call back when the theme changes; the function that ends it is returned.
 * @param {HTMLElement} el
 * @param {() => void} changed
 */
export function onThemeChange(el, changed) {
  const observer = new MutationObserver(changed);
  observer.observe(el.ownerDocument.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    media.removeEventListener("change", changed);
  };
}
