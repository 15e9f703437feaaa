"""What will end detached sessions from outside: a logout, the stop of a service, the end of a job.

Those kill by control group, which nothing that a program does to itself escapes.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from pathlib import Path

JOBS = {"SLURM_JOB_ID": "Slurm", "PBS_JOBID": "PBS", "LSB_JOBID": "LSF", "FLUX_JOB_ID": "Flux"}
"""The variable in which each job scheduler tells a job its number."""
LOGIND_CONFIGS = ("usr/lib/systemd", "etc/systemd", "run/systemd")


def outlook(root: Path = Path("/"), environ: Mapping[str, str] | None = None) -> str | None:
    """One line about what will end sessions started here, None where nothing is known; ``root`` is of the system."""
    environ = os.environ if environ is None else environ
    for variable, scheduler in JOBS.items():
        if job := environ.get(variable):
            return f"this is job {job} of {scheduler}: what is started here ends with the job"
    try:
        groups = (root / "proc/self/cgroup").read_text(errors="replace")
    except OSError:  # not Linux
        return None
    named = re.findall(r"^(?:0:|\d+:name=systemd):(/.*)$", groups, re.M)
    units = [part for path in named for part in path.split("/")]
    manager = any(re.fullmatch(r"user@\d+\.service", unit) for unit in units)
    if manager and not _lingers(root):
        return "your sessions end when you log out: loginctl enable-linger keeps them"
    if not manager and any(re.fullmatch(r"session-\w+\.scope", unit) for unit in units) and _kills(root):
        return (
            "this system ends your processes when you log out (KillUserProcesses): to keep sessions, do "
            "loginctl enable-linger and start them under systemd-run --user --scope"
        )
    services = [unit for unit in units if unit.endswith(".service") and not unit.startswith("user@")]
    if services and not manager:
        return f"this is part of {services[-1]}: what is started here ends when that is stopped or restarted"
    return None


def _lingers(root: Path) -> bool:
    """Whether the user's processes may stay after the last logout."""
    try:
        return (root / "var/lib/systemd/linger" / pwd.getpwuid(os.geteuid()).pw_name).exists()
    except (KeyError, OSError):
        return False


def _kills(root: Path) -> bool:
    """Whether logind ends what a login session leaves behind; root is excluded unless the configuration says so."""
    kills, excluded = "no", "root"
    for folder in LOGIND_CONFIGS:
        place = root / folder
        for path in (place / "logind.conf", *sorted(place.glob("logind.conf.d/*.conf"))):
            try:
                text = path.read_text(errors="replace")
            except OSError:
                continue
            for key, value in re.findall(r"^\s*(KillUserProcesses|KillExcludeUsers)\s*=\s*(.*?)\s*$", text, re.M):
                kills, excluded = (value, excluded) if key == "KillUserProcesses" else (kills, value)
    try:
        me = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        me = ""
    return kills.lower() in ("yes", "true", "on", "1") and me not in excluded.split()
