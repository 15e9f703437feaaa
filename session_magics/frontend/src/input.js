// What the person types, on its way to the program.

/** Characters in one message. The server's websocket takes some 10 MB; small pieces keep Interrupt quick. */
export const PIECE = 32 * 1024;
/** Milliseconds without an answer to a key after which a message without meaning follows it. */
export const NUDGE_AFTER = 8;
/** Round trips, in milliseconds, that show the server's small packets waiting for the browser's acknowledgements. */
const STALLED = [30, 70];
/** Keys from which the round trip is judged. */
const JUDGED = 5;

export class Input {
  /**
   * @param {string} view
   * @param {(message: object) => void} send
   * @param {() => number} now
   */
  constructor(view, send, now = () => performance.now()) {
    this.view = view;
    this.send = send;
    this.now = now;
    /** Whether a message has to follow a key, whose packet carries the acknowledgement that the server waits for. */
    this.nudging = false;
    /** @type {number[]} */
    this.trips = [];
    this.pressed = 0;
  }

  /** @param {string} text */
  type(text) {
    for (let at = 0; at < text.length; ) {
      let end = Math.min(at + PIECE, text.length);
      const last = text.charCodeAt(end - 1);
      if (end < text.length && last >= 0xd800 && last < 0xdc00) end -= 1; // not within a pair
      this.send({ t: "in", view: this.view, d: text.slice(at, end) });
      at = end;
    }
    this.pressed ||= this.now();
    if (this.nudging) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.pressed && this.send({ t: "nudge" }), NUDGE_AFTER);
    }
  }

  /** Bytes as xterm gives them for mouse reports in the old encoding. @param {string} data */
  binary(data) {
    this.send({ t: "in", view: this.view, b: data });
  }

  /** Output has come. */
  answered() {
    if (!this.pressed) return;
    const trip = this.now() - this.pressed;
    this.pressed = 0;
    if (this.nudging || trip > 1000) return;
    this.trips.push(trip);
    if (this.trips.length < JUDGED) return;
    const slow = this.trips.filter((one) => one > STALLED[0] && one < STALLED[1]).length;
    this.nudging = slow * 2 > JUDGED;
    this.trips.shift();
  }

  close() {
    clearTimeout(this.timer);
  }
}
