"""`python -m asymq`."""

from ._command import main

main()
