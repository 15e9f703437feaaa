// Whether terminals tell what they show to a screen reader. One choice for all terminals of a browser: it is the
// person's, not that of a session. Off at first, as it costs time with each output.

const KEY = "session-magics:screen-reader";

/** Turns it on and off in a terminal. A well-known editor has it there too; browsers and JupyterLab leave it free. */
export const SCREEN_READER_KEY = "Alt+Shift+F1";

/** @param {KeyboardEvent} event */
export const isScreenReaderKey = (event) => event.key === "F1" && event.altKey && event.shiftKey && !event.ctrlKey;

/** A page may be denied the storage, and reading it throws then. @param {Window} window */
export function screenReader(window) {
  try {
    return window.localStorage.getItem(KEY) === "on";
  } catch {
    return false;
  }
}

/**
 * Choose for all terminals of this page, and of the browser where it lets us.
 * @param {Window} window
 * @param {boolean} on
 */
export function chooseScreenReader(window, on) {
  try {
    if (on) window.localStorage.setItem(KEY, "on");
    else window.localStorage.removeItem(KEY);
  } catch {} // this page at least
  window.dispatchEvent(new CustomEvent(KEY, { detail: on }));
}

/**
 * Call back when it is chosen, in this page or another; the function that ends it is returned.
 * @param {Window} window
 * @param {(on: boolean) => void} chosen
 */
export function onScreenReader(window, chosen) {
  const here = (/** @type {Event} */ event) => chosen(/** @type {CustomEvent} */ (event).detail);
  const elsewhere = (/** @type {StorageEvent} */ event) => {
    if (event.key === KEY || event.key === null) chosen(event.newValue === "on");
  };
  window.addEventListener(KEY, here);
  window.addEventListener("storage", elsewhere);
  return () => {
    window.removeEventListener(KEY, here);
    window.removeEventListener("storage", elsewhere);
  };
}
