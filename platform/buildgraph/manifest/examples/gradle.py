"""The manifest of a Gradle build of several projects, from what Gradle prints of their dependencies:

    ./gradlew -q :app:dependencies :list:dependencies … > dependencies.txt

Each project is a target, made of its folder (":libs:core" is libs/core; name others in FOLDERS) and verified by its `check`.
"""

import re

import manifest

INPUTS = [
    "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties", "gradle/**", "gradlew", "gradle.lockfile",
    "buildSrc/**", "build-logic/**",
]
FOLDERS = {}  # By a project's path, where projectDir is set: {":core": "libraries/core"}.

HEADING = re.compile(r"^(?:Root project|Project) ?(?:'([^']*)'|(\S+))?")
DEPENDENCY = re.compile(r"^[+\\]--- project '?(:[^' ]*)'?")  # One without a colon is declared only (n); another line resolves it.


def convert(inputs):
    projects, current, ruled = {}, None, False
    for line in "\n".join(inputs).splitlines():
        heading = HEADING.match(line)
        if ruled and heading:
            # A root project is headed by its name, which is no path.
            current = ":" if line.startswith("Root") else heading.group(1) or heading.group(2)
            projects.setdefault(current, set())
        dependency = DEPENDENCY.match(line)  # Indented ones are of the dependency.
        if dependency and current is not None:
            projects[current].add(dependency.group(1))
        ruled = set(line) == {"-"}
    known = set(projects).union(*projects.values()) if projects else set()
    missing = sorted(known - set(projects))
    if missing:
        raise SystemExit("Gradle was not asked for the dependencies of %s: add %s" % (", ".join(missing), " ".join(m + ":dependencies" for m in missing)))

    def folder(path):
        return FOLDERS.get(path, path.strip(":").replace(":", "/"))

    def name(path):
        return manifest.clean(path.rpartition(":")[2] or "root")

    folders = {}
    for path, deps in projects.items():
        root = folder(path)
        inner = sorted(folder(p) for p in projects if p != path and (not root or folder(p).startswith(root + "/")))
        folders.setdefault(root, []).append({
            "name": name(path),
            "kind": "project",
            "sources": ["**"],
            "exclude": [f[len(root) + 1 if root else 0:] + "/**" for f in inner] + ["build/**", ".gradle/**"],
            "deps": sorted(manifest.label(folder(d), name(d)) for d in deps if d != path),
            "steps": [{"name": "check", "run": ["./gradlew", "--console=plain", (path if path != ":" else "") + ":check"]}],
        })
    return folders, {"inputs": INPUTS}


if __name__ == "__main__":
    manifest.main("gradle.py", convert)
