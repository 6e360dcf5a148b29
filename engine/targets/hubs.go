package targets

import "strings"

// Hubs are targets that are verified but do not serialize: two changes that meet in nothing else count as
// independent. Which these are is a queue's choice. The nil value has none.
//
// Safety does not rest on the conflict test (M21): the hub of what lands is proven on the very tree that
// lands. What is given up is an early warning: see services/analyzer, "Hub targets".
type Hubs struct{ names *NamePatterns }

// NewHubs reads the names of a queue's hubs, nil if there are none.
func NewHubs(names []string) *Hubs {
	if len(names) == 0 {
		return nil
	}
	return &Hubs{NewNamePatterns(names)}
}

// Has reports whether a target is a hub. The whole repository never is: two changes with unknown targets meet in
// nothing else (M4).
func (h *Hubs) Has(target string) bool { return h != nil && h.names.Has(target) }

// NamePatterns are names of targets, in each of which every * stands for any text, also an empty one or one with slashes;
// everything else means itself, brackets too ("shop/app [test]"). The nil value has none.
type NamePatterns struct {
	names    map[string]bool
	patterns [][]string // what stands between the stars
}

// NewNamePatterns reads the names of targets.
func NewNamePatterns(names []string) *NamePatterns {
	n := &NamePatterns{names: map[string]bool{}}
	for _, name := range names {
		if parts := strings.Split(name, "*"); len(parts) > 1 {
			n.patterns = append(n.patterns, parts)
		} else {
			n.names[name] = true
		}
	}
	return n
}

// Has reports whether a target has one of the names. The whole repository has none of them: it is every target.
func (n *NamePatterns) Has(target string) bool {
	if n == nil || target == Repository {
		return false
	}
	if n.names[target] {
		return true
	}
	for _, parts := range n.patterns {
		if matches(parts, target) {
			return true
		}
	}
	return false
}

// matches reports whether a text consists of the parts with anything between them. Each part is taken at the first
// place where it is found, which leaves the most to the parts after it.
func matches(parts []string, text string) bool {
	last := len(parts) - 1
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, parts[last])
}

// split takes the hubs out of sorted names.
func (h *Hubs) split(names []string) (others, hubs []string) {
	if h == nil {
		return names, nil
	}
	for _, name := range names {
		if h.Has(name) {
			hubs = append(hubs, name)
		} else {
			others = append(others, name)
		}
	}
	return others, hubs
}
