package nodegraph

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/glob"
)

// memberPatterns are the patterns by which a workspace names the folders of its members.
type memberPatterns []memberPattern

// memberPattern is one text of the list. The first package managers take negated ones in order, the last ones before
// all others; a folder that a negated pattern takes away and a later one adds again is taken for a member here.
type memberPattern struct {
	negated bool
	// hidden: a segment begins with a dot, so that the pattern may match such names. Others do not.
	hidden       bool
	alternatives []glob.Pattern
}

// maxAlternatives bounds what braces of one pattern may stand for, maxPatternBytes how long it is.
const (
	maxAlternatives = 256
	maxPatternBytes = 4096
)

// parseMemberPatterns parses the patterns of a workspace. The error is for those that are legal and not understood.
func parseMemberPatterns(texts []string) (memberPatterns, error) {
	var patterns memberPatterns
	for _, text := range texts {
		one := memberPattern{}
		rest := text
		for strings.HasPrefix(rest, "!") {
			one.negated, rest = !one.negated, rest[1:]
		}
		alternatives, ok := expandBraces(rest)
		if !ok || strings.Contains(rest, `\`) || hasExtendedGlob(rest) {
			return nil, fmt.Errorf("the workspace pattern %q is not understood", text)
		}
		for _, alternative := range alternatives {
			clean := path.Clean(strings.TrimSuffix(strings.ReplaceAll(alternative, "[!", "[^"), "/package.json"))
			if strings.HasPrefix(clean, "/") || clean == ".." || strings.HasPrefix(clean, "../") {
				return nil, fmt.Errorf("the workspace pattern %q leads out of the workspace", text)
			}
			if clean == "." {
				continue // The root is a member anyway.
			}
			pattern, err := glob.Parse(clean)
			if err != nil {
				return nil, fmt.Errorf("the workspace pattern %q is not understood", text)
			}
			one.hidden = one.hidden || strings.HasPrefix(clean, ".") || strings.Contains(clean, "/.")
			one.alternatives = append(one.alternatives, pattern)
		}
		patterns = append(patterns, one)
	}
	return patterns, nil
}

// take reports whether a folder, given relative to the workspace's, is a member.
func (m memberPatterns) take(dir string) bool {
	hidden := strings.HasPrefix(dir, ".") || strings.Contains(dir, "/.")
	taken := false
	for _, p := range m {
		if taken != p.negated || hidden && !p.hidden && !p.negated {
			continue
		}
		if slices.ContainsFunc(p.alternatives, func(g glob.Pattern) bool { return g.MatchesFolder(dir) }) {
			taken = !p.negated
		}
	}
	return taken
}

func hasExtendedGlob(text string) bool {
	for i := 1; i < len(text); i++ {
		if text[i] == '(' && strings.IndexByte("?*+@!", text[i-1]) >= 0 {
			return true
		}
	}
	return false
}

// expandBraces returns what a text with {a,b} stands for.
func expandBraces(text string) (all []string, ok bool) {
	if len(text) > maxPatternBytes {
		return nil, false
	}
	pending := []string{text}
	for len(pending) > 0 {
		next := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		end := strings.IndexByte(next, '}')
		if end < 0 {
			if strings.Contains(next, "{") {
				return nil, false
			}
			all = append(all, next)
			continue
		}
		begin := strings.LastIndexByte(next[:end], '{')
		inside := next[begin+1 : end]
		if begin < 0 || !strings.Contains(inside, ",") {
			return nil, false
		}
		if len(pending)+len(all)+strings.Count(inside, ",")+1 > maxAlternatives {
			return nil, false
		}
		for option := range strings.SplitSeq(inside, ",") {
			pending = append(pending, next[:begin]+option+next[end+1:])
		}
	}
	slices.Sort(all)
	return slices.Compact(all), true
}
