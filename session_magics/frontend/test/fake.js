// A kernel's side of the channel: a log, and views that are served from it over a line that may lose messages.

/** @param {number} length */
export const log = (length) => Uint8Array.from({ length }, (_, at) => (at * 31 + (at >> 8)) & 255);

/** A sink that keeps what it is given; `parse` calls back for what was written. */
export class Screen {
  constructor() {
    this.bytes = [];
    this.resets = 0;
    this.holes = [];
    this.pending = [];
  }
  write(bytes, done) {
    for (const byte of bytes) this.bytes.push(byte);
    this.pending.push(done);
  }
  reset() {
    this.bytes = [];
    this.resets += 1;
  }
  hole(bytes) {
    this.holes.push(bytes);
  }
  parse() {
    for (const done of this.pending.splice(0)) done();
  }
}
