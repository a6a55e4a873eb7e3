"""Completions of bash, zsh and fish for arrayd and arrayctl, from the tables of options and commands."""
import re

# Values of an option of this name that a shell can complete: words, or "file".
FILES = {"config", "socket", "control", "backend-path", "worker", "tls-cert", "tls-key", "tls-ca", "tokens", "principals",
         "kernels-cache", "from"}
CHOICES = {"backend": "auto cpu cuda", "domains": "shared principal", "kernels": "unix all none",
           "log-level": "error warn info debug", "socket-mode": "0600 0660 0666"}
EXTRA = [("config", "FILE", "file of name = value lines"), ("make-token", "NAME", "print a token for NAME, and leave"),
         ("help", "", "print the options and leave"), ("version", "", "print the version and leave")]
CTL = [("socket", "PATH", "the server's socket"), ("control", "PATH", "the server's control socket"),
       ("json", "", "print what the server says as JSON"), ("help", "", "print the usage and leave"),
       ("version", "", "print the version and leave")]


def server_options(rows):
    """Options of arrayd: name, what it takes ("" for nothing), what it does."""
    return [(row[0], row[2], row[4]) for row in rows("option")] + EXTRA


def words_of(name, kind):
    """The words that an option's value is one of, or none."""
    return CHOICES.get(name, "yes no" if kind == "BOOL" else "").split()


def ctl_options(commands):
    """Options of arrayctl, those of its commands included."""
    found = {name: (name, kind, doc) for name, kind, doc in CTL}
    for command, arguments, _ in commands:
        for name, kind in re.findall(r"--([a-z-]+)(?:=([A-Z]+))?", arguments):
            found.setdefault(name, (name, kind, f"of {command}"))
    return list(found.values())


def bash(program, options, commands=()):
    """A completion of bash."""
    cases = []
    for name, kind, _ in options:
        words = words_of(name, kind)
        if words:
            cases.append(f"    --{name}) COMPREPLY=($(compgen -W '{' '.join(words)}' -- \"$value\")); return ;;")
        elif name in FILES:
            cases.append(f"    --{name}) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$value\")); return ;;")
        elif kind:
            cases.append(f"    --{name}) return ;;")
    names = " ".join(f"--{name}{'=' if kind else ''}" for name, kind, _ in options)
    verbs = " ".join(command for command, *_ in commands)
    first = f"    if [[ $COMP_CWORD == 1 ]]; then words='{verbs} --help --version'; fi\n" if verbs else ""
    return f"""# Completion of {program} for bash.
_{program}() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} option= value= words='{names}'
    COMPREPLY=()
    if [[ $word == = ]]; then option=$before
    elif [[ $before == = ]]; then option=${{COMP_WORDS[COMP_CWORD-2]}} value=$word
    elif [[ $before == --* ]]; then option=$before value=$word
    fi
    case $option in
{chr(10).join(cases)}
    esac
{first}    COMPREPLY=($(compgen -W "$words" -- "$word"))
    if [[ ${{COMPREPLY[0]}} == *= ]]; then compopt -o nospace; fi
}}
complete -F _{program} {program}
"""


def zsh_quote(text):
    """A description in a specification of zsh's _arguments."""
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("'", "'\\''")


def zsh(program, options, commands=()):
    """A completion of zsh."""
    lines = []
    for name, kind, doc in options:
        words = words_of(name, kind)
        action = f"({' '.join(words)})" if words else "_files" if name in FILES else " "
        value = f":{kind.lower()}:{action}" if kind else ""
        lines.append(f"    '--{name}{'=' if kind else ''}[{zsh_quote(doc)}]{value}'")
    if commands:
        verbs = " ".join(f"{command}\\:\"{zsh_quote(doc)}\"" for command, _, doc in commands)
        lines.append(f"    '1:command:(({verbs}))'")
        lines.append("    '*:argument:_files'")
    return f"#compdef {program}\n_arguments \\\n" + " \\\n".join(lines) + "\n"


def fish_quote(text):
    """A text in single quotes of fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(program, options, commands=()):
    """A completion of fish."""
    lines = [f"complete -c {program} -f"] if commands else []
    for name, kind, doc in options:
        words = words_of(name, kind)
        takes = f" -x -a '{' '.join(words)}'" if words else " -r -F" if name in FILES else " -x" if kind else ""
        lines.append(f"complete -c {program} -l {name}{takes} -d {fish_quote(doc)}")
    for command, _, doc in commands:
        lines.append(f"complete -c {program} -n __fish_use_subcommand -a {command} -d {fish_quote(doc)}")
    return f"# Completion of {program} for fish.\n" + "\n".join(lines) + "\n"


def files(rows, server):
    """The files by their paths: SHELL/NAME. rows: reads a table; server: the folder of the server's tables."""
    commands = [tuple(row) for row in rows("command", server / "ctl")]
    for program, options, verbs in (("arrayd", server_options(rows), ()), ("arrayctl", ctl_options(commands), commands)):
        yield f"bash/{program}", bash(program, options, verbs)
        yield f"zsh/_{program}", zsh(program, options, verbs)
        yield f"fish/{program}.fish", fish(program, options, verbs)
