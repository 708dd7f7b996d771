# SPDX-License-Identifier: MIT
"""`byrote completion`: prints the completion script of a shell."""

import click

from byrote.cli.support.completion import script


@click.command(epilog='Example: eval "$(byrote completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in a shell.

    bash: put eval "$(byrote completion bash)" into ~/.bashrc. zsh: put eval "$(byrote completion
    zsh)" into ~/.zshrc, after compinit. fish: put byrote completion fish | source into
    ~/.config/fish/config.fish. The script starts nothing when it completes; print it again after
    an update.
    """
    click.echo(script(shell, context.find_root().command), nl=False)
