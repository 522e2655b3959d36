"""kohort demo: what works today, told by the code itself. It never claims more than that."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

import kohort


def run() -> None:
    """Show which rooms of Kohort are furnished."""
    table = Table("room", "modules", title="Kohort today")
    for room in sorted(Path(kohort.__file__).parent.glob("*/__init__.py")):
        modules = [path for path in room.parent.rglob("*.py") if path.name != "__init__.py"]
        table.add_row(room.parent.name, str(len(modules)) if modules else "planned")
    Console().print(table)
