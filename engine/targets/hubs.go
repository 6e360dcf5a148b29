package targets

import "strings"

// Hubs are targets that are verified but do not serialize: two changes that meet in nothing else count as
// independent. Which these are is a queue's choice. The nil value has none.
//
// Safety does not rest on the conflict test (M21): the hub of what lands is proven on the very tree that
// lands. What is given up is an early warning: see services/analyzer, "Hub targets".
type Hubs struct {
	names    map[string]bool
	patterns [][]string // what stands between the stars
}

// NewHubs reads the names of a queue's hubs, nil if there are none. In a name each * stands for any text, also an
// empty one or one with slashes; everything else means itself, brackets too ("shop/app [test]").
func NewHubs(names []string) *Hubs {
	if len(names) == 0 {
		return nil
	}
	h := &Hubs{names: map[string]bool{}}
	for _, name := range names {
		if parts := strings.Split(name, "*"); len(parts) > 1 {
			h.patterns = append(h.patterns, parts)
		} else {
			h.names[name] = true
		}
	}
	return h
}

// Has reports whether a target is a hub. The whole repository never is: two changes with unknown targets meet in
// nothing else (M4).
func (h *Hubs) Has(target string) bool {
	if h == nil || target == Repository {
		return false
	}
	if h.names[target] {
		return true
	}
	for _, parts := range h.patterns {
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
