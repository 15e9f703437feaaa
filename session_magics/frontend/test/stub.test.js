import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

/** As much of a model as the stub uses. */
function model(answer) {
  const listeners = new Set();
  const me = {
    asked: 0,
    get: (name) => ({ bundle: "hash", snapshot: "static text" })[name],
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
    send: (message) => {
      me.asked += message.t === "bundle";
      answer?.(me, (content, buffers) => [...listeners].forEach((one) => one(content, buffers)));
    },
    listeners,
  };
  return me;
}

const element = () => ({
  nodes: [],
  ownerDocument: { createElement: () => ({ remove() { this.removed = true; } }) },
  append(node) { this.nodes.push(node); },
});

const CODE = gzipSync("export const render = ({ el }) => { el.live = true; return () => { el.closed = true; }; };");
const settled = () => new Promise((done) => setTimeout(done, 150));

test("the static text is shown, then the code that the kernel sends, which is asked for once a page", async () => {
  // Node imports no blob: addresses; the page does, so here they are made data: ones.
  globalThis.Blob = class extends globalThis.Blob {
    constructor(parts, options) { super(parts, options); this.parts = parts; }
  };
  URL.createObjectURL = (blob) => `data:text/javascript,${encodeURIComponent(Buffer.from(blob.parts[0]).toString())}`;
  const stub = (await import("../src/stub.js")).default;

  let times = 0;
  const lossy = model((me, send) => ++times > 1 && send({ t: "bundle", hash: "hash" }, [CODE]));
  const first = element();
  const close = stub.render({ model: lossy, el: first });
  assert.equal(first.nodes[0].textContent, "static text");
  await settled();
  assert.ok(!first.live, "the first question was lost");
  while (!first.live) await settled();
  assert.equal(lossy.asked, 2);
  assert.ok(first.nodes[0].removed);
  assert.equal(lossy.listeners.size, 0);

  const other = model();
  const second = element();
  const closeSecond = stub.render({ model: other, el: second });
  await settled();
  assert.ok(second.live);
  assert.equal(other.asked, 0);
  close();
  closeSecond();
  assert.ok(first.closed && second.closed);
});
