"""Headers of this host that a source includes: the server cannot read them, so their text goes with the source."""
import os
import re

_SOURCE = "source"  # in messages; a compiler would show lines of a file that there is, and the wrong ones
# Comments and strings, which may hide an include, are found with it, so that the first to begin wins.
_TOKENS = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?P<sign>[<"])(?P<name>[^>"\n]+)[>"][^\n]*$|//[^\n]*|/\*.*?\*/'
                     r'|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"', re.M | re.S)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b.*$", re.M)
_GUARD = re.compile(r"(\s|//[^\n]*|/\*.*?\*/)*#[ \t]*ifndef[ \t]+(?P<name>\w+)\s+#[ \t]*define[ \t]+(?P=name)\b", re.S)
_OF_SERVER = re.compile("(arrayd|cooperative_groups|cub|cuda|cupy|nv|thrust)/")  # headers that come with the server's compiler
_MOST = 1 << 20  # characters of a source, by the server's limit
_DEEPEST = 100  # headers within each other


def folders(options):
    """The folders of headers that options of the compiler name: -I and --include-path, at once or as the next word. A
    toolkit's is left out, as the server has its own."""
    found, words = [], iter(options)
    for word in words:
        if word in ("-I", "--include-path"):
            found.append(next(words, ""))
        elif word.startswith(("-I", "--include-path=")):
            found.append(word.removeprefix("-I").removeprefix("--include-path="))
    return [folder for folder in found if folder and not os.path.exists(os.path.join(folder, "cuda_runtime_api.h"))]


def inline(source, places):
    """source with the text of headers in the place of the lines that include them.

    Parameters: source: str. places: folders of this host that have headers. Headers that are not there are left to
    the server, and so are CUDA's and CuPy's.
    Returns: str, whose #line lines keep the names and lines of files for messages.
    Raises: OSError, UnicodeDecodeError for a header that cannot be read; ValueError where all of it is too long, or headers
    include each other without end.
    """
    whole = _Inlining(places).expand(source, _SOURCE) if places else source
    return source if whole == source else f'#line 1 "{_SOURCE}"\n{whole}'


class _Inlining:
    def __init__(self, places):
        self.places, self.within, self.size = places, [], 0  # within: paths of the headers that the text is in

    def expand(self, text, name):
        """A text with its includes. name: what messages call it."""
        def replace(token):
            path = token["name"] and self.find(token["name"], token["sign"] == '"')
            if not path:
                return token[0]
            line = text.count("\n", 0, token.end()) + 2  # the number of the next line
            return f'{self.read(path)}\n#line {line} "{_quote(name)}"'

        self.size += len(text)
        if self.size > _MOST or len(self.within) > _DEEPEST:
            raise ValueError(f"a kernel's source and the headers that it includes of {self.places} are longer than "
                             f"{_MOST} characters, or more than {_DEEPEST} within each other: is one without a guard?")
        return _TOKENS.sub(replace, text)

    def read(self, path):
        """A header as it is written in the place of an include, without a line's end."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        once = _ONCE.search(text)
        if path in self.within and (once or _GUARD.match(text)):
            return ""
        self.within.append(path)
        text = f'#line 1 "{_quote(path)}"\n{self.expand(_ONCE.sub("", text), path)}'
        self.within.pop()
        if once:
            guard = f"AD_ONCE_{path.encode().hex()}"
            text = f"#ifndef {guard}\n#define {guard}\n{text}\n#endif"
        return text

    def find(self, name, quoted):
        """The real path of a header of this host, or None for one that the server is to find."""
        if _OF_SERVER.match(name):
            return None
        beside = [os.path.dirname(self.within[-1])] if quoted and self.within else []
        for folder in beside + self.places:
            candidate = os.path.join(folder, name)
            if os.path.isfile(candidate):
                return os.path.realpath(candidate)
        return None


def _quote(name):
    return name.replace("\\", "\\\\").replace('"', '\\"')
