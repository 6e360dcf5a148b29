package nodegraph

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// compilerFile is what a tsconfig.json or jsconfig.json says.
type compilerFile struct {
	// extends are the files that it builds on, as they are written.
	extends []string
	// inputs are paths and patterns that it takes files from, and projects that it refers to.
	inputs []string
	// aliases are names that stand for paths.
	aliases []alias
}

// alias maps specifiers to paths; each may have one *.
type alias struct {
	pattern string
	paths   []string
}

// maxConfigBytes bounds what is parsed as configuration of the compiler, maxPathsBytes its paths together, each with the baseUrl that
// it is below; a larger file is text.
const (
	maxConfigBytes = 1 << 20
	maxPathsBytes  = 16 << 20
)

// parseCompilerFile reads configuration of the TypeScript compiler; nil if it is none.
func parseCompilerFile(content []byte, isNamed bool) *compilerFile {
	if len(content) > maxConfigBytes || !isNamed && !bytes.Contains(content, []byte(`"compilerOptions"`)) {
		return nil
	}
	var file struct {
		Extends         json.RawMessage
		Files, Include  []string
		References      []struct{ Path string }
		CompilerOptions struct {
			BaseURL             string `json:"baseUrl"`
			Paths               map[string][]string
			RootDir             string `json:"rootDir"`
			RootDirs, TypeRoots []string
		}
	}
	if json.Unmarshal(withoutComments(content), &file) != nil {
		return nil
	}
	c := &compilerFile{}
	var one string
	if json.Unmarshal(file.Extends, &one) == nil {
		c.extends = []string{one}
	} else if file.Extends != nil && json.Unmarshal(file.Extends, &c.extends) != nil {
		return nil
	}
	o := file.CompilerOptions
	for _, text := range slices.Concat(file.Files, file.Include, o.RootDirs, o.TypeRoots, []string{o.RootDir}) {
		if text != "" {
			c.inputs = append(c.inputs, configPath(text))
		}
	}
	for _, r := range file.References {
		c.inputs = append(c.inputs, configPath(r.Path))
	}
	size := 0
	for _, pattern := range slices.Sorted(maps.Keys(o.Paths)) {
		a := alias{pattern: pattern}
		for _, text := range o.Paths[pattern] {
			if size += len(o.BaseURL) + len(text); size > maxPathsBytes {
				return nil
			}
			a.paths = append(a.paths, configPath(joinText(o.BaseURL, text)))
		}
		c.aliases = append(c.aliases, a)
	}
	if o.BaseURL != "" {
		c.aliases = append(c.aliases, alias{"*", []string{configPath(joinText(o.BaseURL, "*"))}})
	}
	return c
}

// joinText puts a path below another as they are written.
func joinText(base, text string) string {
	if base == "" || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "${") {
		return text
	}
	return strings.TrimSuffix(base, "/") + "/" + text
}

// configPath returns a path of a configuration as a relative one.
func configPath(text string) string {
	text = strings.TrimPrefix(text, "${configDir}/")
	if isRelative(text) || strings.HasPrefix(text, "/") {
		return text
	}
	return "./" + text
}

// withoutComments returns JSON without comments and without commas before a closing bracket.
func withoutComments(content []byte) []byte {
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	out := make([]byte, 0, len(content))
	comma := -1 // where in out a comma stands that only white space follows
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case c == '"':
			end := i + 1
			for end < len(content) && content[end] != '"' && content[end] != '\n' {
				if content[end] == '\\' {
					end++
				}
				end++
			}
			out = append(out, content[i:min(end+1, len(content))]...)
			i, comma = end, -1
		case c == '/' && i+1 < len(content) && content[i+1] == '/':
			for i < len(content) && content[i] != '\n' {
				i++
			}
			out = append(out, '\n')
		case c == '/' && i+1 < len(content) && content[i+1] == '*':
			end := bytes.Index(content[i+2:], []byte("*/"))
			if end < 0 {
				return out
			}
			i += end + 3
		case c == ',':
			comma = len(out)
			out = append(out, c)
		case (c == '}' || c == ']') && comma >= 0:
			out[comma] = ' '
			out, comma = append(out, c), -1
		default:
			if !isSpace(c) {
				comma = -1
			}
			out = append(out, c)
		}
	}
	return out
}

// matches returns the paths that a specifier stands for.
func (a alias) matches(spec string) []string {
	before, after, isPattern := strings.Cut(a.pattern, "*")
	middle := ""
	switch {
	case !isPattern:
		if spec != a.pattern {
			return nil
		}
	case len(spec) < len(before)+len(after) || !strings.HasPrefix(spec, before) || !strings.HasSuffix(spec, after):
		return nil
	default:
		middle = spec[len(before) : len(spec)-len(after)]
	}
	paths := make([]string, len(a.paths))
	for i, path := range a.paths {
		paths[i] = strings.Replace(path, "*", middle, 1)
	}
	return paths
}
