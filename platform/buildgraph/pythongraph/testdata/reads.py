"""Runs pytest on a folder and prints the files of the working folder that were read or imported.

Arguments: "run" or "collect", the folder, then folders to find modules in.
"""

import os
import sys

root = os.path.realpath(os.getcwd()) + os.sep
read = set()


def note(name):
    if isinstance(name, (str, bytes)):
        path = os.path.realpath(os.path.join(root, os.fsdecode(name)))
        if path.startswith(root):
            read.add(path[len(root) :])


def hook(event, arguments):
    if event == "open" and (arguments[1] is None or "r" in arguments[1]):
        note(arguments[0])


how, folder, *roots = sys.argv[1:]
sys.path[0] = root.rstrip(os.sep)
sys.path[1:1] = [os.path.join(root, r) for r in roots]
sys.dont_write_bytecode = True

import pytest

sys.addaudithook(hook)
flags = ["-q", "-p", "no:cacheprovider", f"--ignore-glob={folder}/*/*", folder]
if how == "collect":
    flags.append("--collect-only")
code = pytest.main(flags)
for module in list(sys.modules.values()):
    note(getattr(module, "__file__", None))
print("\nCODE", int(code))
for path in sorted(read):
    if os.path.isfile(root + path) and "__pycache__" not in path:
        print("READ", path)
