package manifest

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isName reports whether a target, kind or step can be called so.
func isName(name string) bool { return len(name) <= maxNameBytes && namePattern.MatchString(name) }

// joinLabel returns the label of a target as shown everywhere: //folder:name, and
// //folder alone when the target is named like its folder.
func joinLabel(folder, name string) string {
	if folder != "" && path.Base(folder) == name {
		return "//" + folder
	}
	return "//" + folder + ":" + name
}

// parseLabel reads a dependency as written in a manifest of that folder.
func parseLabel(folder, text string) (string, error) {
	if name, ok := strings.CutPrefix(text, ":"); ok {
		if !isName(name) {
			return "", errors.New("names no target; write :name for one of this folder")
		}
		return joinLabel(folder, name), nil
	}
	rest, ok := strings.CutPrefix(text, "//")
	if !ok {
		return "", errors.New("is not a label; write :name, //folder or //folder:name")
	}
	if len(rest) > maxPatternBytes {
		return "", fmt.Errorf("is longer than %d bytes; correct it", maxPatternBytes)
	}
	folder, name, named := strings.Cut(rest, ":")
	if !named {
		name = path.Base(folder)
	}
	if folder != "" && path.Clean(folder) != folder || strings.HasPrefix(folder, "/") || !targetFolder(folder) {
		return "", errors.New("has no valid folder; write //folder:name without . and .. and double slashes")
	}
	if !isName(name) {
		return "", errors.New("names no target; write //folder:name")
	}
	return joinLabel(folder, name), nil
}

// isForeign reports whether a dependency is named as targets of other adapters are: node://web, example.com/shop/api.
func isForeign(text string) bool {
	return strings.Contains(text, "/") && len(text) <= maxPatternBytes && !strings.ContainsAny(text[:1], "/:.") && !strings.ContainsFunc(text, unicode.IsControl)
}

// targetFolder reports whether a folder can be part of a label.
func targetFolder(folder string) bool {
	if !utf8.ValidString(folder) || strings.ContainsAny(folder, ":\"\\\u2028\u2029") {
		return false
	}
	return !strings.ContainsFunc(folder, unicode.IsControl)
}
