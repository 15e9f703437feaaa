import assert from "node:assert/strict";
import { test } from "node:test";
import { sameModel } from "../src/model.js";
import { age, changes, COLUMNS, counts, filter, memory, pressed, sorted, stateText } from "../src/rows.js";
import { chooseScreenReader, onScreenReader, screenReader } from "../src/screenreader.js";
import { AT, ROWS, tableModel } from "./play.js";

const names = (rows) => rows.map((row) => row.name);
const column = (key) => COLUMNS.find((one) => one.key === key);
const found = (typed) => names(ROWS.filter(filter(typed)));

test("figures have few digits", () => {
  assert.deepEqual([-3, 0, 59, 60, 7199, 7200, 86_399, 86_400 * 12].map(age), ["0 s", "0 s", "59 s", "1 min", "1 h", "2 h", "23 h", "12 d"]);
  assert.deepEqual(
    [0, 1024, 999 * 1024, 1023 * 1024, 1.5 * 1024 ** 2, 12 * 1024 ** 2, 9.96 * 1024 ** 2, 6.4 * 1024 ** 3, 3 * 1024 ** 4].map(memory),
    ["0 KB", "1 KB", "999 KB", "1.0 MB", "1.5 MB", "12 MB", "10 MB", "6.4 GB", "3.0 TB"],
  );
});

test("a state is told in short", () => {
  assert.equal(stateText({ text: "lost (the holder\nwas killed)", busy: "" }), "lost");
  assert.equal(stateText({ text: "backing-off after exit 1", busy: "" }), "backing-off");
  assert.equal(stateText({ text: "killed by signal 15", busy: "" }), "killed by signal 15");
  assert.equal(stateText({ text: "running", busy: "stopping" }), "stopping …");
  assert.equal(stateText({ text: "running", state: "running", doing: "waiting: Go on?", busy: "" }), "waiting: Go on?");
  assert.equal(stateText({ text: "exited 0", state: "exited", doing: "finished after 3m", busy: "" }), "exited 0");
});

test("a column is sorted one way, the other way, and not", () => {
  assert.deepEqual(pressed(null, column("name")), { key: "name", down: false });
  assert.deepEqual(pressed({ key: "name", down: false }, column("name")), { key: "name", down: true });
  assert.equal(pressed({ key: "name", down: true }, column("name")), null);
  assert.deepEqual(pressed({ key: "name", down: true }, column("cpu")), { key: "cpu", down: true });
});

test("sorting keeps the kernel's order among equals, and what has no figure is last", () => {
  for (const down of [false, true]) {
    const rows = sorted(ROWS, { key: "cpu", down });
    assert.deepEqual(names(rows.slice(-5)), names(ROWS.filter((row) => row.cpu === null)), `down: ${down}`);
  }
  const states = sorted(ROWS, { key: "state", down: false }).filter((row) => stateText(row) === "running");
  assert.deepEqual(names(states), names(ROWS.filter((row) => stateText(row) === "running")));
  assert.equal(sorted(ROWS, null), ROWS);
});

test("names are sorted as people count, and an age stands still at the end", () => {
  const rows = ["w10", "W9", "a"].map((name) => ({ name }));
  assert.deepEqual(names(sorted(rows, { key: "name", down: false })), ["a", "W9", "w10"]);
  assert.equal(column("age").text({ since: 100, until: 130 }, 900), "30 s");
  assert.equal(sorted(ROWS, { key: "age", down: false }, AT)[0].name, "agent-1");
});

test("the filter takes words of any field, and labels exactly", () => {
  assert.equal(found("").length, ROWS.length);
  assert.deepEqual(found("HTTP.server"), ["web"]);
  assert.deepEqual(found("exited"), ["tests", "build"]);
  assert.deepEqual(found("stopping"), ["watcher"]);
  assert.deepEqual(found("crew agent"), ["agent-1"]);
  assert.deepEqual(found("crew=b"), ["agent-1"]);
  assert.deepEqual(found("label:crew=a train"), ["train"]);
  assert.deepEqual(found("cre=a"), []);
  assert.deepEqual(found("label:kernel"), ["main@3f2a"]);
  assert.deepEqual(found("label:toString"), []);
});

test("a label with = in its value, and text that only looks like a label", () => {
  const row = { ...ROWS[0], labels: { env: "A=1" }, program: "env MODE=fast cmd" };
  assert.ok(filter("env=A=1")(row) && filter("MODE=fast")(row) && !filter("label:MODE=fast")(row));
});

test("what there is, is counted", () => {
  assert.equal(counts(ROWS, ROWS.length), "8 running, 4 ended");
  assert.equal(counts(ROWS.slice(0, 2), 2), "2 running");
  assert.equal(counts(ROWS, 3), "3 of 12 shown");
  assert.equal(counts([], 0), "");
});

test("changes of state are told, many of them in short", () => {
  const before = new Map(ROWS.map((row) => [row.id, row]));
  const now = ROWS.map((row, n) => ({ ...row, cpu: 5, last: "new", text: n === 1 ? "exited 3" : row.text }));
  assert.equal(changes(before, now), "train exited 3");
  assert.equal(changes(before, ROWS), "");
  assert.equal(changes(new Map(), ROWS.slice(0, 1)), "web running");
  assert.ok(changes(new Map(), ROWS).endsWith("and 8 more changes"));
});

test("the objects that views get of one model are one, those of two are not", () => {
  const model = tableModel();
  assert.ok(sameModel(model.proxy(), model.proxy()));
  assert.ok(!sameModel(model.proxy(), tableModel().proxy()));
});

test("a choice reaches this page even where nothing can be kept", () => {
  const window = new EventTarget();
  Object.defineProperty(window, "localStorage", { get: () => { throw new Error("denied"); } });
  const chosen = [];
  const end = onScreenReader(window, (on) => chosen.push(on));
  assert.equal(screenReader(window), false);
  chooseScreenReader(window, true);
  window.dispatchEvent(Object.assign(new Event("storage"), { key: "another", newValue: "on" }));
  window.dispatchEvent(Object.assign(new Event("storage"), { key: "session-magics:screen-reader", newValue: null }));
  end();
  chooseScreenReader(window, true);
  assert.deepEqual(chosen, [true, false]);
});
