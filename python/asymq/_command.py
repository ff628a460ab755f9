"""The command line inside the package."""

import signal
import sys

from . import _asymq


def main() -> None:
    """`asymq`, as installed beside the package."""
    words = sys.argv[1:]
    if words[:2] == ["gateway", "install"]:
        # It would install this Python as the service.
        print(
            "gateway install: not available in the Python package, whose command is no file of its own; "
            "build it with cargo install --path crates/cli, or use the Debian package",
            file=sys.stderr,
        )
        sys.exit(2)
    # As a program without Python: Ctrl-C ends it, unless the command sees to it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_asymq.main(["asymq", *words]))
