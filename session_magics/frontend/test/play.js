// A page without a kernel: models that act as the kernel would, for looking at the views and for tests in a browser.

/** What a page has of one widget model, with what was sent to it. */
export class FakeModel {
  constructor(traits, widgets = { get_model: async (id) => models.get(id) }) {
    this.traits = { layout: {}, ...traits };
    this.widget_manager = widgets;
    this.listeners = new Set();
    this.sent = [];
    this.answer = () => {};
  }

  get = (name) => this.traits[name];

  on = (event, listener) => this.listeners.add({ event, listener });

  off = (event, listener) => {
    for (const one of this.listeners) if (one.event === event && one.listener === listener) this.listeners.delete(one);
  };

  send = (message) => {
    this.sent.push(message);
    this.answer(message);
  };

  /** What anywidget hands to each view: an object of its own. */
  proxy() {
    const { get, on, off, send, widget_manager } = this;
    return { get, on, off, send, widget_manager };
  }

  emit(event, ...values) {
    for (const one of [...this.listeners]) if (one.event === event) one.listener(...values);
  }

  message(content, buffers = []) {
    this.emit("msg:custom", content, buffers);
  }

  set(name, value) {
    this.traits[name] = value;
    this.emit(`change:${name}`);
  }
}

/** Terminals that a table can be shown. */
export const models = new Map();

export const FACTS = {
  name: "web", state: "running", text: "running", program: "python3 -m http.server 8000", directory: "~/project/site",
  since: 0, until: null, code: null, signal: null, size: [12, 90], owner: "", waiting: "", command: "", generation: 1,
};

/** A session's terminal that has printed `text`. */
export function terminalModel(facts = {}, text = "", traits = {}) {
  const model = new FakeModel({
    kind: "session", read_only: false, rows: 12, snapshot: "", facts: { ...FACTS, since: Date.now() / 1000 - 754, ...facts },
    ...traits,
  });
  const log = new TextEncoder().encode(text);
  model.answer = ({ t, view, from, s }) => {
    if (t !== "sync") return;
    const p = Math.max(from, 0);
    if (!model.get("facts").owner) model.set("facts", { ...model.get("facts"), owner: view });
    setTimeout(() => model.message({ t: "o", v: [view], s, p, o: p, reset: from < 0 }, [log.subarray(p)]));
  };
  return model;
}

/** A recording, which comes in pieces, of which the first is lost once. */
export async function playerModel(events, settings = {}) {
  const packer = new Blob([events.map((event) => JSON.stringify(event)).join("\n")]).stream();
  const packed = new Uint8Array(await new Response(packer.pipeThrough(new CompressionStream("gzip"))).arrayBuffer());
  const model = new FakeModel({
    kind: "player", snapshot: "", size: packed.length,
    settings: { title: "demo", rows: 12, columns: 80, speed: 1, startAt: 0, idleLimit: null, autoplay: false, ...settings },
  });
  let lost = false;
  model.answer = ({ t, at }) => {
    if (t !== "cast" || !(lost ||= at === 0 && model.sent.length > 1)) return;
    const piece = packed.slice(at, at + Math.ceil(packed.length / 2));
    setTimeout(() => model.message({ t: "cast", at }, [new DataView(piece.buffer)]));
  };
  return model;
}

export function tableModel(traits = {}) {
  const model = new FakeModel({ kind: "table", read_only: false, labels: {}, snapshot: "no sessions", ...traits });
  model.answer = ({ t, id, view }) => {
    if (t === "show" && models.has(id)) model.message({ t: "shown", view, id, model: id });
  };
  return model;
}

/** The kernel's time in the rows. */
export const AT = 1_800_000_000;

const row = (id, name, rest) => ({
  id, name, state: "running", text: "running", program: "", directory: "~/project", since: AT - 754, until: null, code: null,
  pid: 4000 + Number(id.slice(1)), cpu: 0, memory: null, ports: [], last: "", labels: {}, busy: "", ...rest,
});

const gone = { pid: null, cpu: null, memory: null };

/** Sessions as people have them. */
export const ROWS = [
  row("r1", "web", {
    program: "python3 -m http.server 8000", directory: "~/project/site", cpu: 0.4, memory: 21.4e6, ports: [8000],
    last: '127.0.0.1 - - "GET /index.html HTTP/1.1" 200 -', labels: { crew: "a" },
  }),
  row("r2", "train", {
    program: "python3 train.py --epochs 40 --batch 64 --out runs/2027-01-15", since: AT - 9340, cpu: 398, memory: 6.82e9,
    last: "epoch 17/40  62%|██████▏   | 812/1310 loss 0.2214", labels: { crew: "a", gpu: "0" },
  }),
  row("r3", "agent-1", {
    program: "agent --continue", directory: "~/project/src/parser/recovery/strategies", since: AT - 41, cpu: 12.2, memory: 189e6,
    last: "Do you want to proceed? (y/n)", labels: { crew: "b" },
  }),
  row("r4", "db", {
    program: "postgres -D data -p 5433 -k /tmp", directory: "/var/lib/postgresql/16/main", since: AT - 260_000, cpu: 1.3,
    memory: 96e6, ports: [5433], last: "database system is ready to accept connections",
  }),
  row("r5", "tests", {
    ...gone, state: "exited", text: "exited 3", code: 3, until: AT - 400, program: "pytest -x -q tests", last: "1 failed, 211 passed in 38.20s",
  }),
  row("r6", "build", {
    ...gone, state: "exited", text: "exited 0", code: 0, until: AT - 7000, since: AT - 7100, program: "npm run build", directory: "~/project/ui",
    last: "Done in 61ms",
  }),
  row("r7", "worker", {
    ...gone, state: "backing-off", text: "backing-off after exit 1", program: "celery -A jobs worker", last: "ConnectionRefusedError: [Errno 111]",
  }),
  row("r8", "tunnel", {
    ...gone, state: "lost", text: "lost (the holder was killed)", until: AT - 90, program: "ssh -N -L 9000:localhost:9000 host",
  }),
  row("r9", "main@3f2a", { program: "bash", directory: "~", since: AT - 3800, memory: 5.1e6, last: "$", labels: { kernel: "3f2a" } }),
  row("r10", "watcher", { program: "watchexec -e py -- make", cpu: 0.1, memory: 8.8e6, busy: "stopping", last: "[Running: make]" }),
  row("r11", "jupyter", { program: "jupyter lab --no-browser", ports: [8888, 8889, 45123], cpu: 2.6, memory: 143e6, since: AT - 86_500, last: "[I ServerApp] Kernel started" }),
  row("r12", "sleeper", { ...gone, state: "exited", text: "killed by signal 15", until: AT - 3, program: "sleep 1000" }),
];

/** So many sessions, whose figures change with `tick`. @param {number} count @param {number} tick */
export function rows(count, tick = 0) {
  return Array.from({ length: count }, (_, n) => {
    const one = ROWS[n % ROWS.length];
    if (n < ROWS.length && !tick) return one;
    const named = { ...one, id: `r${n + 1}`, name: n < ROWS.length ? one.name : `${one.name}-${n}` };
    if (one.cpu === null) return named;
    const memory = (one.memory ?? 1e6) + 65_536 * ((n + tick) % 97);
    return { ...named, cpu: (one.cpu + n + 7 * tick) % 400, memory, last: `${one.last} ${tick}` };
  });
}
