// What the browser benchmark does within the page, where times are taken.
(() => {
  const views = () =>
    [...document.querySelectorAll(".sm-outer")].map((one) => one.__session_magics).filter((one) => one?.el.isConnected);
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const sides = {
    ours: () => views()[0].term,
    theirs: () => [...window.jupyterapp.shell.widgets("main")].find((one) => one.content?._term)?.content._term,
  };

  /** Milliseconds until something typed has been answered and drawn into the terminal's buffer. */
  const press = (term, key) =>
    new Promise((done) => {
      const began = performance.now();
      const once = term.onWriteParsed(() => {
        once.dispose();
        done(performance.now() - began);
      });
      term.input(key);
    });

  /** The lines above the cursor, the lowest first. */
  const lastLines = ({ active }) =>
    Array.from({ length: 4 }, (_, n) => active.getLine(active.baseY + active.cursorY - n)?.translateToString(true) ?? "");

  const bench = {
    over: false,

    ready() {
      const term = sides.theirs();
      return Boolean(term && lastLines(term.buffer).find((line) => /[$#]/.test(line)));
    },

    /** Milliseconds from typing a line until the terminal shows the line that ends its output. */
    until(side, line, end) {
      const term = sides[side]();
      return new Promise((done) => {
        const began = performance.now();
        const once = term.onWriteParsed(() => {
          if (!lastLines(term.buffer).includes(end)) return;
          once.dispose();
          done(performance.now() - began);
        });
        term.input(line);
      });
    },

    /** The times of keys typed in turns on both sides. */
    async echo(keys) {
      const times = { ours: [], theirs: [] };
      for (let n = 0; n < keys; n++) {
        for (const side of n % 2 ? ["ours", "theirs"] : ["theirs", "ours"]) {
          times[side].push(await press(sides[side](), "x"));
          await pause(60 + 40 * Math.random());
        }
      }
      return times;
    },

    /** The times of keys typed into a terminal until `over` is set. */
    async echoWhile(terminal) {
      const times = [];
      for (bench.over = false; !bench.over; await pause(50 + 50 * Math.random())) {
        times.push(await press(views()[terminal].term, "x"));
      }
      return times;
    },

    caughtUp(terminal) {
      const view = views()[terminal];
      return view.stream.parsed === view.stream.position && lastLines(view.term.buffer).includes("over");
    },

    /** Milliseconds from running a cell until the rows of a terminal show a text. */
    async visible(panel, cell, terminal, text) {
      panel.content.activeCellIndex = cell;
      const began = performance.now();
      window.jupyterapp.commands.execute("notebook:run-cell");
      const rows = () => [...document.querySelectorAll(".sm .xterm-rows")][terminal];
      while (!rows()?.textContent.includes(text)) await new Promise(requestAnimationFrame);
      return performance.now() - began;
    },
  };
  window.bench = bench;
})();
