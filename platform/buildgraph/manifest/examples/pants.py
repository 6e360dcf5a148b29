"""The manifest of a Pants repository, from `pants peek :: > peek.json`.

Each target with an address of its own is one here. What Pants generates for each file of a target (`src/a.py:lib`) is one too, so that a change of
one file affects what imports it and no more.
"""

import json

import manifest

INPUTS = ["pants.toml", "pants.ci.toml", "BUILDROOT", "**/BUILD", "**/BUILD.pants", "**/*.lock", "3rdparty/**"]
TESTS = ("python_test", "shunit2_test", "junit_test", "scalatest_test", "scala_junit_test", "go_package")


def place(address):
    """The folder and the name of a target: "a/b:c", "a/b/f.py:c", "a/b/f.py", "//:c", "a:b#g" and "a/b"."""
    path, _, rest = address.lstrip("/").partition(":")
    return path, rest


def convert(inputs):
    targets = {t["address"]: t for t in json.loads(inputs[0])}
    names, taken = {}, set()
    for address in sorted(targets):
        path, rest = place(address)
        sources = targets[address].get("sources") or []
        if sources == [path]:  # Generated for one file.
            folder, _, file = path.rpartition("/")
            name = file + ("." + rest.replace("../", "^") if rest else "")
        else:
            folder, name = path, rest or path.rpartition("/")[2]
        folder, name = folder.split("#")[0], manifest.clean(name)
        while (folder, name) in taken:
            name += "_"
        taken.add((folder, name))
        names[address] = (folder, name)
    folders = {}
    for address, target in targets.items():
        folder, name = names[address]
        files = target.get("sources") or ([target["source"]] if target.get("source") and "/" in target["source"] else [])
        up = "../" * (folder.count("/") + 1) if folder else ""
        sources = []
        for file in files:
            inside = not folder or file.startswith(folder + "/")
            file = file[len(folder) + 1:] if folder and inside else up + file if not inside else file
            sources.append("".join("[" + c + "]" if c in "*?[" else c for c in file))
        deps = [d for d in target.get("dependencies") or [] if d in names and d != address]
        kind = target["target_type"]
        test = kind in TESTS
        folders.setdefault(folder, []).append({
            "name": name,
            "kind": "test" if test else kind,
            "sources": sorted(sources),
            "deps": sorted({manifest.label(*names[d]) for d in deps}),
            # A generator (python_sources) is verified by what it generates.
            "steps": [{"name": "test", "run": ["pants", "test", address]}] if test else
            [{"name": "check", "run": ["pants", "check", address]}] if kind.endswith("_source") else
            [{"name": "package", "run": ["pants", "package", address]}] if kind.endswith(("_binary", "_distribution")) else [],
        })
    return folders, {"inputs": INPUTS}


if __name__ == "__main__":
    manifest.main("pants.py", convert)
