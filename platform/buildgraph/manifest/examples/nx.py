"""The manifest of an Nx workspace, from `nx graph --file=graph.json`.

Each project is a target with its own folder as sources. It is verified by those of `build`, `test` and `lint` that it has.
"""

import json

import manifest

STEPS = ("build", "test", "lint")
INPUTS = ["nx.json", "package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "tsconfig.base.json", ".npmrc"]


def convert(inputs):
    graph = json.loads(inputs[0])["graph"]
    nodes = graph["nodes"]
    roots = {name: node["data"]["root"].strip("/") for name, node in nodes.items()}
    roots = {name: "" if root == "." else root for name, root in roots.items()}
    folders = {}
    for name, node in nodes.items():
        root = roots[name]
        # A project inside another one's folder is a target of its own.
        inner = [r for r in roots.values() if r != root and (not root or r.startswith(root + "/"))]
        relative = sorted(r[len(root) + 1 if root else 0:] + "/**" for r in inner)
        has = node["data"].get("targets", {})
        # Projects that npm provides ("npm:react") are pinned by the lock file.
        deps = {d["target"] for d in graph["dependencies"].get(name, []) if d["target"] in nodes and d["target"] != name}
        folders.setdefault(root, []).append({
            "name": manifest.clean(name),
            "kind": {"app": "application", "lib": "library", "e2e": "test"}.get(node.get("type"), "project"),
            "sources": ["**"],
            "exclude": relative + ["node_modules/**", "dist/**"],
            "deps": sorted(manifest.label(roots[d], manifest.clean(d)) for d in deps),
            "steps": [{"name": s, "run": ["npx", "nx", "run", "%s:%s" % (name, s), "--skip-nx-cache"]} for s in STEPS if s in has],
        })
    return folders, {"inputs": INPUTS}


if __name__ == "__main__":
    manifest.main("nx.py", convert)
