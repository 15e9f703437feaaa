"""One Jupyter kernel in scratch directories of its own, driven cell by cell.

Used by run_cells.py. Everything started below the kernel carries a tag in its
environment, so that what is left over can be found, and killed by process id.
"""

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import zmq
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpecManager

from score_cells import LIMIT, Record, as_list

IPYTHON = ["-m", "ipykernel_launcher", "-f", "{connection_file}", "--HistoryManager.enabled=False"]
TARGETS = {  # name -> (arguments after the interpreter, magic before a cell)
    "session": (IPYTHON, "%%sh_session"),
    "shell-kernel": (["-P", "-m", "session_magics.kernel", *IPYTHON[2:], "--SessionMagics.status_line=False"], ""),
    "bash-magic": (IPYTHON, "%%bash"),
    "bash-kernel": (["-m", "bash_kernel", "-f", "{connection_file}"], ""),
}
DROPPED = re.compile(  # variables that the kernel does not inherit from whoever runs this
    r"PS\d|PROMPT_COMMAND|BASH_ENV|ENV|HISTFILE|PAGER|MANPAGER|LESS|LANG|LANGUAGE|COLUMNS|LINES|LS_COLORS|SSH_ASKPASS"
    r"|TMUX|STY|PYTHONSTARTUP|(LC|JPY|XDG|GIT|PYTEST|SESSION_MAGICS)_.*"
)
EOF_ANSWER = "\x04"  # how a Jupyter front-end says "end of file"
GRACE = 20.0  # seconds for everything to be gone after the end of a kernel
IDLE_AFTER = 10.0  # seconds for idle to come after the reply: a flood may have driven it out
ROUNDS = 20  # looks for what a kernel has left, which may be starting more
LIVE = set()  # kernels to put away if the run itself is stopped


