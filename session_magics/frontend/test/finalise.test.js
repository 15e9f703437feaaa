import assert from "node:assert/strict";
import { test } from "node:test";
import { finalise } from "../src/finalise.js";

const VIEW = "application/vnd.jupyter.widget-view+json";

class Outputs {
  constructor(...outputs) {
    this.held = outputs;
  }
  get length() {
    return this.held.length;
  }
  get(at) {
    return { toJSON: () => this.held[at] };
  }
  set(at, output) {
    this.held[at] = output;
  }
}

function notebook(...cells) {
  const handlers = [];
  const statusChanged = { connect: (handler) => handlers.push(handler) };
  const context = { model: { cells }, sessionContext: { statusChanged } };
  return { model: { widget_manager: { context } }, say: (status) => handlers.forEach((one) => one({}, status)), handlers };
}

const ours = () => ({ data: { "text/plain": "the text", [VIEW]: { model_id: "1" } }, metadata: { session_magics: {} } });
const another = () => ({ data: { "text/plain": "a slider", [VIEW]: { model_id: "2" } }, metadata: {} });

test("a kernel that goes leaves the text of our views alone", () => {
  const outputs = new Outputs({ output_type: "stream", text: "x" }, ours(), another());
  const { model, say } = notebook({ outputs }, {});
  finalise(model);
  say("busy");
  assert.ok(VIEW in outputs.held[1].data);
  say("restarting");
  assert.deepEqual(outputs.held[1], { data: { "text/plain": "the text" }, metadata: { session_magics: {} } });
  assert.deepEqual(outputs.held[2], another());
});

test("a notebook is watched once, however many views it has", () => {
  const { model, handlers } = notebook();
  finalise(model);
  finalise(model);
  assert.equal(handlers.length, 1);
});

test("where there is no such notebook nothing happens", () => {
  finalise({});
  finalise({ widget_manager: {} });
  finalise({ widget_manager: { context: {} } });
});
