"""A service in a container: it evaluates what it reads, a line each, and answers with what came of it."""
import ast
import sys


def evaluate(text, names):
    try:
        code = compile(text, "<asked>", "eval")
    except SyntaxError:
        exec(compile(text, "<asked>", "exec"), names)
        return None
    return eval(code, names)


def main():
    names = {}
    exec("import os, pickle, sys\nimport numpy as np\nimport arrayd as ad\nfrom arrayd import _core", names)
    for line in sys.stdin:
        try:
            answer = True, evaluate(ast.literal_eval(line), names)
        except Exception as error:
            answer = False, f"{type(error).__name__}: {error}"
        print(repr(answer), flush=True)


if __name__ == "__main__":
    main()
