package buildgraph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph/glob"
	"landfall.build/platform/configuration"
)

// DocumentPatterns are what a new configuration has under analysis.uncovered.ignore: documents, and files that tell other
// tools how to treat the repository. A file of these that a target covers is built for all the same.
//
// .gitattributes and .gitmodules are not among them: they decide what a checkout holds.
var DocumentPatterns = []string{
	"**/*.md", "**/*.markdown", "**/*.rst", "**/*.adoc", "doc/**", "docs/**",
	"**/README*", "**/CHANGELOG*", "**/LICENSE*", "**/NOTICE*", "**/AUTHORS*", "**/CONTRIBUTORS*", "**/MAINTAINERS*", "**/CODEOWNERS", "**/OWNERS",
	"**/.gitignore", "**/.editorconfig", "**/.mailmap", ".github/**", ".gitlab/**", ".gitlab-ci.yml", ".circleci/**", ".travis.yml",
}

// Uncovered is what a change does to files that no target covers, before or after it. No step verifies these.
type Uncovered struct {
	// Policy is what the queue does about Files: UncoveredWholeRepository or UncoveredWarn.
	Policy configuration.UncoveredPolicy
	// Files are those that the queue does not ignore, Ignored the others; both are sorted.
	Files, Ignored []string
}

// uncoveredRule is a queue's setting analysis.uncovered.
type uncoveredRule struct {
	policy configuration.UncoveredPolicy
	ignore []glob.Pattern
}

func newUncoveredRule(settings configuration.Uncovered) uncoveredRule {
	// Where a pattern is none, which a configuration file cannot have, nothing is ignored.
	ignore, _ := glob.ParseAll(settings.Ignore)
	return uncoveredRule{policy: cmp.Or(settings.Policy, configuration.UncoveredWholeRepository), ignore: ignore}
}

// PolicyOf returns what the queue does about a change to a file that no target covers, in a tree that has targets.
func (l *Loader) PolicyOf(path string) configuration.UncoveredPolicy { return l.uncovered.of(path) }

// Ignores reports whether the queue names a file as one for which nothing has to be built if no target covers it.
func (l *Loader) Ignores(path string) bool { return l.uncovered.ignores(path) }

func (r uncoveredRule) ignores(path string) bool {
	return slices.ContainsFunc(r.ignore, func(p glob.Pattern) bool { return p.MatchesFile(path) })
}

func (r uncoveredRule) of(path string) configuration.UncoveredPolicy {
	if r.ignores(path) {
		return configuration.UncoveredIgnore
	}
	return r.policy
}

// divide returns what the queue does about files that no target covers.
func (r uncoveredRule) divide(paths []string) Uncovered {
	u := Uncovered{Policy: r.policy}
	for _, path := range paths {
		if r.of(path) == configuration.UncoveredIgnore {
			u.Ignored = append(u.Ignored, path)
		} else {
			u.Files = append(u.Files, path)
		}
	}
	return u
}

// affectsAll reports whether the files have the change conflict with everything.
func (u Uncovered) affectsAll() bool {
	return len(u.Files) > 0 && u.Policy == configuration.UncoveredWholeRepository
}

// reason returns why, for people.
func (u Uncovered) reason() string {
	return fmt.Sprintf("no target covers %s, so the whole repository is verified (analysis.uncovered)", nameSome(listed(u.Files), len(u.Files)))
}

// maxNamed is how many paths are named in a sentence.
const maxNamed = 3

// nameSome names the first of some paths in a sentence: "a", "a and b", "a, b, c and 4 more".
func nameSome(first []string, total int) string {
	switch {
	case total > maxNamed:
		return strings.Join(first[:maxNamed], ", ") + fmt.Sprintf(" and %d more", total-maxNamed)
	case total > 1:
		return strings.Join(first[:total-1], ", ") + " and " + first[total-1]
	}
	return strings.Join(first, "")
}

// maxUncoveredListed is how many paths of each list an event carries.
const maxUncoveredListed = 100

// event returns what analyses carry, nil if there is nothing to say.
func (u Uncovered) event() *eventsv1.Uncovered {
	if len(u.Files)+len(u.Ignored) == 0 {
		return nil
	}
	e := &eventsv1.Uncovered{
		Files: listed(u.Files), FilesTotal: uint32(len(u.Files)), Ignored: listed(u.Ignored), IgnoredTotal: uint32(len(u.Ignored)),
	}
	if len(u.Files) > 0 {
		e.Policy = string(u.Policy)
	}
	return e
}

// listed returns the first paths as the valid UTF-8 that Protobuf insists on and git does not.
func listed(paths []string) []string {
	var list []string
	for _, path := range paths[:min(len(paths), maxUncoveredListed)] {
		list = append(list, strings.ToValidUTF8(path, "\uFFFD"))
	}
	return list
}

// setUncovered applies the queue's rule to the files that the change leaves uncovered.
func (r *Result) setUncovered(union targets.Analysis) {
	if union.All {
		return
	}
	rule := r.Base.loader.uncovered
	if r.last().absent != nil {
		rule.policy = configuration.UncoveredWholeRepository // the others are about what targets leave
	}
	r.Uncovered = rule.divide(union.Uncovered)
	if r.Uncovered.affectsAll() {
		r.All, r.Reasons = true, append(r.Reasons, r.Uncovered.reason())
	}
}
