package nodegraph

import (
	"crypto/sha256"
	"strings"
)

// yarnKeys returns the keys under which a dependency can stand in a yarn.lock.
func yarnKeys(name, wanted string) []string {
	if wanted == "" {
		return nil
	}
	keys := []string{name + "@" + wanted, name + "@npm:" + wanted}
	if rest, ok := strings.CutPrefix(wanted, "npm:"); ok {
		keys = append(keys, name+"@"+rest)
	}
	return keys
}

// yarnName returns the name in a key such as @scope/name@^1.0.0.
func yarnName(key string) string {
	if i := strings.IndexByte(key[min(1, len(key)):], '@'); i >= 0 {
		return key[:i+1]
	}
	return key
}

// pendingEdge is a dependency of entries that are yet to be read.
type pendingEdge struct {
	entry *lockEntry
	requirement
}

// connect turns what entries want into edges.
func (l *lock) connect(pending []pendingEdge) *lock {
	for _, p := range pending {
		found := false
		for _, key := range yarnKeys(p.name, p.wanted) {
			if l.entries[key] != nil {
				p.entry.deps = append(p.entry.deps, key)
				found = true
			}
		}
		if !found { // Resolutions and versions of members are not under the range that is wanted.
			p.entry.deps = append(p.entry.deps, l.named[p.name]...)
			p.entry.unresolved = append(p.entry.unresolved, p.name)
		} else {
			p.entry.deps = append(p.entry.deps, l.patched(p.name)...)
		}
	}
	return l.seal()
}

// parseBerryLock reads a yarn.lock of yarn 2 or later.
func parseBerryLock(content []byte) *lock {
	file, _, err := parseYAML(content)
	if err != nil {
		return newLock(unknownLock)
	}
	l := newLock(yarnLock)
	var pending []pendingEdge
	file.each(func(keys string, value *yamlValue) {
		if keys == "__metadata" {
			l.settings = value.appendTo(l.settings)
			return
		}
		e := &lockEntry{content: sha256.Sum256(value.appendTo(nil))}
		for key := range strings.SplitSeq(keys, ", ") {
			name := yarnName(key)
			if folder, ok := strings.CutPrefix(key, name+"@workspace:"); ok && !strings.ContainsAny(folder, "*^~") {
				if inside, ok := join("", folder); ok && len(e.folders) == 0 {
					e.folders = append(e.folders, inside)
				}
			}
			if _, patch, ok := strings.Cut(key, "#"); ok && strings.HasPrefix(key, name+"@patch:") {
				patch, _, _ = strings.Cut(patch, "::")
				l.patches = append(l.patches, strings.TrimPrefix(patch, "~/"))
			}
			l.add(key, name, e)
		}
		for _, field := range []string{"dependencies", "optionalDependencies"} {
			value.get(field).each(func(name string, wanted *yamlValue) {
				pending = append(pending, pendingEdge{e, requirement{name, wanted.text}})
			})
		}
	})
	return l.connect(pending)
}

// parseClassicLock reads a yarn.lock of yarn 1, which is no YAML.
func parseClassicLock(content []byte) *lock {
	l := newLock(yarnLock)
	var pending []pendingEdge
	var current *lockEntry
	var text []byte
	inside := false // of dependencies
	finish := func() {
		if current != nil {
			current.content = sha256.Sum256(text)
		}
	}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimRight(line, " \r\n")
		bare := strings.TrimLeft(line, " ")
		if bare == "" || bare[0] == '#' {
			continue
		}
		switch indent := len(line) - len(bare); {
		case indent == 0:
			keys, ok := strings.CutSuffix(bare, ":")
			if !ok {
				return newLock(unknownLock)
			}
			finish()
			current, text, inside = &lockEntry{}, nil, false
			for key := range strings.SplitSeq(keys, ", ") {
				key = strings.Trim(key, `"`)
				l.add(key, yarnName(key), current)
			}
			continue
		case current == nil:
			return newLock(unknownLock)
		case indent == 2:
			inside = bare == "dependencies:" || bare == "optionalDependencies:"
		case inside:
			name, wanted, ok := cutClassic(bare)
			if !ok {
				return newLock(unknownLock)
			}
			pending = append(pending, pendingEdge{current, requirement{name, wanted}})
		}
		text = append(append(text, line...), '\n')
	}
	finish()
	return l.connect(pending)
}

// cutClassic reads a line such as "@scope/name" "^1.0.0".
func cutClassic(line string) (name, wanted string, ok bool) {
	if rest, quoted := strings.CutPrefix(line, `"`); quoted {
		name, wanted, ok = strings.Cut(rest, `" `)
	} else {
		name, wanted, ok = strings.Cut(line, " ")
	}
	return name, strings.Trim(wanted, `"`), ok && name != ""
}
