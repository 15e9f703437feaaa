// The numbered bytes of a session, in order and without a hole, from a channel that may lose messages.
//
// The kernel names in each message the views that it is for (`v`), the offset that they should be at (`p`), and that of
// its first byte (`o`; greater than `p` if the log itself has dropped what is between). A view that is elsewhere asks to
// be served from where it is.

/** Bytes parsed after which the kernel is told so. Telling it of every message makes a flood four times slower. */
export const ACK_BYTES = 128 * 1024;
/** Milliseconds without output after which it is told of the rest. */
export const ACK_QUIET = 200;
/** Milliseconds after which an unanswered request is repeated. */
export const SYNC_REPEAT = 3000;
/** Milliseconds between signs of life of an idle view, by which a view that was cut off is served again. */
export const HERE_EVERY = 20_000;

/**
 * @typedef {object} Sink
 * @property {(bytes: Uint8Array, done: () => void) => void} write - `done` is called when they are parsed
 * @property {() => void} reset - forget everything shown
 * @property {(bytes: number) => void} hole - so many bytes are not in the log any more
 *
 * @typedef {object} Message
 * @property {string} t
 * @property {string[]} [v]
 * @property {number} [p]
 * @property {number} [o]
 * @property {number} [s] - the request that it answers
 * @property {boolean} [reset]
 */

export class Stream {
  /**
   * @param {string} view - unique name of this view
   * @param {(message: object) => void} send
   * @param {Sink} sink
   */
  constructor(view, send, sink) {
    this.view = view;
    this.send = send;
    this.sink = sink;
    /** Offset of the next byte. */
    this.position = -1;
    /** Offset up to which everything is parsed. */
    this.parsed = -1;
    this.acknowledged = -1;
    this.request = 0;
    this.waiting = false;
    this.closed = false;
  }

  /** Ask for the output, from its beginning on. */
  start() {
    this.sync();
    this.hereTimer = setInterval(() => this.here(), HERE_EVERY);
  }

  /** Ask to be served from where we are. */
  sync() {
    if (this.closed) return;
    this.waiting = true;
    this.request += 1;
    this.send({ t: "sync", view: this.view, from: this.position, s: this.request });
    clearTimeout(this.syncTimer);
    this.syncTimer = setTimeout(() => this.sync(), SYNC_REPEAT);
  }

  /** Tell that this view lives and where it is. */
  here() {
    if (!this.closed && !this.waiting) this.send({ t: "here", view: this.view, n: this.position });
  }

  /**
   * Take a message in. True if it brought output.
   * @param {Message} message
   * @param {Uint8Array} bytes
   */
  receive(message, bytes) {
    if (this.closed || !message.v?.includes(this.view)) return false;
    if (message.s !== undefined && message.s === this.request && this.waiting) this.#synced(message);
    if (this.waiting) return false;
    if (message.t === "head") {
      if (message.o > this.position) this.sync();
      return false;
    }
    if (message.p > this.position) {
      this.sync();
      return false;
    }
    return this.#take(message.o, bytes);
  }

  /** @param {Message} message */
  #synced(message) {
    this.waiting = false;
    clearTimeout(this.syncTimer);
    if (message.reset) {
      this.sink.reset();
      this.position = this.parsed = this.acknowledged = message.p;
    }
  }

  /**
   * @param {number} offset
   * @param {Uint8Array} bytes
   */
  #take(offset, bytes) {
    if (offset > this.position) {
      this.sink.hole(offset - this.position);
      this.position = offset;
    }
    const fresh = bytes.subarray(this.position - offset);
    if (!fresh.length) return false;
    this.position += fresh.length;
    const upto = this.position;
    this.sink.write(fresh, () => this.#done(upto));
    return true;
  }

  /** @param {number} upto */
  #done(upto) {
    this.parsed = Math.max(this.parsed, upto);
    if (this.closed) return;
    clearTimeout(this.ackTimer);
    if (this.parsed - this.acknowledged >= ACK_BYTES) this.#acknowledge();
    else this.ackTimer = setTimeout(() => this.#acknowledge(), ACK_QUIET);
  }

  #acknowledge() {
    if (this.closed || this.parsed === this.acknowledged) return;
    this.acknowledged = this.parsed;
    this.send({ t: "ack", view: this.view, n: this.parsed });
  }

  /** Say goodbye; nothing is received after it. */
  close() {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.syncTimer);
    clearTimeout(this.ackTimer);
    clearInterval(this.hereTimer);
    this.send({ t: "bye", view: this.view });
  }
}
