import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { ACK_BYTES, ACK_QUIET, HERE_EVERY, Stream, SYNC_REPEAT } from "../src/stream.js";
import { log, Screen } from "./fake.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval"] }));
afterEach(() => mock.timers.reset());

function begun() {
  const sent = [];
  const screen = new Screen();
  const stream = new Stream("me", (message) => sent.push(message), screen);
  stream.start();
  return { sent, screen, stream };
}

function synced(bytes = new Uint8Array()) {
  const all = begun();
  all.stream.receive({ t: "o", v: ["me"], s: 1, p: 0, o: 0, reset: true }, bytes);
  all.sent.length = 0;
  return all;
}

const output = (o, p = o) => ({ t: "o", v: ["me"], p, o });

test("a view asks for the beginning, and again until it is answered", () => {
  const { sent, stream } = begun();
  assert.deepEqual(sent, [{ t: "sync", view: "me", from: -1, s: 1 }]);
  mock.timers.tick(SYNC_REPEAT);
  assert.equal(sent.length, 2);
  stream.receive({ t: "o", v: ["me"], s: 2, p: 0, o: 0, reset: true }, new Uint8Array());
  mock.timers.tick(SYNC_REPEAT * 2);
  assert.equal(sent.length, 2);
});

test("an answer to an earlier question is not taken", () => {
  const { screen, stream } = begun();
  mock.timers.tick(SYNC_REPEAT);
  stream.receive({ t: "o", v: ["me"], s: 1, p: 0, o: 0, reset: true }, log(5));
  assert.equal(screen.bytes.length, 0);
});

test("what is for other views is ignored", () => {
  const { screen, stream } = synced();
  stream.receive({ t: "o", v: ["you"], p: 0, o: 0 }, log(5));
  assert.equal(screen.bytes.length, 0);
});

test("output is written in order, and overlaps are cut", () => {
  const { screen, stream } = synced();
  const whole = log(100);
  stream.receive(output(0), whole.subarray(0, 40));
  stream.receive(output(30), whole.subarray(30, 60));
  stream.receive(output(10), whole.subarray(10, 20));
  stream.receive(output(60), whole.subarray(60));
  assert.deepEqual(screen.bytes, [...whole]);
});

test("a lost message is asked for, and what follows waits for it", () => {
  const { sent, screen, stream } = synced();
  const whole = log(90);
  stream.receive(output(0), whole.subarray(0, 30));
  stream.receive(output(60), whole.subarray(60, 90));
  assert.deepEqual(sent, [{ t: "sync", view: "me", from: 30, s: 2 }]);
  stream.receive({ ...output(30), s: 2, reset: false }, whole.subarray(30, 90));
  assert.deepEqual(screen.bytes, [...whole]);
  assert.equal(screen.resets, 1);
});

test("the loss of the last message is noticed by the head", () => {
  const { sent, stream } = synced();
  stream.receive({ t: "head", v: ["me"], o: 0 }, new Uint8Array());
  assert.equal(sent.length, 0);
  stream.receive({ t: "head", v: ["me"], o: 10 }, new Uint8Array());
  assert.deepEqual(sent, [{ t: "sync", view: "me", from: 0, s: 2 }]);
});

test("bytes that the log has dropped are shown as a hole", () => {
  const { screen, stream } = synced();
  stream.receive(output(500, 0), log(10));
  assert.deepEqual(screen.holes, [500]);
  assert.equal(stream.position, 510);
});

test("parsed bytes are acknowledged when many, else after a pause", () => {
  const { sent, screen, stream } = synced();
  stream.receive(output(0), log(ACK_BYTES));
  assert.equal(sent.length, 0);
  screen.parse();
  assert.deepEqual(sent, [{ t: "ack", view: "me", n: ACK_BYTES }]);
  stream.receive(output(ACK_BYTES), log(1));
  screen.parse();
  assert.equal(sent.length, 1);
  mock.timers.tick(ACK_QUIET);
  assert.deepEqual(sent[1], { t: "ack", view: "me", n: ACK_BYTES + 1 });
});

test("an idle view gives signs of life, and a closed one none", () => {
  const { sent, stream } = synced();
  mock.timers.tick(HERE_EVERY);
  assert.deepEqual(sent, [{ t: "here", view: "me", n: 0 }]);
  stream.close();
  stream.close();
  mock.timers.tick(10 * HERE_EVERY);
  assert.deepEqual(sent.slice(1), [{ t: "bye", view: "me" }]);
});

test("whatever is lost, everything arrives once and in order", () => {
  let seed = 7;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
  const whole = log(20_000);
  for (let round = 0; round < 50; round++) {
    const queue = [];
    const screen = new Screen();
    const stream = new Stream("me", (message) => random() < 0.8 && queue.push(message), screen);
    stream.start();
    let position = null;
    for (let step = 0; step < 5000 && stream.position < whole.length; step++) {
      const question = queue.shift();
      let answer = {};
      if (question?.t === "sync") {
        position = Math.max(question.from, 0);
        answer = { s: question.s, reset: question.from < 0 };
      }
      if (position === null) {
        mock.timers.tick(500);
        continue;
      }
      const end = Math.min(position + Math.floor(random() * 900), whole.length);
      const message = end > position || answer.s ? { ...output(position), ...answer } : { t: "head", v: ["me"], o: end };
      if (random() < 0.8) stream.receive(message, whole.subarray(position, end));
      position = end;
      screen.parse();
      mock.timers.tick(100);
    }
    assert.deepEqual(screen.bytes, [...whole]);
    stream.close();
  }
});
