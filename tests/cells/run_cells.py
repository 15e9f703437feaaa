#!/usr/bin/env python3
"""Run the shell-cell cases of a TOML file against a Jupyter kernel and score them.

    run_cells.py cells.toml --target session
    run_cells.py cells.toml --target bash-kernel --python venv/bin/python --jobs 2

README.md next to this file explains the format of a case and every key. This
file needs jupyter_client; the interpreter given with --python needs ipykernel
(and session_magics or bash_kernel, whichever the target is).

Every case gets a kernel, a home directory and a working directory of its own,
and all that it started is gone when it ends. A step that does not come to its
end within its limit fails the case there and then, so a run never hangs.

Exit status: 0 all passed, 1 some failed, 2 the run could not be done.
"""

import argparse
import atexit
import fnmatch
import queue
import shlex
import signal
import sys
import threading
import time
import xml.etree.ElementTree as ET

from cell_kernel import LIVE, TARGETS, Kernel
from score_cells import HEALTH, check, load, most, unsupported

OURS = ("session", "shell-kernel")  # targets that know the magic
SHELLS = ("bash-kernel", "shell-kernel")  # kernels whose cells are shell
STUCK = 900  # seconds without any result after which the run gives up


def place_words(case, opts, kernel):
    """The options by which a session runs at a place that shares the kernel's scratch directories, and is like it."""
    if not opts.on:
        return ""
    env = {"HOME": f"{kernel.root}/home", "LANG": "C.UTF-8", "CELLS_TAG": kernel.tag, **case.get("env", {})}
    words = ["--on", opts.on.replace("⟪root⟫", str(kernel.root)), "--cwd", f"{kernel.root}/{kernel.work}"]
    return shlex.join([*words, *(word for key, value in env.items() for word in ("--env", f"{key}={value}"))])


def cell_text(step, opts, kernel, place=""):
    """The text of the notebook cell for this step and target; None if the step is left out there."""
    head = TARGETS[opts.target][1]
    if opts.target in OURS:  # a reused kernel gets a new session for every case
        name = step.get("session", "s" if opts.reuse or place else "")
        words = f"{name}{kernel.used if opts.reuse else ''} {place} {opts.options} {step.get('options', '')}".strip()
        head = f"%%sh_session {words}" if words else head
    else:
        head = f"{head} {step.get('options', '')}".strip()
    if "python" in step:
        return None if opts.target in SHELLS else step["python"].replace("⟪magic⟫", head)
    return (head + "\n" if head else "") + step["cell"].removesuffix("\n")


def run_steps(case, kernel, opts):
    """Run a case's steps in a kernel that is ready; return the reasons why the case fails."""
    done, bad, steps = [], [], case["step"]
    if case.get("health", True):
        session = {"session": steps[-1]["session"]} if "session" in steps[-1] else {}
        steps = [*steps, HEALTH | session]
    for number, step in enumerate(steps, 1):
        want, label = step.get("want", {}), f"step {number}" if number <= len(case["step"]) else "health check"
        code = cell_text(step, opts, kernel, place_words(case, opts, kernel))
        if code is None:
            continue
        time.sleep(step.get("pause", 0))
        rec = kernel.execute(code, most(want, opts.slack) + 1, step)
        if rec.trouble:
            return [f"{label}: {rec.trouble}; so far {rec.text()[-80:]!r}"]
        done.append((label, want, rec))
    for label, want, rec in done:  # only now: late output and display updates count as well
        bad += [f"{label}: {reason}" for reason in check(want, rec, opts.slack)]
    return bad


def run_case(case, opts, kernel):
    """Run one case, in the given kernel if it may be reused; return (reasons, kernel to keep or None)."""
    alone = opts.target == "bash-kernel" or not opts.reuse or any(key in case for key in ("env", "files", "end"))
    if kernel and (alone or kernel.used > 25):
        kernel.stop()
        kernel = None
    bad, left = ["stopped"], []
    try:
        if kernel:
            kernel.next_directory()
        else:
            kernel = Kernel(opts.target, opts.python, case, shared=bool(opts.on))
            wrong = kernel.start()
            if wrong:
                opts.abort.append(wrong)
                return [wrong], None
        kernel.used += 1
        bad = run_steps(case, kernel, opts)
    except Exception as error:
        bad = [f"{type(error).__name__}: {error} ({kernel.last_words() if kernel else ''})"]
    finally:
        keep = None if alone or bad else kernel
        if kernel and not keep:
            left = kernel.stop(case.get("end", "now"))
    return bad + [f"left running: {line[:60]}" for line in left], keep


