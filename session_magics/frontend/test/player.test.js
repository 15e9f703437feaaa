import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { Cast, clock, parse, unpacked } from "../src/cast.js";
import { Playback } from "../src/playback.js";

const EVENTS = [[0, "m", "first"], [0.5, "o", "a"], [1, "o", "b"], [11, "m", "second"], [11, "o", "c"], [12, "r", "100x30"], [13, "o", "d"]];

/** A terminal that parses when it is told to, and a clock that goes when it is told to. */
class Stage {
  text = "";
  pending = [];
  size = "";
  at = 0;
  write(text, done) {
    this.pending.push(() => {
      this.text += text;
      done();
    });
  }
  reset() {
    assert.equal(this.pending.length, 0, "what is not parsed yet would come after it");
    this.text = "";
  }
  resize(columns, rows) {
    this.size = `${columns}x${rows}`;
  }
  parse() {
    while (this.pending.length) this.pending.shift()();
  }
}

function played(idleLimit = null, events = EVENTS) {
  const stage = new Stage();
  const playback = new Playback(new Cast(events, idleLimit), stage, [24, 80], () => {}, () => stage.at * 1000);
  const pass = (seconds) => {
    stage.at += seconds;
    playback.step();
    stage.parse();
  };
  return { stage, playback, pass };
}

test("a recording comes packed, in pieces", async () => {
  const packed = gzipSync(EVENTS.map((event) => JSON.stringify(event)).join("\n"));
  const events = await unpacked([packed.subarray(0, 9), packed.subarray(9)]);
  assert.deepEqual(events, EVENTS);
  assert.deepEqual(parse('[1, "o", "\\u2028é"]'), [[1, "o", "\u2028é"]]);
});

test("it plays in its own time, and stops at its end", () => {
  const { stage, playback, pass } = played();
  playback.play();
  pass(0.6);
  assert.equal(stage.text, "a");
  pass(0.5);
  assert.equal(stage.text, "ab");
  pass(20);
  pass(0);
  assert.equal(stage.text, "abcd");
  assert.equal(stage.size, "100x30");
  assert.equal(playback.playing, false);
  assert.equal(playback.time, 13);
  playback.play();
  assert.equal(playback.time, 0);
});

test("speed, and a change of it on the way", () => {
  const { playback, pass } = played();
  playback.play();
  pass(1);
  playback.setSpeed(4);
  pass(1);
  assert.equal(playback.time, 5);
  playback.shift(-1);
  assert.equal(playback.speed, 2);
  playback.setSpeed(3);
  playback.shift(1);
  assert.equal(playback.speed, 4);
  playback.setSpeed(16);
  playback.shift(1);
  assert.equal(playback.speed, 16);
});

test("long pauses are made shorter, also on the way", () => {
  const { playback, pass } = played(2);
  assert.equal(playback.cast.duration, 5);
  assert.deepEqual(playback.cast.markers.map(({ at }) => at), [0, 3]);
  assert.equal(playback.cast.played(11), 3);
  playback.play();
  pass(3.5);
  playback.limit(null);
  assert.equal(playback.time, 11.5);
  playback.limit(0.5);
  assert.equal(playback.time, 2);
});

test("what is behind is made from the beginning, once the terminal has parsed what it has", () => {
  const { stage, playback, pass } = played();
  playback.seek(13);
  assert.equal(stage.text, "");
  playback.seek(0.7); // before anything was parsed
  stage.parse();
  assert.equal(stage.text, "a");
  assert.equal(stage.size, "80x24");
  playback.play();
  pass(0.5);
  assert.equal(stage.text, "ab");
});

test("markers are stepped to", () => {
  const { playback, pass } = played();
  playback.jump(1);
  assert.equal(playback.time, 11);
  assert.equal(playback.label, "second");
  playback.jump(1);
  assert.equal(playback.time, 11);
  playback.jump(-1);
  assert.equal(playback.label, "first");
  playback.play();
  pass(1);
  assert.equal(playback.label, "first");
});

test("an empty recording is over at once", () => {
  const { playback, pass } = played(null, [[0, "end", ""]]);
  playback.play();
  pass(0);
  assert.equal(playback.playing, false);
});

test("durations as on a clock", () => {
  assert.deepEqual([0, 59.9, 61, 3600 + 62].map(clock), ["0:00", "0:59", "1:01", "1:01:02"]);
});

test("what comes with a marker is seen where one goes to it, and nothing that comes later", () => {
  const { stage, playback, pass } = played(null, [[2, "m", "first"], [2.002, "o", "a"], [2.1, "o", "b"]]);
  playback.jump(1);
  pass(0);
  assert.equal(stage.text, "a");
});
