package pythongraph

import (
	"path"
	"slices"
	"strings"
)

// requirement is what a project needs: a distribution by its normal name, or a path, or both.
type requirement struct {
	name string
	// path is relative to the file that says it, empty for none.
	path string
}

// normalName returns the normal form of a distribution's name: lower case, one hyphen for each run of - _ and dots.
func normalName(name string) string {
	var b strings.Builder
	gap := false
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '-' || c == '_' || c == '.' {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// parseRequirement reads a requirement such as "name[extra]>=1; marker", "name @ file:../x" or "./x". The name is empty if
// it has none.
func parseRequirement(text string) requirement {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && (isNameByte(text[end]) || text[end] == '-' || text[end] == '.') {
		end++
	}
	name, rest := text[:end], strings.TrimSpace(text[end:])
	if strings.HasPrefix(rest, "[") {
		_, rest, _ = strings.Cut(rest, "]")
		rest = strings.TrimSpace(rest)
	}
	if url, is := strings.CutPrefix(rest, "@"); is && name != "" {
		url, _, _ = strings.Cut(strings.TrimSpace(url), " ")
		return requirement{name: normalName(name), path: filePath(url)}
	}
	if p := filePath(text); p != "" && (strings.Contains(p, "/") || strings.HasPrefix(p, ".") || strings.HasSuffix(p, ".whl")) {
		return requirement{path: p}
	}
	return requirement{name: normalName(strings.Trim(name, "."))}
}

// filePath returns the path that a requirement names, empty for a URL of something else.
func filePath(url string) string {
	if rest, is := strings.CutPrefix(url, "file:"); is {
		url = strings.TrimPrefix(rest, "//")
		// Places in the repository are named by variables that tools put in.
		for _, root := range []string{"localhost", "${PROJECT_ROOT}", "{root:uri}", "{root}"} {
			url = strings.TrimPrefix(url, root)
			url = strings.TrimPrefix(url, "/"+root)
		}
		if strings.HasPrefix(url, "/") {
			url = "." + url
		}
	}
	url, _, _ = strings.Cut(url, "#")
	url, _, _ = strings.Cut(url, ";")
	url, _, _ = strings.Cut(url, " ")
	if i := strings.IndexByte(url, '['); i >= 0 {
		url = url[:i]
	}
	if strings.Contains(url, "://") || strings.Contains(url, "+") && strings.Contains(url, ":") || url == "" {
		return ""
	}
	return path.Clean(url)
}

// requirementsFile is what a requirements file means.
type requirementsFile struct {
	lines    []string // without comments, in order
	needs    []requirement
	includes []string // other requirements and constraints files, relative to this one
	settings []string // options that name files
}

// parseRequirements reads a requirements file.
func parseRequirements(content []byte) *requirementsFile {
	f := &requirementsFile{}
	text := strings.ReplaceAll(string(content), "\r", "\n")
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		if i := strings.Index(" "+line, " #"); i >= 0 {
			line = line[:i]
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		f.lines = append(f.lines, strings.Join(words, " "))
		f.line(words)
	}
	return f
}

// line reads the words of one line.
func (f *requirementsFile) line(words []string) {
	option, value := words[0], ""
	if name, rest, is := strings.Cut(option, "="); is && strings.HasPrefix(option, "-") {
		option, value = name, rest
	} else if len(words) > 1 {
		value = words[1]
	}
	if short := option; len(short) > 2 && short[0] == '-' && short[1] != '-' {
		option, value = short[:2], short[2:]
	}
	switch option {
	case "-r", "--requirement", "-c", "--constraint":
		if value != "" && !strings.Contains(value, "://") {
			f.includes = append(f.includes, path.Clean(value))
		}
	case "-e", "--editable":
		if value == "" {
			return
		}
		need := parseRequirement(value)
		if p := filePath(value); p != "" {
			need = requirement{path: p}
		}
		f.needs = append(f.needs, need)
	case "-f", "--find-links":
		f.settings = append(f.settings, path.Clean(value))
	default:
		if !strings.HasPrefix(option, "-") {
			f.needs = append(f.needs, parseRequirement(strings.Join(words, " ")))
		}
	}
}

// isRequirements reports whether a file lists requirements, by its name or by that of its folder.
func isRequirements(file string) bool {
	name := nameOf(file)
	suffix := path.Ext(name)
	return (suffix == ".txt" || suffix == ".in") &&
		(strings.Contains(name, "requirements") || strings.HasPrefix(name, "constraints") || nameOf(folderOf(file)) == "requirements")
}

// config is an ini file: sections of keys.
type config map[string]map[string]string

// parseConfig reads an ini file as Python's configparser does: a line that begins with a space goes on with the value above.
func parseConfig(content []byte) config {
	c := config{}
	section, key := "", ""
	var value strings.Builder // of the key
	end := func() {
		if key != "" {
			c[section][key] = value.String()
		}
		key = ""
		value.Reset()
	}
	for line := range strings.Lines(strings.ReplaceAll(string(content), "\r", "\n")) {
		line = strings.TrimRight(line, " \t\n")
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#' || text[0] == ';':
		case line[0] == ' ' || line[0] == '\t':
			value.WriteString("\n" + text)
		case text[0] == '[':
			end()
			section, _, _ = strings.Cut(text[1:], "]")
			if c[section] == nil {
				c[section] = map[string]string{}
			}
		case c[section] != nil:
			end()
			at := strings.IndexAny(text, "=:")
			if at < 0 {
				at = len(text)
			}
			key = strings.ToLower(strings.TrimSpace(text[:at]))
			value.WriteString(strings.TrimSpace(strings.TrimLeft(text[at:], "=:")))
		}
	}
	end()
	return c
}

// unique sorts names and drops repetitions.
func unique(names []string) []string {
	slices.Sort(names)
	return slices.Clip(slices.Compact(names))
}
