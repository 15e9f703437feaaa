"""``python -m session_magics.kernel --shell bash -f {connection_file}`` is a shell kernel."""

from __future__ import annotations

from ipykernel.kernelapp import IPKernelApp, kernel_aliases
from traitlets import Dict, Type

from session_magics.kernel.shellkernel import ShellKernel
from session_magics.magics.magics import SessionMagics


class ShellKernelApp(IPKernelApp):
    """ipykernel with our kernel; ``--shell`` names the shell, and ports come by the connection file alone."""

    aliases = Dict({**kernel_aliases, "shell": "SessionMagics.shell_program"})
    classes = [*IPKernelApp.classes, SessionMagics]  # noqa: RUF012  a trait, which takes a list
    kernel_class = Type(ShellKernel, klass="ipykernel.kernelbase.Kernel")  # type: ignore[assignment]


if __name__ == "__main__":
    ShellKernelApp.launch_instance()
