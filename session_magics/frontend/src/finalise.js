// When a kernel goes, its views go with it, and a saved notebook would say "Error displaying widget". The text that
// stands beside each of ours takes its place. The labextension does so too, but it may not be where the page comes from.

/** What a kernel's session says when widgets of it are lost. */
const GONE = ["restarting", "autorestarting", "terminating", "dead"];
const MARK = "session_magics";
const VIEW = "application/vnd.jupyter.widget-view+json";

/** Notebooks that are watched. @type {WeakSet<object>} */
const watched = new WeakSet();

/** Watch the notebook that a widget is in, where it is one of JupyterLab's. @param {import("./model.js").Model} model */
export function finalise(model) {
  const context = model.widget_manager?.context;
  const changed = context?.sessionContext?.statusChanged;
  if (!changed || watched.has(context)) return;
  watched.add(context);
  changed.connect((/** @type {any} */ _, /** @type {string} */ status) => {
    if (GONE.includes(status)) for (const cell of context.model?.cells ?? []) settle(cell.outputs);
  });
}

/** Leave text alone in the outputs of one cell. @param {any} outputs - undefined for cells without */
function settle(outputs) {
  for (let at = 0; at < (outputs?.length ?? 0); at++) {
    const output = outputs.get(at).toJSON();
    if (!output.metadata?.[MARK] || !output.data?.[VIEW]) continue;
    const { [VIEW]: _, ...data } = output.data;
    outputs.set(at, { ...output, data });
  }
}
