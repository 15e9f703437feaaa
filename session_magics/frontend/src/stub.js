// What every terminal widget carries: it shows the static text until the page has the real code, which the kernel sends
// once a page. Small, because a copy of it is in the state of each widget.

const FIRST_WAIT = 400;
const HELLO_AT = [0, 200];
const LONGEST_WAIT = 5000;
const LOOK_EVERY = 100; // another view of the page may have got it

const page = (globalThis.__session_magics ??= { code: {}, next: 0 });

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function unpack(buffer) {
  const data = new Blob([buffer]).stream().pipeThrough(new DecompressionStream("gzip"));
  const url = URL.createObjectURL(new Blob([await new Response(data).arrayBuffer()], { type: "text/javascript" }));
  return import(/* webpackIgnore: true */ url);
}

// Asked again until answered: the first message of a page can be lost, and whoever asked may be gone.
async function code(model, alive) {
  const hash = model.get("bundle");
  let wake;
  const take = (message, buffers) => {
    if (message.t === "bundle") {
      page.code[message.hash] ??= unpack(buffers[0]);
      wake?.();
    }
  };
  model.on("msg:custom", take);
  try {
    for (let wait = FIRST_WAIT; !page.code[hash] && alive(); ) {
      if (Date.now() >= page.next) {
        page.next = Date.now() + wait;
        wait = Math.min(2 * wait, LONGEST_WAIT);
        try {
          model.send({ t: "bundle" });
        } catch {} // no kernel: the static text stays
      }
      await Promise.race([pause(LOOK_EVERY), new Promise((done) => (wake = done))]);
    }
    return page.code[hash];
  } finally {
    model.off("msg:custom", take);
  }
}

export default {
  // A page has this model, shown or not: that is how the kernel learns that there is one. Said twice, as a message can
  // come before the kernel has made its way.
  initialize({ model }) {
    for (const wait of HELLO_AT) {
      setTimeout(() => {
        try {
          model.send({ t: "hello" });
        } catch {} // closed meanwhile
      }, wait);
    }
  },
  // Nothing is awaited in render either: whoever displays the view should get it at once.
  render({ model, el }) {
    let alive = true;
    let close;
    const text = el.ownerDocument.createElement("pre");
    text.textContent = model.get("snapshot");
    el.append(text);
    code(model, () => alive).then((module) => {
      if (!alive || !module) return;
      text.remove();
      close = module.render({ model, el });
    });
    return () => {
      alive = false;
      close?.();
    };
  },
};
