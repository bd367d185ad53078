"""`fcer completion SHELL`: a script that lets the shell complete commands, options and the words they take."""

from fcer.commands import COMMANDS, Command
from fcer.commands.parser import CONFIG, EVERYWHERE
from fcer.config import Resolved
from fcer.config.fields import option_of

__all__ = ["run"]


def run(_: Resolved, shell: str) -> None:
    """Print the script."""
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](), end="")


def _commands() -> list[Command]:
    return [*COMMANDS.values(), CONFIG]


def _flags(command: Command) -> list[str]:
    return ["--" + key.replace("_", "-") for key in (*command.options, *EVERYWHERE)]


def _arguments(command: Command) -> tuple[str, ...]:
    return command.argument.choices if command.argument else ()


def _choices() -> dict[str, tuple[str, ...]]:
    """The words that an option takes, where they are known."""
    keys = {key for command in _commands() for key in command.options}
    known = {key: option_of(key) for key in sorted(keys) if option_of(key).choices}
    return {"--" + key.replace("_", "-"): (*option.choices, *option.brought) for key, option in known.items()}


def _bash() -> str:
    words = "\n".join(
        f'        {command.name}) words="{" ".join([*_arguments(command), *_flags(command)])}" ;;'
        for command in _commands()
    )
    values = "\n".join(f'        {flag}) words="{" ".join(choices)}" ;;' for flag, choices in _choices().items())
    return f"""# eval "$(fcer completion bash)", for example in ~/.bashrc
_fcer() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{" ".join(command.name for command in _commands())} --help --version" -- "$word"))
        return
    fi
    case "$before" in
{values}
    esac
    if [ -z "$words" ] && [[ "$word" == -* || "$COMP_CWORD" -eq 2 ]]; then
        case "${{COMP_WORDS[1]}}" in
{words}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _fcer fcer
"""


def _zsh() -> str:
    return f"""# eval "$(fcer completion zsh)", for example in ~/.zshrc after compinit
autoload -U +X bashcompinit && bashcompinit
{_bash().partition(chr(10))[2]}"""


def _fish() -> str:
    """One line for each command and each of its options."""
    lines = ["# fcer completion fish > ~/.config/fish/completions/fcer.fish"]
    for command in _commands():
        lines.append(f"complete -c fcer -n __fish_use_subcommand -f -a {command.name} -d '{_quoted(command.does)}'")
        here = f"'__fish_seen_subcommand_from {command.name}'"
        if _arguments(command):
            lines.append(f"complete -c fcer -n {here} -f -a '{' '.join(_arguments(command))}'")
        for flag in _flags(command):
            choices = _choices().get(flag, ())
            takes = f" -x -a '{' '.join(choices)}'" if choices else ""
            lines.append(f"complete -c fcer -n {here} -l {flag.removeprefix('--')}{takes}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
