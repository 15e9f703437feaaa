"""Reading a case file, the text a notebook reader sees, and the comparison of the two.

Used by run_cells.py; README.md explains the format and every key.
"""

import itertools
import operator
import re
import shutil
import time
import tomllib
from pathlib import Path

KEYS = {
    "case": "id family source title step files env requires targets health end note",
    "step": "cell python optional session options stdin allow_stdin interrupt_after interrupt_pid_only pause want",
    "want": "status within any_of stdout_equals stdout_contains stdout_not_contains stdout_matches stdout_lines "
    "exit_status evalue_contains error_matches report_matches asked password shown_contains "
    "raw_not_contains html_not_contains stored_max max_messages min_updates",
}
LIMIT = 10.0  # seconds a step may take when its want says nothing
SPARE = 10.0  # seconds that any step may take longer where others work: what hangs takes for ever
KEPT = 20_000_000  # characters of stream text kept of one cell; the rest is only counted
HEALTH = {"cell": "echo S$((40+2))", "want": {"stdout_equals": "S42", "within": 2}}
ESCAPE = re.compile(r"⟪(.*?)⟫", re.S)
ERASE = "\ue000"  # stands for "erase to the end of the line" while rendering
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_].*?\x1b\\|[ -/]*[0-~])", re.S)


def as_list(value):
    return value if isinstance(value, list) else [value]


def expand(value):
    """Resolve ⟪hex⟫ (a code point) and ⟪text*N⟫ (a repetition) in every string below value."""

    def one(match):
        body, star, count = match[1].rpartition("*")
        if match[1] in ("magic", "wait"):  # resolved by the runner
            return match[0]
        return body * int(count) if star else chr(int(match[1], 16))

    if isinstance(value, str):
        return ESCAPE.sub(one, value)
    if isinstance(value, list):
        return [expand(item) for item in value]
    return {key: expand(item) for key, item in value.items()} if isinstance(value, dict) else value


def load(path):
    """Return the cases of a file. An unknown key is an error: a typing slip must not lose an expectation."""

    def known(kind, table, where):
        extra = sorted(set(table) - set(KEYS[kind].split()))
        if extra:
            raise ValueError(f"{path}: {where}: unknown key {', '.join(extra)}")

    cases, seen = tomllib.loads(Path(path).read_text(encoding="utf-8"))["case"], set()
    for case in cases:
        known("case", case, case["id"])
        if case["id"] in seen:
            raise ValueError(f"{path}: the id {case['id']} occurs twice")
        seen.add(case["id"])
        for step in case["step"]:
            known("step", step, case["id"])
            for want in (step.get("want", {}), *step.get("want", {}).get("any_of", [])):
                known("want", want, case["id"])
    return expand(cases)


def unsupported(case, target):
    """Why this case cannot be run on this target or machine at all, or None."""
    options = {"bash-magic": r"(--no-raise-error|--out \w+|\s)*", "bash-kernel": ""}.get(target, r".*")
    if target not in case.get("targets", [target]):
        return "not for this target"
    for step in case["step"]:
        if step.get("session") and target not in ("session", "shell-kernel"):
            return "needs named sessions"
        if not re.fullmatch(options, step.get("options", "")):
            return f"needs {step['options']}"
        if "python" in step and target.endswith("-kernel") and not step.get("optional"):
            return "needs Python cells"
    missing = [command for command in case.get("requires", []) if not shutil.which(command)]
    return f"needs the command {missing[0]}" if missing else None


def overwrite(line):
    """One line of stream text once carriage returns, backspaces and erase-to-end have had their effect."""
    cells, col = [], 0
    for char in line:
        if char == "\r":
            col = 0
        elif char == "\b":
            col = max(0, col - 1)
        elif char == ERASE:
            del cells[col:]
        else:
            cells[col : col + 1] = char
            col += 1
    return "".join(cells)


def plain(text, stream):
    """Strip ANSI and normalise CR LF; stream text also gets overwrite(), as a front-end would do it."""
    text = re.sub(r"\r+\n", "\n", text)
    if stream:
        text = re.sub(r"\x1b\[0?K", ERASE, re.sub(r"\x1b\[2K", "\r" + ERASE, text))
    text = re.sub(r"[\x07\x0e\x0f]", "", ANSI.sub("", text))
    if stream and re.search(f"[\r\b{ERASE}]", text):
        text = "\n".join(map(overwrite, text.split("\n")))
    return text


