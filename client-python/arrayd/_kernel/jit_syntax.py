"""The syntax trees of functions, and where in their files they stand."""
import ast
import functools
import inspect
import re


def tree(function):
    """The FunctionDef or Lambda that made a function, and its file's name."""
    code = getattr(function, "__code__", None)
    if code is None:
        raise TypeError(f"{function!r} is not a function written in Python")
    try:
        lines, _ = inspect.findsource(function)
    except (OSError, TypeError):
        raise ValueError(f"the source of {function.__qualname__} cannot be found; a function that is translated must "
                         "stand in a file or a notebook") from None
    kind = ast.Lambda if function.__name__ == "<lambda>" else ast.FunctionDef
    found = [node for node in ast.walk(_parsed("".join(lines)))
             if isinstance(node, kind) and _first_line(node) == code.co_firstlineno]
    if len(found) > 1:
        found = [node for node in found if _same(node, code)] or found
    if not found:
        raise ValueError(f"the source of {function.__qualname__} is not what was run")
    if len(found) > 1 and any(ast.dump(node) != ast.dump(found[0]) for node in found):
        raise ValueError(f"line {code.co_firstlineno} has several functions; put {function.__qualname__} on its own")
    return found[0], re.sub(r"[^\w.+-]", "_", code.co_filename.replace("\\", "/").rpartition("/")[2]) or "source"


@functools.lru_cache(16)
def _parsed(text):
    return ast.parse(text)


def _first_line(node):
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])


def _same(node, code):
    """Whether a function's tree is what its code was made of, as far as names and places go."""
    if not isinstance(node, ast.Lambda):
        return node.name == code.co_name
    starts = [place[0::2] for place in code.co_positions() if None not in place and place[0::2] < place[1::2]]
    body = node.body
    return not starts or (body.lineno, body.col_offset) <= min(starts) < (body.end_lineno, body.end_col_offset)


def makes_functions(function):
    """Whether a function defines others: it is one of the program, which gives kernels the functions that they call."""
    node = tree(function)[0]
    return any(isinstance(each, (ast.FunctionDef, ast.Lambda)) for each in ast.walk(node) if each is not node)


def assigned(node):
    """The names that a function assigns, parameters included."""
    names = {argument.arg for argument in node.args.args}
    for each in ast.walk(ast.Module(node.body if isinstance(node.body, list) else [], [])):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            names.add(each.id)
    return names


def outer(function):
    """Return what a name outside of a function's own stands for: a function of the name, which raises NameError."""
    closed = inspect.getclosurevars(function)
    import builtins

    def look(name):
        for names in (closed.nonlocals, function.__globals__, vars(builtins)):
            if name in names:
                return names[name]
        raise NameError(f"Unbound name: {name}")

    return look
