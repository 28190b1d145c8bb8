#!/usr/bin/env python3
"""Lists where text is taken apart or compared as `String`s or `Character`s, and asks for a reason for each.

In Swift, two strings are equal when Unicode calls them canonically equivalent ("K" and U+212A), and a `Character` may be
several scalars ("<" behind U+0600 is not one of its own). So code that decides by them may decide differently from the
browser, the mail server, LMDB or C. To compare or hash a string that is not ASCII, Swift also sorts its combining marks,
which takes quadratic time: a stranger's path of 4 KB held a loop for 2 ms. So text from outside is compared as bytes
(`Text`, `.utf8`) or scalars, and each place that makes a `String` of bytes from outside is listed as well. Where neither
matters, the line stands in texts.txt with its reason, or has a comment `// Not bytes: …` above it.
"""
import re
import sys

import listed
from swift_source import code_of

TARGETS = ["Base", "JSON", "Messages", "Crypto", "TLS", "Journal", "Store", "Cluster", "Wire", "HTTP2", "Transport", "Outbound",
           "Tokens", "Signing", "Rules", "Federation", "Identity", "Service", "PosternVerifier", "PosternAuth"]
# These read no text but what the operator wrote.
LEFT_OUT = ["Reactor", "posternd"]

SITES = re.compile("|".join([
    r"\bCharacter\b", r"\.(?:lowercased|uppercased|hasPrefix|hasSuffix)\(",
    r"\.is(?:Newline|Letter|Number|Whitespace|Punctuation|HexDigit|Uppercase|Lowercase)\b",
    r"\.string\s*[!=]=", r"[!=]=\s*\w[\w.?]*\.string\b", r"\bin \w[\w.]*\.string\s*\{", r"\bswitch \w[\w.?]*\.string\b",
    r"\.string\.(?:count|first|last|contains|split|filter|prefix|drop|firstIndex)\b",
    r"\bSet<String>|\[String:|: Set<Character>", r"split\(separator: \"", r"(?:firstIndex|lastIndex)\(of: \"",
    r"\$0 [!=]= \"", r"rawValue: \w[\w.]*\.string\b", r"_nfc\b", r"\bregex\b|\bRegex\b",
    r"\bString\((?:decoding|validating|validatingUTF8|validatingCString):",
]))


def sites(text):
    """The lines of the sites, by number, without those that have a reason above.

    >>> sites("if a.string == b {}\\nif a == b {}\\n// Not bytes: a label.\\nc.hasPrefix(d)\\nfor e in f.string {}")
    {1: 'if a.string == b {}', 5: 'for e in f.string {}'}
    >>> sites("for e in f.string.unicodeScalars {}\\ng.split(separator: \\"&\\")\\ng.utf8.split(separator: h)")
    {2: 'g.split(separator: "&")'}
    """
    code, lines = code_of(text).splitlines(), text.splitlines()
    return {number: lines[number - 1].strip() for number, line in enumerate(code, 1)
            if SITES.search(line) and not (number > 1 and lines[number - 2].lstrip().startswith("// Not bytes: "))}


def main():
    faults = list(listed.faults("texts.txt", TARGETS, LEFT_OUT, sites, "text that is no bytes"))
    print(*faults, sep="\n", end="\n" if faults else "")
    if faults:
        print("Compare bytes or scalars, or say in a comment `// Not bytes: …` on the line above why it does not matter.")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
