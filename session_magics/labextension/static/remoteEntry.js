// An extension of JupyterLab and Notebook, written by hand in the form that their builder gives to extensions. Nothing
// depends on it. It shows the saved text of a terminal whose kernel is gone, where JupyterLab by itself says "Error
// displaying widget", colours the text of %%sh_session cells as shell, and leaves their completion to the shell.
(() => {
  const NAME = "session-magics";
  const MARK = "session_magics";
  const VIEW = "application/vnd.jupyter.widget-view+json";
  const SHELL = "text/x-sh";
  const PATIENCE = 15_000; // milliseconds for a kernel, which a notebook may never get

  /** Put text in place of the terminals that no kernel knows. `known`: the ids of the widgets that live. */
  function heal(panel, known) {
    for (const cell of panel.content.model?.cells ?? []) {
      if (cell.type !== "code") continue;
      for (let at = 0; at < cell.outputs.length; at++) {
        const output = cell.outputs.get(at).toJSON();
        const id = output.metadata?.[MARK] && output.data?.[VIEW]?.model_id;
        if (!id || known.has(id)) continue;
        const { [VIEW]: _, ...data } = output.data;
        cell.outputs.set(at, { ...output, data });
      }
    }
  }

  async function widgets(panel) {
    const kernel = panel.sessionContext.session?.kernel;
    if (!kernel) return new Set();
    const { content } = await kernel.requestCommInfo({ target_name: "jupyter.widget" });
    return new Set(Object.keys(content.comms ?? {}));
  }

  const isShell = (model) => model.sharedModel.getSource().trimStart().startsWith("%%sh_session");

  /** Of two languages that a page loads for the first time the later one stays: the cell's present one is waited for. */
  async function colour(panel, cell) {
    if (cell.type !== "code") return;
    if (isShell(cell) && cell.mimeType !== SHELL) await languages?.getLanguage(cell.mimeType).catch(() => {});
    if (isShell(cell)) {
      if (cell.mimeType !== SHELL) cell.mimeType = SHELL;
    } else if (cell.mimeType === SHELL) {
      cell.mimeType = panel.content.codeMimetype;
    }
  }

  function colourAll(panel, seen) {
    for (const cell of panel.content.model?.cells ?? []) {
      void colour(panel, cell);
      if (seen.has(cell)) continue;
      seen.add(cell);
      cell.contentChanged.connect(() => void colour(panel, cell));
      cell.mimeTypeChanged.connect(() => setTimeout(() => void colour(panel, cell)));
    }
  }

  /** In our shell cells the page offers no words of the cell beside what the shell offers: behind a space it has all of them. */
  function completeByShell() {
    const words = completers?.getProviders?.().get("CompletionProvider:context");
    if (!words || words[MARK]) return;
    const fetch = words.fetch.bind(words);
    words[MARK] = true;
    words.fetch = async (request, context) => {
      const { implementation } = (await context.session?.kernel?.info) ?? {};
      const ours = implementation === NAME || (context.editor && isShell(context.editor.model));
      return ours ? { start: request.offset, end: request.offset, items: [] } : fetch(request, context);
    };
  }

  async function opened(panel) {
    completeByShell();
    await panel.context.ready;
    const seen = new WeakSet();
    colourAll(panel, seen);
    panel.content.model.cells.changed.connect(() => colourAll(panel, seen));
    panel.sessionContext.statusChanged.connect((_, status) => {
      if (["restarting", "terminating", "dead"].includes(status)) heal(panel, new Set());
    });
    const late = new Promise((done) => setTimeout(done, PATIENCE));
    await Promise.race([panel.sessionContext.ready, late]);
    heal(panel, await widgets(panel));
    colourAll(panel, seen);
  }

  let shared, languages, completers;
  const load = async (name) => (await Object.values(shared[name])[0].get())();

  async function extension() {
    const { INotebookTracker } = await load("@jupyterlab/notebook");
    const { IEditorLanguageRegistry } = await load("@jupyterlab/codemirror");
    const { ICompletionProviderManager } = await load("@jupyterlab/completer");
    const optional = [INotebookTracker, IEditorLanguageRegistry, ICompletionProviderManager];
    const activate = (_, tracker, ...services) => {
      [languages, completers] = services;
      tracker?.forEach((panel) => void opened(panel));
      tracker?.widgetAdded.connect((_, panel) => void opened(panel));
    };
    return { id: `${NAME}:plugin`, autoStart: true, optional, activate };
  }

  globalThis._JUPYTERLAB ??= {};
  globalThis._JUPYTERLAB[NAME] = {
    init: async (scope) => {
      shared = scope;
    },
    get: async () => {
      const plugin = await extension();
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
