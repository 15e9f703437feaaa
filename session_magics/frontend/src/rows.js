// The rows of the table of sessions: how they are told, sorted and filtered. Knows nothing of a page.

/**
 * @typedef {object} Row
 * @property {string} id
 * @property {string} name
 * @property {string} state - running, backing-off, exited, failed, lost, unknown
 * @property {string} text - the state in words
 * @property {string} doing - of a coding agent: what it does, and how its approval stands
 * @property {string} program
 * @property {string} directory
 * @property {number} since - Unix time of the start, or 0
 * @property {number | null} until - Unix time of the end
 * @property {number | null} code
 * @property {number | null} pid
 * @property {number | null} cpu - percent of one core
 * @property {number | null} memory - bytes
 * @property {number[]} ports
 * @property {string} last - last line of the output
 * @property {Record<string, string>} labels
 * @property {string} busy - "", "stopping", "restarting"
 *
 * @typedef {string | number | null} Value
 *
 * @typedef {object} Column
 * @property {string} key
 * @property {string} title
 * @property {(row: Row, at: number) => string} text - what its cell says; `at`: the kernel's Unix time
 * @property {(row: Row, at: number) => Value} value - by which it sorts; null is last, whichever way
 * @property {boolean} [number] - aligned to the right
 * @property {boolean} [biggestFirst] - sorted downwards at the first press
 *
 * @typedef {{key: string, down: boolean} | null} Sort - null: the order of the kernel
 */

/** States that a session can leave only by being started anew. */
const ENDED = new Set(["exited", "failed", "lost"]);
/** State changes that are told one by one; the rest is counted. */
const TOLD = 4;

/** @param {Row} row */
export const hasEnded = (row) => ENDED.has(row.state);

/** Without the reason, which has no room. @param {Row} row */
export const stateText = (row) => {
  if (row.busy) return `${row.busy} …`;
  return row.doing && row.state === "running" ? row.doing : row.text.replace(/ (\(|after ).*/s, "");
};

/** @param {number} seconds */
export function age(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

/** @param {number} bytes */
export function memory(bytes) {
  let size = bytes / 1024;
  let unit = "KB";
  for (const larger of ["MB", "GB", "TB"]) {
    if (size < 999.5) break;
    size /= 1024;
    unit = larger;
  }
  return `${size < 9.95 && unit !== "KB" ? size.toFixed(1) : Math.round(size)} ${unit}`;
}

/** @type {Column[]} */
export const COLUMNS = [
  { key: "name", title: "Name", text: (row) => row.name, value: (row) => row.name },
  { key: "state", title: "State", text: stateText, value: (row) => stateText(row) },
  { key: "program", title: "Program", text: (row) => row.program, value: (row) => row.program },
  { key: "directory", title: "Directory", text: (row) => row.directory, value: (row) => row.directory },
  {
    key: "age", title: "Age", number: true,
    text: (row, at) => (row.since ? age((row.until ?? at) - row.since) : ""),
    value: (row, at) => (row.since ? (row.until ?? at) - row.since : null),
  },
  {
    key: "cpu", title: "CPU", number: true, biggestFirst: true,
    text: (row) => (row.cpu === null ? "" : `${Math.round(row.cpu)} %`), value: (row) => row.cpu,
  },
  {
    key: "memory", title: "Memory", number: true, biggestFirst: true,
    text: (row) => (row.memory === null ? "" : memory(row.memory)), value: (row) => row.memory,
  },
  {
    key: "ports", title: "Ports", number: true,
    text: (row) => row.ports.join(", "), value: (row) => row.ports[0] ?? null,
  },
  { key: "last", title: "Last line", text: (row) => row.last, value: (row) => row.last || null },
];

/**
 * What a press on a column's title makes of the order: one way, the other way, that of the kernel.
 * @param {Sort} sort
 * @param {Column} column
 * @returns {Sort}
 */
export function pressed(sort, column) {
  const first = Boolean(column.biggestFirst);
  if (sort?.key !== column.key) return { key: column.key, down: first };
  return sort.down === first ? { key: column.key, down: !first } : null;
}

const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/**
 * In order; equal ones stay in that of the kernel.
 * @param {Row[]} rows
 * @param {Sort} sort
 * @param {number} at - the kernel's time
 */
export function sorted(rows, sort, at) {
  const column = sort && COLUMNS.find((one) => one.key === sort.key);
  if (!column) return rows;
  const keyed = rows.map((row) => /** @type {[Value, Row]} */ ([column.value(row, at), row]));
  const way = sort.down ? -1 : 1;
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return way * (typeof a === "number" && typeof b === "number" ? a - b : words.compare(String(a), String(b)));
  });
  return keyed.map(([, row]) => row);
}

/**
 * The test of what was typed into the filter: all words must match. `label:crew=a` and `crew=a` mean that very label.
 * @param {string} typed
 * @returns {(row: Row) => boolean}
 */
export function filter(typed) {
  const tests = typed.split(/\s+/).filter(Boolean).map(wordTest);
  return (row) => tests.every((test) => test(row));
}

/** @param {string} word @returns {(row: Row) => boolean} */
function wordTest(word) {
  const only = word.startsWith("label:");
  const [key, ...rest] = (only ? word.slice(6) : word).split("=");
  const value = rest.join("=");
  const wanted = word.toLowerCase();
  const has = (/** @type {Row} */ { labels }) => (rest.length ? labels[key] === value : Object.hasOwn(labels, key));
  if (only) return (row) => !key || has(row);
  const said = (/** @type {Row} */ row) =>
    [row.name, row.program, row.directory, row.text, row.busy, row.last].join("\n");
  if (rest.length) return (row) => has(row) || said(row).toLowerCase().includes(wanted);
  const labels = (/** @type {Row} */ row) => Object.entries(row.labels).map((pair) => pair.join("=")).join("\n");
  return (row) => `${said(row)}\n${labels(row)}`.toLowerCase().includes(wanted);
}

/** How many there are. @param {Row[]} rows @param {number} shown */
export function counts(rows, shown) {
  if (shown < rows.length) return `${shown} of ${rows.length} shown`;
  const ended = rows.filter(hasEnded).length;
  const parts = [];
  if (rows.length > ended) parts.push(`${rows.length - ended} running`);
  if (ended) parts.push(`${ended} ended`);
  return parts.join(", ");
}

/** What has changed, for those who do not see it. @param {Map<string, Row>} before @param {Row[]} rows */
export function changes(before, rows) {
  const news = rows.filter((row) => before.get(row.id)?.text !== row.text).map((row) => `${row.name} ${row.text}`);
  if (news.length <= TOLD) return news.join(", ");
  return `${news.slice(0, TOLD).join(", ")} and ${news.length - TOLD} more changes`;
}
