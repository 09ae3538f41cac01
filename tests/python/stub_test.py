# SPDX-License-Identifier: Apache-2.0
"""_native.pyi, by which type checkers know the module in C++,
has the names and parameters that the module has."""
import ast
import inspect
import pathlib
import unittest

import prepost
from prepost import _native


def parameters_of_stub(function):
    arguments = function.args
    names = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
    return len([name for name in names if name.arg != "self"])


def parameters_of_module(function):
    """Counted in the signature that pybind11 puts first into the docstring;
    their types may have commas in brackets."""
    signature = function.__doc__.splitlines()[0].partition("(")[2].rpartition(") -> ")[0]
    depth, parts = 0, [""]
    for character in signature:
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    names = [part.strip().partition(":")[0] for part in parts]
    return len([name for name in names if name not in ("", "*", "/", "self")])


def names_of_stub(body, classes):
    """What each name is: a "value", a class's names, or a function's number of parameters. Private
    classes are of the stub alone."""
    names = {}
    for it in body:
        if isinstance(it, ast.ClassDef):
            bases = [names_of_stub(classes[base.id].body, classes) for base in it.bases]
            names[it.name] = {
                name: kind
                for base in [*bases, names_of_stub(it.body, classes)]
                for name, kind in base.items()
            }
        elif isinstance(it, ast.AnnAssign):
            names[it.target.id] = "value"
        elif isinstance(it, ast.FunctionDef):
            is_property = any(
                isinstance(mark, ast.Name) and mark.id == "property" for mark in it.decorator_list
            )
            names[it.name] = "value" if is_property else parameters_of_stub(it)
    return {name: kind for name, kind in names.items() if not name.startswith("_")}


def names_of_module(members):
    names = {}
    for name, it in members.items():
        if inspect.isclass(it):
            names[name] = names_of_module(vars(it))
        elif callable(it):
            names[name] = parameters_of_module(it)
        else:
            names[name] = "value"
    return {name: kind for name, kind in names.items() if not name.startswith("_")}


class Stub(unittest.TestCase):
    def test_stub_is_of_the_module(self):
        self.maxDiff = None
        body = ast.parse(pathlib.Path(prepost.__file__).with_name("_native.pyi").read_text()).body
        classes = {it.name: it for it in body if isinstance(it, ast.ClassDef)}
        self.assertEqual(names_of_stub(body, classes), names_of_module(vars(_native)))


if __name__ == "__main__":
    unittest.main()
