import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { badge, duration, elapsed, mood, shortened } from "../src/facts.js";
import { Input, NUDGE_AFTER, PIECE } from "../src/input.js";
import { brightness, palette } from "../src/theme.js";

const RUNNING = { state: "running", text: "running", waiting: "", since: 100, until: null, code: null };

test("durations are read at a glance", () => {
  assert.deepEqual([0, 59, 61, 3700, 90000, -5].map(duration), ["0 s", "59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h", "0 s"]);
});

test("elapsed time stands still at the end", () => {
  assert.equal(elapsed(RUNNING, 130), "30 s");
  assert.equal(elapsed({ ...RUNNING, until: 110 }, 130), "10 s");
  assert.equal(elapsed({ ...RUNNING, since: 0 }, 130), "");
});

test("the dot tells the state", () => {
  assert.equal(mood(RUNNING), "running");
  assert.equal(mood({ ...RUNNING, waiting: "input" }), "waiting");
  assert.equal(mood({ ...RUNNING, doing: "auto-approve · 3 left · 5m · waiting: Go on?" }), "waiting");
  assert.equal(mood({ ...RUNNING, doing: "working" }), "running");
  assert.equal(mood({ ...RUNNING, state: "exited", code: 0 }), "done");
  assert.equal(mood({ ...RUNNING, state: "exited", code: 3 }), "failed");
  assert.equal(mood({ ...RUNNING, state: "exited", code: null, signal: 9 }), "failed");
  assert.equal(mood({ ...RUNNING, state: "lost" }), "failed");
});

test("waiting for a secret is not told like any other", () => {
  assert.equal(badge({ ...RUNNING, waiting: "input" }), "waiting for input");
  assert.equal(badge({ ...RUNNING, waiting: "secret" }), "waiting for input (hidden)");
  assert.equal(badge({ ...RUNNING, doing: "waiting: Go on?", waiting: "input" }), "waiting: Go on?");
  assert.equal(badge({ ...RUNNING, state: "exited", text: "exited 0", doing: "finished after 3m" }), "exited 0 · finished after 3m");
});

test("a long path keeps its end", () => {
  assert.equal(shortened("/a/b"), "/a/b");
  const short = shortened(`/home/somebody/${"deep/".repeat(20)}project/src`);
  assert.ok(short.length <= 40 && short.startsWith("…/") && short.endsWith("deep/project/src"));
  assert.equal(shortened(`/${"x".repeat(60)}`), `…/${"x".repeat(60)}`);
});

test("a paste goes in pieces that cut no character", () => {
  const sent = [];
  const text = `a${"😀".repeat(PIECE)}`;
  new Input("me", (message) => sent.push(message)).type(text);
  assert.equal(sent.map((one) => one.d).join(""), text);
  assert.ok(sent.length > 1 && sent.every((one) => one.d.length <= PIECE && one.d.isWellFormed()));
});

test("keys are nudged only where answers come as late as the server's acknowledgements", () => {
  for (const [trip, nudged] of [[12, false], [48, true], [150, false]]) {
    mock.timers.enable({ apis: ["setTimeout"] });
    let clock = 1;
    const sent = [];
    const input = new Input("me", (message) => sent.push(message.t), () => clock);
    for (let n = 0; n < 6; n++) {
      input.type("x");
      clock += trip;
      input.answered();
    }
    sent.length = 0;
    input.type("x");
    mock.timers.tick(NUDGE_AFTER);
    assert.deepEqual(sent, nudged ? ["in", "nudge"] : ["in"], `${trip} ms`);
    mock.timers.reset();
  }
});

test("colours can be read on their background", () => {
  const channel = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = (hex) => {
    const [r, g, b] = [1, 3, 5].map((at) => channel(parseInt(hex.slice(at, at + 2), 16) / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (const dark of [true, false]) {
    const theme = palette(dark);
    for (const name of ["foreground", "red", "green", "yellow", "blue", "magenta", "cyan", "brightRed", "brightGreen"]) {
      const [high, low] = [light(theme[name]), light(theme.background)].sort((a, b) => b - a);
      assert.ok((high + 0.05) / (low + 0.05) >= 4.5, `${name} on ${dark ? "dark" : "light"}`);
    }
  }
});

test("a see-through colour says nothing about the page", () => {
  assert.equal(brightness("rgba(0, 0, 0, 0)"), null);
  assert.equal(Math.round(brightness("rgb(255, 255, 255)")), 255);
});
