"""Names of classes in scenarios, results and charts."""

from __future__ import annotations

import re
from typing import Any


def name(cls: Any) -> None:
    """Sets the default `name` and `title` of a class, for MyQdisc: my-qdisc and MyQdisc."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", cls.__name__)
    cls.name = cls.__dict__.get("name", "-".join(words).lower())
    cls.title = cls.__dict__.get("title", cls.__name__)
