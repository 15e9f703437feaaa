// Playing a recording on a terminal: a clock with a speed, and what the terminal has been given so far.

/** Speeds that there are to choose from. */
export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];
/** Characters given to the terminal at once when much has to be replayed. */
const CHUNK = 256 * 1024;

/**
 * @typedef {object} Stage
 * @property {(text: string, done: () => void) => void} write - `done` is called when it is parsed
 * @property {() => void} reset - forget everything shown
 * @property {(columns: number, rows: number) => void} resize
 */

export class Playback {
  /**
   * @param {import("./cast.js").Cast} cast
   * @param {Stage} stage
   * @param {[number, number]} size - rows, columns
   * @param {() => void} changed - called when it plays or rests, and when it is somewhere else
   * @param {() => number} now - milliseconds
   */
  constructor(cast, stage, size, changed, now = () => performance.now()) {
    this.cast = cast;
    this.stage = stage;
    this.size = size;
    this.changed = changed;
    this.now = now;
    this.speed = 1;
    this.playing = false;
    /** Whether the terminal is still busy with what it was given. */
    this.writing = false;
    /** Events that the terminal has been given. */
    this.given = 0;
    /** Whether it shows what is not to be shown any more. */
    this.stale = false;
    this.position = 0;
    this.since = 0;
    this.stage.resize(size[1], size[0]);
  }

  /** Seconds that have been played. */
  get time() {
    if (!this.playing) return this.position;
    return Math.min(this.cast.duration, this.position + ((this.now() - this.since) / 1000) * this.speed);
  }

  play() {
    if (this.playing) return;
    if (this.position >= this.cast.duration) this.seek(0);
    this.since = this.now();
    this.playing = true;
    this.changed();
  }

  pause() {
    this.position = this.time;
    this.playing = false;
    this.changed();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.position = this.time;
    this.since = this.now();
    this.speed = speed;
    this.changed();
  }

  /** One step faster or slower. @param {number} direction */
  shift(direction) {
    const at = SPEEDS.findIndex((one) => one >= this.speed);
    const next = SPEEDS[at + (direction < 0 || SPEEDS[at] === this.speed ? direction : 0)];
    if (next) this.setSpeed(next);
  }

  /** Be at a time; what the terminal shows is made from the beginning where that lies back. @param {number} time */
  seek(time) {
    this.position = Math.min(Math.max(time, 0), this.cast.duration);
    this.since = this.now();
    if (this.cast.upto(this.position) < this.given) {
      this.given = 0;
      this.stale = true;
    }
    this.step();
    this.changed();
  }

  /** Make pauses so long at most, at the same place of the recording. @param {number | null} seconds */
  limit(seconds) {
    const before = this.cast.times[this.given - 1] ?? 0;
    const rest = this.time - before;
    this.cast.limit(seconds);
    const after = this.cast.times[this.given - 1] ?? 0;
    this.position = Math.min(after + rest, this.cast.times[this.given] ?? this.cast.duration);
    this.since = this.now();
    this.changed();
  }

  /** To the next marker, or the one before. @param {number} direction */
  jump(direction) {
    const marker = this.cast.marker(this.time, direction);
    if (marker) this.seek(marker.at);
    else if (direction < 0) this.seek(0);
  }

  /** The label of the last marker that was passed. */
  get label() {
    return this.cast.markers.findLast(({ at }) => at <= this.time)?.label ?? "";
  }

  /** Give the terminal what is due, as much as it takes at once. */
  step() {
    if (this.stale && !this.writing) { // not before: what the terminal has not parsed yet would come after it
      this.stale = false;
      this.stage.reset();
      this.stage.resize(this.size[1], this.size[0]);
    }
    const due = this.cast.upto(this.time);
    let text = "";
    while (!this.writing && this.given < due && text.length < CHUNK) {
      const [, code, data] = this.cast.events[this.given];
      if (code === "r") {
        if (text) break; // what was before it is for the other size
        this.stage.resize(.../** @type {[number, number]} */ (data.split("x").map(Number)));
      } else if (code === "o") text += data;
      this.given += 1;
    }
    if (text) {
      this.writing = true;
      this.stage.write(text, () => {
        this.writing = false;
        if (this.stale || this.given < this.cast.upto(this.time)) this.step();
      });
    }
    if (this.playing && this.time >= this.cast.duration && this.given === this.cast.events.length) this.pause();
  }
}
