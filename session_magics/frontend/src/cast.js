// A recording: what happened when, with long pauses made shorter, and the places that one can go to.

/** @typedef {[number, string, string]} CastEvent - seconds since the beginning, "o", "m" or "r", and its text */

/** @param {Uint8Array[]} pieces - of the packed recording */
export async function unpacked(pieces) {
  const stream = new Blob(pieces).stream().pipeThrough(new DecompressionStream("gzip"));
  return parse(await new Response(stream).text());
}

/** @param {string} text - one event a line, as JSON @returns {CastEvent[]} */
export function parse(text) {
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** Seconds that are one picture: what a marker's command prints at once is seen with the marker. */
const FRAME = 1 / 30;

export class Cast {
  /**
   * @param {CastEvent[]} events
   * @param {number | null} idleLimit - seconds
   */
  constructor(events, idleLimit) {
    this.events = events;
    this.limit(idleLimit);
  }

  /** Make pauses that are longer than so many seconds so long. @param {number | null} idleLimit */
  limit(idleLimit) {
    let cut = 0;
    let before = 0;
    /** Seconds at which each event is played. */
    this.times = this.events.map(([time]) => {
      if (idleLimit && time - before > idleLimit) cut += time - before - idleLimit;
      before = time;
      return time - cut;
    });
    this.duration = this.times.at(-1) ?? 0;
    /** @type {{at: number, label: string}[]} */
    this.markers = this.events.flatMap(([, code, label], n) => (code === "m" ? [{ at: this.times[n], label }] : []));
  }

  /** How many events there are up to the end of the picture at a time. @param {number} time */
  upto(time) {
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time + FRAME) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The time that a time of the recording itself is played at. @param {number} time */
  played(time) {
    const next = this.events.findIndex(([at]) => at > time);
    if (next < 0) return this.duration;
    return Math.min(this.times[next], (this.times[next - 1] ?? 0) + time - (this.events[next - 1]?.[0] ?? 0));
  }

  /** The first marker behind a time, or the last one before it. @param {number} time @param {number} direction */
  marker(time, direction) {
    const apart = 0.01; // where one has just gone is not where one wants to go
    if (direction > 0) return this.markers.find(({ at }) => at > time + apart);
    return this.markers.findLast(({ at }) => at < time - apart);
  }
}

/** As a clock shows it. @param {number} seconds */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}
