"""The command ``ocf``.

Results go to stdout or to the file of ``--output``; progress, logs and errors go to stderr. Libraries are imported by
the commands that need them, so that ``ocf --help`` answers at once.
"""

from __future__ import annotations

from ocf.cli import compare, compress, examples, regions, rules, solve, warm_up
from ocf.cli import inspect as inspect_commands
from ocf.cli.base import ExitCode, app

__all__ = ["ExitCode", "app", "main"]

app.command("solve", epilog=solve.EXIT_CODES)(solve.solve)
app.command("regions", epilog=regions.EXIT_CODES)(regions.regions)
app.command("rules", epilog=rules.EXIT_CODES)(rules.rules)
app.command("compress")(compress.compress)
app.add_typer(compare.app, name="compare")
app.command("verify")(inspect_commands.verify)
app.command("inspect")(inspect_commands.inspect)
app.command("init-problem")(inspect_commands.init_problem)
app.command("export")(solve.export)
app.command("examples")(examples.examples)
app.command("warm-up")(warm_up.warm_up)
app.command("solvers")(inspect_commands.solvers)


def main() -> None:
    """Run the command line of this process and exit."""
    app(prog_name="ocf")
