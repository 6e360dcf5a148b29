"""The manifest of a Buck2 project, from

    buck2 uquery 'deps(//...)' --json -a '^buck.type$' -a '^buck.deps$' -a '^buck.inputs$' > graph.json

uquery sees all branches of a select. A target in another cell is what that cell's files say, so that these belong to INPUTS.
"""

import json

import manifest

INPUTS = [".buckconfig", ".buckroot", "**/.buckconfig", "**/BUCK", "**/BUCK.v2", "**/TARGETS", "**/*.bzl", "toolchains/**"]
CELL = "root"


def split(label):
    """The folder and the name of a target of the root cell, None of another one."""
    cell, _, rest = label.partition("//")
    folder, _, name = rest.partition(":")
    return (folder, name) if cell in ("", CELL) else None


def convert(inputs):
    targets = json.loads(inputs[0])
    folders = {}
    for name, attributes in targets.items():
        if split(name) is None:
            continue
        folder, own = split(name)
        sources = []
        for file in attributes.get("buck.inputs", []):
            cell, _, path = file.partition("//")
            if cell not in ("", CELL):
                continue
            path = path.replace(":", "/")
            inside = not folder or path.startswith(folder + "/")
            path = path[len(folder) + 1:] if folder and inside else path if inside else "../" * (folder.count("/") + 1) + path
            sources.append("".join("[" + c + "]" if c in "*?[" else c for c in path))
        rule = attributes["buck.type"].rpartition(":")[2]
        test = rule.endswith("_test")
        deps = {split(d) for d in attributes.get("buck.deps", []) if d in targets and split(d) and d != name}
        folders.setdefault(folder, []).append({
            "name": manifest.clean(own),
            "kind": "test" if test else rule,
            "sources": sorted(sources),
            "deps": sorted(manifest.label(f, manifest.clean(n)) for f, n in deps),
            "steps": [{"name": "test" if test else "build", "run": ["buck2", "test" if test else "build", name]}],
        })
    return folders, {"inputs": INPUTS}


if __name__ == "__main__":
    manifest.main("buck2.py", convert)
