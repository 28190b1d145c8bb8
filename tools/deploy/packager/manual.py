"""Manual pages, made from the programs' help."""
from .programs import output_of


def page(program, name, section, version):
    """A page in the language of man(7).

    The help's first line is "name: what it is."; the rest is shown as it is.
    """
    text = output_of([program, "--help"] if name == "posternd" else [program, "help"])
    first, _, rest = text.partition("\n")
    summary = first.partition(": ")[2].rstrip(".")
    others = {"posternd": "postern(1)", "postern": "posternd(8)"}
    more = "" if name == "posternd" else ".P\nEach command explains itself: postern COMMAND --help.\n"
    return (
        f'.TH {name.upper()} {section} "" "postern {version}"\n'
        f".SH NAME\n{name} \\- {escaped(summary)}\n"
        f".SH DESCRIPTION\n.nf\n{escaped(rest.strip())}\n.fi\n{more}"
        f".SH FILES\n.TP\n/etc/postern/posternd.json\nsettings of the server\n"
        f".TP\n/var/lib/postern\nthe database and its keys\n"
        f".SH SEE ALSO\n{others[name]}\n")


def command_page(program, name, version):
    """A page of one command of postern, made from its help: what it does, an example, its usage and flags."""
    text = output_of([program, *name.split(), "--help"])
    summary, _, rest = text.partition("\n")
    title = "postern-" + name.replace(" ", "-")
    return (
        f'.TH {title.upper()} 1 "" "postern {version}"\n'
        f".SH NAME\n{escaped(title)} \\- {escaped(summary.rstrip('.'))}\n"
        f".SH DESCRIPTION\n.nf\n{escaped(rest.strip())}\n.fi\n"
        ".SH SEE ALSO\npostern(1)\n")


def escaped(text):
    """Text that man(7) shows as it is.

    >>> escaped("a\\\\b-c\\n.d")
    'a\\\\\\\\b\\\\-c\\n\\\\&.d'
    """
    escaped_text = text.replace("\\", "\\\\").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in escaped_text.split("\n"))
