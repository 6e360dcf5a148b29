package nodegraph

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// parseNPMLock reads a package-lock.json. Version 1 has no entry by folder, and is unknown.
func parseNPMLock(content []byte) *lock {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(content, &fields); err != nil {
		return &lock{problem: "is not valid JSON: " + err.Error(), line: lineOf(content, err)}
	}
	var packages map[string]json.RawMessage
	if fields["packages"] == nil || json.Unmarshal(fields["packages"], &packages) != nil {
		return newLock(unknownLock)
	}
	l := newLock(npmLock)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		// The root's name and version are those of its manifest; dependencies repeat packages for old versions of npm.
		if name != "packages" && name != "dependencies" && name != "name" && name != "version" {
			l.settings = append(l.settings, normalText(name, string(normalJSON(fields[name])))...)
		}
	}
	wanted := make(map[string][]string, len(packages))
	for key, raw := range packages {
		if len(key) > maxKeyBytes {
			return newLock(unknownLock)
		}
		var e struct {
			Link                                                                  bool
			Resolved                                                              string
			Dependencies, DevDependencies, OptionalDependencies, PeerDependencies map[string]json.RawMessage
		}
		if json.Unmarshal(raw, &e) != nil {
			return newLock(unknownLock)
		}
		entry := &lockEntry{content: sha256.Sum256(normalJSON(raw))}
		if e.Link {
			if folder, ok := join("", e.Resolved); ok {
				entry.folders = []string{folder}
				if packages[folder] != nil {
					entry.deps = []string{folder}
				}
			}
		}
		l.add(key, installedName(key), entry)
		for _, names := range []map[string]json.RawMessage{e.Dependencies, e.DevDependencies, e.OptionalDependencies, e.PeerDependencies} {
			wanted[key] = slices.AppendSeq(wanted[key], maps.Keys(names))
		}
	}
	for key, names := range wanted {
		for _, name := range names {
			found := l.upwards(key, name)
			if last := found[len(found)-1]; l.entries[last] != nil {
				l.entries[key].deps = append(l.entries[key].deps, last)
			} else {
				l.entries[key].unresolved = append(l.entries[key].unresolved, name)
			}
		}
	}
	return l.seal()
}

// installedName returns the name of the package that is installed in a folder; for one of the repository the folder.
func installedName(key string) string {
	const modules = "node_modules/"
	if i := strings.LastIndex(key, modules); i >= 0 {
		return key[i+len(modules):]
	}
	return key
}
