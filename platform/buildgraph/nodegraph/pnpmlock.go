package nodegraph

import (
	"crypto/sha256"
	"path"
	"slices"
	"strings"
)

// parsePnpmLock reads a pnpm-lock.yaml of version 6 or later. Earlier ones write versions otherwise, and are unknown.
func parsePnpmLock(content []byte) *lock {
	file, _, err := parseYAML(content)
	if err != nil {
		return newLock(unknownLock)
	}
	switch version, _, _ := strings.Cut(file.get("lockfileVersion").text, "."); version {
	case "6", "7", "9":
	default:
		return newLock(unknownLock)
	}
	l := newLock(pnpmLock)
	file.get("patchedDependencies").each(func(_ string, patch *yamlValue) { l.patches = append(l.patches, patch.get("path").text) })
	l.importers = map[string]map[string]string{}
	file.each(func(key string, value *yamlValue) {
		switch key {
		case "importers":
			value.each(l.addImporter)
		case "packages", "snapshots", "dependencies", "devDependencies", "optionalDependencies":
		default:
			l.settings = value.appendTo(append(l.settings, normalText(key)...))
		}
	})
	if file.get("importers").keys == nil {
		l.addImporter(".", file) // Version 6 of a single package.
	}
	packages, snapshots := file.get("packages"), file.get("snapshots")
	about := make(map[string]*yamlValue, len(packages.keys)) // by key without what peers it was resolved with
	packages.each(func(key string, value *yamlValue) { about[key] = value })
	listed := packages
	if len(snapshots.keys) > 0 {
		listed = snapshots
	}
	listed.each(func(key string, value *yamlValue) {
		text := value.appendTo(normalText(key))
		bare, _, _ := strings.Cut(key, "(")
		if common := about[bare]; common != nil && common != value {
			text = common.appendTo(text)
		}
		l.add(key, pnpmName(key), &lockEntry{content: sha256.Sum256(text)})
	})
	listed.each(func(key string, value *yamlValue) {
		for _, field := range []string{"dependencies", "optionalDependencies"} {
			value.get(field).each(func(name string, version *yamlValue) { l.addPnpmEdge(l.entries[key], name, version.text) })
		}
	})
	return l.seal()
}

// addImporter notes the dependencies of a member.
func (l *lock) addImporter(dir string, value *yamlValue) {
	versions := map[string]string{}
	for _, field := range dependencyFields {
		value.get(field).each(func(name string, v *yamlValue) {
			version := v.text
			if v.keys != nil {
				version = v.get("version").text
			}
			versions[name] = version
		})
	}
	l.importers[path.Clean(dir)] = versions
}

func (l *lock) addPnpmEdge(e *lockEntry, name, version string) {
	if folder, ok := strings.CutPrefix(version, "link:"); ok {
		if inside, ok := join("", folder); ok {
			e.folders = append(e.folders, inside)
		}
		return
	}
	if key := l.pnpmKey(name, version); key != "" {
		e.deps = append(e.deps, key)
	} else {
		e.unresolved = append(e.unresolved, name)
	}
}

// pnpmKey returns the key of the entry that a version stands for; empty if there is none.
func (l *lock) pnpmKey(name, version string) string {
	// An alias is written as the key itself, an archive too, with or without the name.
	candidates := []string{"/" + name + "@" + version, name + "@" + version, version, "/" + version}
	i := slices.IndexFunc(candidates, func(key string) bool { return l.entries[key] != nil })
	if i < 0 {
		return ""
	}
	return candidates[i]
}

// pnpmName returns the name in a key such as /@scope/name@1.0.0(peer@2.0.0).
func pnpmName(key string) string {
	key, _, _ = strings.Cut(strings.TrimPrefix(key, "/"), "(")
	if i := strings.LastIndexByte(key[min(1, len(key)):], '@'); i >= 0 {
		return key[:i+1]
	}
	return key
}
