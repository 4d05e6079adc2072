"""Scripts that complete commands, options and their values in a shell, made from the parsers of the commands."""

# pyright: strict

import argparse
from pathlib import Path
from typing import NamedTuple

from .commands import COMMANDS, command_parser
from .option_groups import Shell


class Completion(NamedTuple):
    """What a shell can know of an argument.

    Attributes:
        flags: of an option; empty for what stands without one.
        values: the words that may follow, if they are few.
        takes_value: whether anything follows.
        takes_file: whether the name of a file follows.
        about: what it does, in a few words.
    """

    flags: tuple[str, ...]
    values: tuple[str, ...]
    takes_value: bool
    takes_file: bool
    about: str


def completion(shell: Shell) -> str:
    """The script for a shell."""
    table = {name: completions(name) for name in COMMANDS}
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell](table)


def completions(command: str) -> list[Completion]:
    """The arguments of a command."""
    actions = command_parser(command)._actions  # pyright: ignore[reportPrivateUsage]
    return [
        Completion(
            tuple(action.option_strings),
            tuple(map(str, action.choices or ())),
            action.nargs != 0 and not isinstance(action, argparse.BooleanOptionalAction),
            action.type is Path,
            brief(action.help or ""),
        )
        for action in actions
    ]


def brief(text: str) -> str:
    """A text up to its example, default or second part, of characters that no shell reads as its own."""
    short = text.split(" (default")[0].split(", e.g.")[0].split(": ")[0].split(";")[0]
    return "".join(character for character in short if character not in "'\"[]:`$\\")


def bash(table: dict[str, list[Completion]]) -> str:
    """The script for bash."""
    lines = [
        "_jaxtex() {",
        '    local command="${COMP_WORDS[1]}" current="${COMP_WORDS[COMP_CWORD]}"',
        '    local previous="${COMP_WORDS[COMP_CWORD-1]}" words=""',
        "    if [ $COMP_CWORD -eq 1 ]; then",
        f'        COMPREPLY=($(compgen -W "{" ".join((*table, "--help", "--version"))}" -- "$current"))',
        "        return",
        "    fi",
        '    case "$command $previous" in',
    ]
    for name, arguments in table.items():
        for argument in arguments:
            if argument.flags and argument.values:
                patterns = "|".join(f'"{name} {flag}"' for flag in argument.flags)
                lines.append(f'        {patterns}) words="{" ".join(argument.values)}" ;;')
    lines += [
        "    esac",
        '    if [ -n "$words" ]; then',
        '        COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "        return",
        "    fi",
        '    case "$command" in',
    ]
    for name, arguments in table.items():
        words = [flag for argument in arguments for flag in argument.flags if flag.startswith("--")]
        words += [value for argument in arguments if not argument.flags for value in argument.values]
        lines.append(f'        {name}) words="{" ".join(words)}" ;;')
    lines += [
        "    esac",
        '    if [[ "$current" == -* || "$command" == completion ]]; then',
        '        COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "    else",
        '        COMPREPLY=($(compgen -f -- "$current"))',
        "    fi",
        "}",
        "complete -o filenames -F _jaxtex jaxtex",
    ]
    return "\n".join(lines)


def zsh(table: dict[str, list[Completion]]) -> str:
    """The script for zsh."""
    lines = ["#compdef jaxtex", "_jaxtex() {", "    local -a commands", "    commands=("]
    lines += [f"        '{name}:{brief(COMMANDS[name].about)}'" for name in table]
    lines += [
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe command commands",
        "        return",
        "    fi",
        '    case "$words[2]" in',
    ]
    for name, arguments in table.items():
        lines += [f"        {name})", "            shift words; (( CURRENT-- ))", "            _arguments \\"]
        # What stands without an option is one rest for `_arguments`: files, or a few words.
        others = [argument for argument in arguments if not argument.flags][:1]
        shown = [argument for argument in arguments if argument.flags] + others
        lines += [f"                '{spec}' \\" for argument in shown for spec in zsh_specs(argument)]
        lines += ["                && return", "            ;;"]
    return "\n".join([*lines, "    esac", "}", '_jaxtex "$@"'])


def zsh_specs(argument: Completion) -> list[str]:
    """What `_arguments` takes for an argument."""
    values = f"({' '.join(argument.values)})" if argument.values else "_files" if argument.takes_file else ""
    if not argument.flags:
        return [f"*:{argument.about}:{values}"]
    value = f":value:{values}" if argument.takes_value else ""
    return [f"{flag}[{argument.about}]{value}" for flag in argument.flags]


def fish(table: dict[str, list[Completion]]) -> str:
    """The script for fish."""
    lines = [
        f"complete -c jaxtex -n __fish_use_subcommand -f -a {name} -d '{brief(COMMANDS[name].about)}'" for name in table
    ]
    for name, arguments in table.items():
        start = f"complete -c jaxtex -n '__fish_seen_subcommand_from {name}'"
        for argument in arguments:
            flags = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in argument.flags)
            values = f"-a '{' '.join(argument.values)}'" if argument.values else ""
            kind = "" if not argument.takes_value else "-r" if argument.takes_file else "-x"
            if flags or values:
                lines.append(" ".join(filter(None, (start, flags, kind, values, f"-d '{argument.about}'"))))
    return "\n".join(lines)