class Kernel:
    """One kernel process in scratch directories of its own."""

    def __init__(self, target, python, case, *, shared=False):
        """``shared``: another user works in the scratch directories as well."""
        self.target, self.tag, self.used, self.work = target, "cells" + uuid.uuid4().hex, 0, "work0"
        self.records, self.displays, self.client = {}, {}, None
        self.root = Path(tempfile.mkdtemp(prefix="cells"))
        for name in ("home", "work0", "spec/cell"):
            (self.root / name).mkdir(parents=True)
        for name, body in case.get("files", {}).items():
            path = self.root / ("home/" + name[2:] if name.startswith("~/") else "work0/" + name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")
            path.chmod(0o755 if body.startswith("#!") else 0o644)
        for path in (self.root, *self.root.rglob("*")) if shared else ():
            mode = path.stat().st_mode
            path.chmod(mode | (mode & 0o700) >> 3 | (mode & 0o700) >> 6)
        python = os.path.abspath(python)
        spec = {"argv": [python, *TARGETS[target][0]], "display_name": target, "language": "bash"}
        spec["interrupt_mode"] = "message" if target == "shell-kernel" else "signal"
        (self.root / "spec/cell/kernel.json").write_text(json.dumps(spec))
        self.env = {k: v for k, v in os.environ.items() if not DROPPED.fullmatch(k)}
        self.env |= {
            "HOME": str(self.root / "home"),
            "IPYTHONDIR": str(self.root / "ipython"),
            "TERM": "xterm",
            "PATH": os.path.dirname(python) + os.pathsep + os.environ["PATH"],
            "LANG": "C.UTF-8",
            "CELLS_TAG": self.tag,
            **case.get("env", {}),
        }
        self.manager = KernelManager(
            kernel_name="cell",
            transport="ipc",
            connection_file=str(self.root / "k.json"),
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(self.root / "spec")]),
        )
        LIVE.add(self)

    def start(self):
        """Start the process and make it ready for cells; return what is wrong with it, or None."""
        with open(self.root / "kernel.log", "wb") as log:
            self.manager.start_kernel(env=self.env, cwd=str(self.root / "work0"), stdout=log, stderr=log)
        self.pid = self.manager.provisioner.pid
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        if self.target == "session":
            rec = self.execute("%load_ext session_magics", 30)
            if rec.trouble or rec.reply["status"] != "ok":
                return f"cannot load session_magics: {rec.trouble or rec.failure()}"

    def last_words(self):
        """The last line that the process itself wrote, for the report of one that died."""
        lines = (self.root / "kernel.log").read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def next_directory(self):
        """Give a reused Python kernel a fresh working directory for the next case."""
        self.work = f"work{self.used}"
        work = self.root / self.work
        work.mkdir()
        work.chmod(self.root.stat().st_mode)
        self.execute(f"import os; os.chdir({str(work)!r})")

    def interrupt(self, pid_only):
        """What the stop button does: SIGINT to the kernel's process group, or only to the kernel itself."""
        os.kill(self.pid, signal.SIGINT) if pid_only else self.manager.interrupt_kernel()

    def execute(self, code, limit=LIMIT, step=MappingProxyType({})):
        """Run code; return its Record when reply and idle have come, or with .trouble set when they have not."""
        rec, client = Record(), self.client
        handlers = {
            channel.socket: (channel, handler)
            for channel, handler in (
                (client.iopub_channel, self._iopub),
                (client.shell_channel, self._shell),
                (client.stdin_channel, self._stdin),
            )
        }
        poller = zmq.Poller()
        for socket in handlers:
            poller.register(socket, zmq.POLLIN)
        self.current, self.answers = rec, list(step.get("stdin", []))
        stops = list(as_list(step.get("interrupt_after", [])))
        self.records[client.execute(code, allow_stdin=step.get("allow_stdin", True))] = rec
        while not (rec.reply and (rec.idle or time.monotonic() - rec.replied > IDLE_AFTER)):
            rec.elapsed = time.monotonic() - rec.start
            if not rec.reply and rec.elapsed > limit:
                rec.trouble = f"{'idle, but no execute_reply' if rec.idle else 'not finished'} after {limit:g} s"
            elif not self.manager.is_alive():
                rec.trouble = "the kernel died"
            if rec.trouble:
                return rec
            if stops and rec.elapsed >= stops[0]:
                stops.pop(0)
                self.interrupt(step.get("interrupt_pid_only", False))
            for socket, _ in poller.poll(50):
                channel, handler = handlers[socket]
                deadline = time.monotonic() + 0.5  # a flood on one channel must not starve the others
                while channel.msg_ready() and time.monotonic() < deadline:
                    handler(channel.get_msg(timeout=0))
        rec.elapsed = rec.replied - rec.start
        return rec

    def _shell(self, msg):
        rec = self.records.get(msg["parent_header"].get("msg_id"))
        if rec and msg["msg_type"] == "execute_reply":
            rec.reply, rec.replied = msg["content"], time.monotonic()

    def _stdin(self, msg):
        """Answer an input_request: the case's next answer, or end of file when it has none left."""
        self.current.asked.append((msg["content"].get("prompt", ""), bool(msg["content"].get("password"))))
        self.current.unanswered += not self.answers
        answer = self.answers.pop(0) if self.answers else EOF_ANSWER
        if answer != "⟪wait⟫":
            self.client.input(answer)

    def _iopub(self, msg):
        """File an output under the cell that caused it; an update replaces its display wherever that is."""
        rec, kind, content = self.records.get(msg["parent_header"].get("msg_id")), msg["msg_type"], msg["content"]
        if kind in ("display_data", "execute_result", "update_display_data"):
            text, html = (str(content["data"].get(mime, "")) for mime in ("text/plain", "text/html"))
            name = content.get("transient", {}).get("display_id")
            if kind != "update_display_data":
                if rec:
                    self.displays.setdefault(name, []).append(rec.add(text, True, html))
                return
            shown = self.displays.get(name, [])
            if rec:
                rec.came(any(output["text"] != text for output in shown))
            for output in shown:
                output.update(text=text, html=html)
        elif rec and kind == "stream":
            rec.add(content["text"])
        elif rec and kind == "clear_output":
            rec.clear = content.get("wait", False)
            rec.outputs = rec.outputs if rec.clear else []
        elif rec and kind == "error":
            rec.error = content
        elif rec and kind == "status" and content["execution_state"] == "idle":
            rec.idle = True

    def tagged(self):
        """(pid, command line) of whatever still runs below this kernel; found on Linux only."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if self.tag.encode() in (path / "environ").read_bytes():
                    command = (path / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.append((int(path.name), command.decode("utf-8", "replace")))
            except OSError:
                pass  # gone meanwhile, or not ours
        return found

    def kill_all(self, found):
        """Kill these, and what they have started meanwhile."""
        for _ in range(ROUNDS):
            for pid, _ in found:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if not (found := found and self.tagged()):
                break

    def stop(self, how="now"):
        """End the kernel ("now", "shutdown" or "kill"); return the command lines that outlive the last two."""
        LIVE.discard(self)
        try:
            if how == "kill":
                os.kill(self.pid, signal.SIGKILL)
            if self.client:
                self.client.stop_channels()
            self.manager.shutdown_kernel(now=how != "shutdown")
        except Exception as error:  # it never came up, or is gone already
            print(f"note: shutdown: {error!r}", file=sys.stderr)
        end = time.monotonic() + (0 if how == "now" else GRACE)
        while (left := self.tagged()) and time.monotonic() < end:
            time.sleep(0.2)
        self.kill_all(left)
        shutil.rmtree(self.root, ignore_errors=True)
        return [] if how == "now" else [line.strip() for _, line in left]