class Record:
    """What came back for one executed cell. Late messages for it still arrive here during later cells."""

    def __init__(self):
        self.outputs = []  # {"text", "html", "display": bool} in order of appearance
        self.times = []  # seconds at which each output message came
        self.changes = []  # those of them that changed what is seen
        self.asked = []  # (prompt, password) of each input_request
        self.unanswered = 0  # how many of those had no answer in the case
        self.reply = self.error = self.idle = self.trouble = None
        self.start, self.elapsed, self.size, self.clear = time.monotonic(), 0.0, 0, False

    def came(self, changed):
        """Note that an output message has come."""
        self.times.append(time.monotonic() - self.start)
        if changed:
            self.changes.append(self.times[-1])

    def add(self, text, display=False, html=""):
        if self.clear:  # clear_output(wait=True) came before
            self.outputs, self.clear = [], False
        self.came(bool(text))
        self.size += len(text)
        if display or self.size < KEPT:
            self.outputs.append({"text": text, "html": html, "display": display})
            return self.outputs[-1]

    def text(self, raw=False):
        """The visible text: streams joined, every display on lines of its own. raw: as stored, nothing stripped."""
        parts = ""
        for display, group in itertools.groupby(self.outputs, key=lambda output: output["display"]):
            chunks = [output["text"] for output in group]
            for chunk in chunks if display else ["".join(chunks)]:
                chunk = chunk if raw else plain(chunk, not display)
                parts += "\n" + chunk if display and parts and parts[-1] != "\n" else chunk
                parts += "\n" if display and chunk and chunk[-1] != "\n" else ""
        return parts

    def failure(self):
        """'ename: evalue' of the error, from iopub or else from the reply."""
        source = self.error or self.reply or {}
        return f"{source.get('ename', '')}: {source.get('evalue', '')}"


def check(want, rec, slack=1.0):
    """Compare one Record with its want table; return the reasons why it does not fit."""
    late = rec.elapsed > most(want, slack)
    bad = [*wrong_status(want, rec), *wrong_text(want, rec), *wrong_figures(want, rec)]
    bad += [f"took {rec.elapsed:.1f} s, limit {most(want, slack):g} s"] if late else []
    if "any_of" in want:
        tries = [check({"within": 1e9, **one}, rec, slack) for one in want["any_of"]]
        if [] not in tries:
            bad.append("none of the alternatives fits: " + " / ".join(reasons[0] for reasons in tries))
    return bad


def wrong_status(want, rec):
    failure, status = rec.failure(), (rec.reply or {}).get("status", "none")
    wanted = want.get("status", "any" if "any_of" in want else "ok")
    if wanted not in ("any", status):
        yield f"status {status}{f' ({failure[-60:]})' if status == 'error' else ''}, wanted {wanted}"
    if wanted == status == "error" and not rec.error and rec.reply.get("ename") != "UsageError":
        yield "error in the reply, but none on iopub"  # IPython prints usage errors instead
    number, word = want.get("exit_status"), r"(?:status|code|exit\w*|rc|returned|with)\W{0,3}"
    if number is not None and not re.search(rf"(?:^\w*: |{word}){number}\b", failure):
        yield f"exit status {number} not named in {failure[-80:]!r}"
    if rec.unanswered:
        yield f"asked for input: {rec.asked[-1][0][-40:]!r}"


def wrong_text(want, rec):
    text, failure = rec.text(), rec.failure()
    equals = [one.rstrip("\n") for one in as_list(want.get("stdout_equals", text))]
    if text.rstrip("\n") not in equals:
        yield f"got {text[-120:]!r}, wanted {equals[0][:120]!r}"
    report = "\n".join([text, failure, *map(str, (rec.error or {}).get("traceback", []))])
    places = {
        "stdout": text,
        "shown": text + "".join(prompt for prompt, _ in rec.asked),
        "raw": rec.text(raw=True),
        "html": "".join(output["html"] for output in rec.outputs),
        "evalue": failure,
        "error": failure,
        "report": plain(report, False),
    }
    for key, where in places.items():
        parts, banned, patterns = (
            as_list(want.get(key + end, [])) for end in ("_contains", "_not_contains", "_matches")
        )
        yield from (f"no {part!r} in {where[-80:]!r}" for part in parts if part not in where)
        yield from (f"{part!r} in {key} {where[-80:]!r}" for part in banned if part in where)
        yield from (
            f"{key} {where[-80:]!r} does not match {one!r}" for one in patterns if not re.search(one, where, re.M)
        )


def most(want, slack):
    """Seconds that a step may take."""
    return want.get("within", LIMIT) * slack + SPARE


def wrong_figures(want, rec):
    gaps = [later - earlier for earlier, later in itertools.pairwise([-1.0, *rec.changes])]
    figures = {
        "stdout_lines": (len(rec.text().splitlines()), operator.eq),
        "asked": (len(rec.asked), operator.eq),
        "password": (bool(rec.asked) and all(masked for _, masked in rec.asked), operator.eq),
        "stored_max": (rec.size if rec.size > KEPT else len(rec.text(raw=True)), operator.le),
        "max_messages": (len(rec.times), operator.le),
        "min_updates": (sum(gap > 0.2 for gap in gaps), operator.ge),
    }
    for key, (value, fits) in figures.items():
        if key in want and not fits(value, want[key]):
            yield f"{key} is {value}, wanted {want[key]}"
