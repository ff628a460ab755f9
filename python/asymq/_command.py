"""The command line inside the package."""

import signal
import sys

from . import _asymq


def main() -> None:
    """Runs `asymq`; installed as a script of the package."""
    words = sys.argv[1:]
    if words[:2] == ["gateway", "install"]:
        # The service would run this Python interpreter.
        print(
            "gateway install: not available in the Python package, whose command is not a separate program; "
            "build it with cargo install --path crates/cli, or use the Debian package",
            file=sys.stderr,
        )
        sys.exit(2)
    # As in a program without Python, Ctrl-C ends the process, unless the command handles it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_asymq.main(["asymq", *words]))
