package targets

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is what a node of the graph stands for.
type Kind uint8

const (
	// KindTarget is a unit of the build system: something with steps that prove it.
	KindTarget Kind = iota + 1
	// KindFile is one path of the tree with its mode and content id.
	KindFile
	// KindListing is a folder's set of names, which a glob looks at.
	KindListing
	// KindDefinition is what a build file means for one target, a macro file, or
	// the global environment.
	KindDefinition
	// KindExternal is something outside the repository: a module and its version.
	KindExternal
)

// prefixes of labels, by kind. A target's label is its bare name, so a target
// whose name starts with one of these is refused.
var prefixes = [...]string{KindFile: "file:", KindListing: "dir:", KindDefinition: "def:", KindExternal: "ext:"}

// String returns the kind's name in English.
func (k Kind) String() string {
	switch k {
	case KindTarget:
		return "target"
	case KindFile:
		return "file"
	case KindListing:
		return "listing"
	case KindDefinition:
		return "definition"
	case KindExternal:
		return "external"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Label is the one name of a node in analyses and events: a target's own name,
// or "file:", "dir:", "def:", "ext:" and the name. Labels are valid UTF-8 on one
// line whatever bytes a path holds (Protobuf strings and terminals need that): a
// name that is not is quoted as in Go. Different names have different labels.
func Label(kind Kind, name string) string {
	if !plain(name) {
		name = strconv.Quote(name)
	}
	if int(kind) < len(prefixes) {
		return prefixes[kind] + name
	}
	return name
}

// plain reports whether a name can stand as it is. A name that begins with a quote
// is quoted itself, so that it is not taken for the quoted form of another.
func plain(name string) bool {
	if strings.HasPrefix(name, `"`) {
		return false
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= utf8.RuneSelf || c < ' ' || c == 0x7f {
			return plainRunes(name)
		}
	}
	return true
}

func plainRunes(name string) bool {
	if !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return false
		}
	}
	return true
}

// isTargetName refuses what could be mistaken for the label of another kind.
func isTargetName(name string) bool {
	for _, prefix := range prefixes {
		if prefix != "" && strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return name != ""
}
