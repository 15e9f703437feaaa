// What the kernel says about a session, in the words of the title bar.

/**
 * @typedef {object} Facts
 * @property {string} name
 * @property {string} state - running, backing-off, exited, failed, lost, removed, unknown
 * @property {string} text - the state in a few words
 * @property {string} program
 * @property {string} directory
 * @property {number} since - Unix time of the start, of the command if one runs
 * @property {number | null} until - Unix time of the end
 * @property {number | null} code
 * @property {number | null} signal
 * @property {[number, number]} size - rows, columns
 * @property {string} owner - the view that the size follows
 * @property {string} waiting - "" or what is waited for: "input", "secret"
 * @property {string} doing - of a coding agent: what it does, and how its approval stands
 * @property {string} command - of a shell session: the command that runs
 */

/** @param {number} seconds */
export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** @param {Facts} facts @param {number} now - Unix time */
export function elapsed(facts, now) {
  if (!facts.since) return "";
  return duration((facts.until ?? now) - facts.since);
}

/** The look of the dot. @param {Facts} facts */
export function mood(facts) {
  if (facts.state === "running") return facts.waiting || facts.doing?.includes("waiting") ? "waiting" : "running";
  if (facts.state === "backing-off") return "waiting";
  if (facts.state === "exited") return facts.code === 0 ? "done" : "failed";
  return ["removed", "unknown"].includes(facts.state) ? "unknown" : "failed";
}

/** @param {Facts} facts */
export function badge(facts) {
  if (facts.waiting === "secret") return "waiting for input (hidden)";
  if (facts.doing) return facts.state === "running" ? facts.doing : `${facts.text} · ${facts.doing}`;
  if (facts.waiting) return "waiting for input";
  return facts.text;
}

/** The end of a path, which says most. @param {string} path @param {number} limit */
export function shortened(path, limit = 40) {
  if (path.length <= limit) return path;
  const parts = path.split("/");
  let short = parts.pop() ?? "";
  while (parts.length && short.length + parts[parts.length - 1].length + 3 <= limit) short = `${parts.pop()}/${short}`;
  return `…/${short}`;
}
