// The terminal emulator of a view, with what is always added to it.

import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { SerializeAddon } from "@xterm/addon-serialize";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import { mute } from "./reports.js";

/** Lines above the screen. A line of 80 columns takes 1 KB of the page's memory. */
const SCROLLBACK = 10_000;

/**
 * @param {HTMLElement} el - where it will be, for the page's font
 * @param {[number, number]} size - rows, columns
 * @param {boolean} readOnly
 * @param {boolean} newlines - whether LF begins a new line, as in a session; a recording has CR LF
 */
export function emulator(el, [rows, cols], readOnly, newlines = true) {
  const css = getComputedStyle(el);
  const term = new Terminal({
    allowProposedApi: true,
    fontFamily: css.getPropertyValue("--jp-code-font-family").trim() || "ui-monospace, Menlo, Consolas, monospace",
    fontSize: parseInt(css.getPropertyValue("--jp-code-font-size"), 10) || 13,
    lineHeight: 1.15,
    scrollback: SCROLLBACK,
    cursorBlink: !readOnly && !matchMedia("(prefers-reduced-motion: reduce)").matches,
    cursorInactiveStyle: readOnly ? "none" : "outline",
    disableStdin: readOnly,
    minimumContrastRatio: 4.5,
    convertEol: newlines,
    rows,
    cols,
  });
  const fit = new FitAddon();
  const search = new SearchAddon();
  const serialize = new SerializeAddon();
  for (const addon of [fit, search, serialize, new WebLinksAddon(), new Unicode11Addon()]) term.loadAddon(addon);
  term.unicode.activeVersion = "11";
  mute(term);
  // The session's terminal leaves LF as it is, which programs that print lines mean as a new line. Those that
  // draw a screen know it, and mean "one row down".
  term.buffer.onBufferChange((buffer) => (term.options.convertEol = newlines && buffer.type === "normal"));
  return { term, fit, search, serialize };
}

/** All text of scrollback and screen. @param {import("@xterm/xterm").IBuffer} buffer */
export function textOf(buffer) {
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