def arguments():
    ap = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ap.add_argument("files", nargs="+", help="case files")
    ap.add_argument("--target", choices=TARGETS, default="session")
    ap.add_argument("--python", default=sys.executable, help="interpreter that runs the kernel")
    ap.add_argument("--options", default="", help='more options for every %%%%sh_session line, such as "--shell zsh"')
    ap.add_argument(
        "--on", default="", metavar="PLACE", help="run every session there; ⟪root⟫ is the scratch directory"
    )
    ap.add_argument("--only", nargs="+", default=["*"], metavar="ID", help="case ids (wildcards allowed)")
    ap.add_argument("--family", nargs="+", default=list("ABCDEFGH"), help="families, such as: A C")
    ap.add_argument("--jobs", type=int, default=1, help="cases run side by side")
    ap.add_argument(
        "--reuse", action="store_true", help="keep a kernel after a clean pass (with a new session per case)"
    )
    ap.add_argument("--slack", type=float, default=1.0, help="multiply every time limit, for a slow machine")
    ap.add_argument("--junit", metavar="FILE", help="write a JUnit report")
    ap.add_argument("-v", "--verbose", action="store_true", help="also name what passed or was skipped")
    return ap.parse_args()


def work(todo, results, opts):
    """One worker thread: run cases until none is left, keeping its kernel from case to case where that is allowed."""
    kernel = None
    while not opts.abort:
        try:
            case = todo.get_nowait()
        except queue.Empty:
            return
        start, why, bad = time.monotonic(), unsupported(case, opts.target), []
        if not why:
            bad, kernel = run_case(case, opts, kernel)
        results.put((case, why, bad, time.monotonic() - start))


class Report:
    """Counts results by family, prints them, and writes the JUnit file."""

    def __init__(self, opts):
        self.opts, self.tally = opts, {}  # family -> [passed, failed, skipped]
        self.suite = ET.Element("testsuite", name=f"cells {opts.target}")

    def add(self, case, why, bad, took):
        verdict, reason = "skip" if why else "FAIL" if bad else "pass", why or "; ".join(bad)
        self.tally.setdefault(case["family"], [0, 0, 0])[("pass", "FAIL", "skip").index(verdict)] += 1
        element = ET.SubElement(self.suite, "testcase", classname=case["family"], name=case["id"], time=f"{took:.2f}")
        if reason:
            ET.SubElement(element, "skipped" if why else "failure", message=ascii(reason))
        if bad or self.opts.verbose:
            print(f"{verdict} {case['id']} {reason[:400]}".replace("\n", " ").rstrip(), flush=True)

    def finish(self):
        """Print the sums; return the exit status."""
        passed, failed, skipped = (sum(column) for column in zip([0, 0, 0], *self.tally.values(), strict=True))
        if self.opts.junit:
            self.suite.attrib |= {
                "tests": str(passed + failed + skipped),
                "failures": str(failed),
                "skipped": str(skipped),
            }
            ET.ElementTree(self.suite).write(self.opts.junit, encoding="utf-8", xml_declaration=True)
        print(
            "by family: "
            + "  ".join(f"{name} {ok}/{ok + no}" for name, (ok, no, _) in sorted(self.tally.items()))
            + (f"  ({skipped} skipped: not possible on this target or machine)" if skipped else "")
        )
        print(f"{passed} passed, {failed} failed")
        return 1 if failed else 0


def main():
    opts = arguments()
    opts.abort = []  # a reason to give up the whole run
    todo, results, report = queue.SimpleQueue(), queue.SimpleQueue(), Report(opts)
    try:
        cases = [
            case
            for path in opts.files
            for case in load(path)
            if case["family"] in opts.family and any(fnmatch.fnmatch(case["id"], pattern) for pattern in opts.only)
        ]
    except (OSError, ValueError) as error:  # ValueError: also what tomllib raises
        print(error, file=sys.stderr)
        return 2
    for case in cases:
        todo.put(case)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    atexit.register(lambda: [kernel.stop() for kernel in list(LIVE)])
    for _ in range(opts.jobs):
        threading.Thread(target=work, args=(todo, results, opts), daemon=True).start()
    for _ in cases:
        try:
            result = results.get(timeout=STUCK)
        except queue.Empty:
            opts.abort.append(f"no case ended for {STUCK} s")
        if opts.abort:
            print(opts.abort[0], file=sys.stderr)
            return 2
        report.add(*result)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
