package decisive

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
)

// Longer outputs are read from both ends, and of a longer line the start: what a step prints must not keep a worker busy.
const (
	maxOutput = 8 << 20
	maxLines  = 20_000
	maxLine   = 1 << 10
)

// clean returns the lines of an output as a person saw them: without colours and what a terminal overwrote, and with what JSON
// was wrapped around.
func clean(output []byte) []string {
	lines := split(output)
	for i, line := range lines {
		// Pytest marks what ended itself.
		if lines[i] = strings.TrimPrefix(visible(line), "INTERNALERROR> "); buildersOwn.MatchString(lines[i]) {
			lines[i] = ""
		}
	}
	return lines
}

func split(output []byte) []string {
	if len(output) > maxOutput {
		output = append(bytes.Clone(output[:maxOutput/2]), output[len(output)-maxOutput/2:]...)
	}
	lines := strings.Split(unwrap(string(bytes.ToValidUTF8(output, nil))), "\n")
	if len(lines) > maxLines {
		lines = append(lines[:maxLines/2:maxLines/2], lines[len(lines)-maxLines/2:]...)
	}
	return lines
}

// buildersOwn are the builder's own lines in an output: of what was too long, and before what a service has printed.
var buildersOwn = regexp.MustCompile(`^\[(?:[0-9]+ bytes left out(?:: the output limit is [0-9]+ bytes)?|output of service (.+))\]$`)

// ofServices returns for each line of an output the service that has printed it; "" for those of the command, which come first.
func ofServices(output []byte) []string {
	lines := split(output)
	of, name := make([]string, len(lines)), ""
	for i, line := range lines {
		if m := match(buildersOwn, visible(line)); m != nil && m[1] != "" {
			name = m[1]
		}
		of[i] = name
	}
	return of
}

var terminal = regexp.MustCompile("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[@-Z\\\\-_])")

// visible returns what a terminal shows of a line.
func visible(line string) string {
	line = strings.TrimRight(line, "\r\n \t")
	if at := strings.LastIndexByte(line, '\r'); at >= 0 {
		line = line[at+1:]
	}
	if len(line) > 4*maxLine {
		line = line[:4*maxLine]
	}
	if strings.IndexByte(line, 0x1b) >= 0 {
		line = terminal.ReplaceAllString(line, "")
	}
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "")
	}
	return strings.Map(printable, line)
}

// printable returns a character, or -1 for one that steers a terminal.
func printable(r rune) rune {
	if !unicode.IsSpace(r) && unicode.IsControl(r) {
		return -1
	}
	return r
}

// wrapped is a line of `go test -json`, of cargo's JSON, or of Bazel's build events.
type wrapped struct {
	// Go's; the package is ImportPath while it is compiled.
	Action, Package, ImportPath, Output string
	// Cargo's.
	Reason  string
	Message struct{ Rendered string }
	// Bazel's.
	Progress struct{ Stdout, Stderr string }
}

// unwrap returns the text that an output in JSON carries; what is no JSON stays. What Go packages print side by side is put
// together.
func unwrap(output string) string {
	if !strings.Contains(output, "\n{") && !strings.HasPrefix(output, "{") {
		return output
	}
	groups, order := map[string]*strings.Builder{}, []string{}
	put := func(group, text string) {
		if groups[group] == nil {
			groups[group] = &strings.Builder{}
			order = append(order, group)
		}
		groups[group].WriteString(text)
	}
	for line := range strings.Lines(output) {
		var w wrapped
		switch text := strings.TrimSpace(line); {
		case !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") || !isWrapped(text) || json.Unmarshal([]byte(text), &w) != nil:
			put("", line)
		case w.Action != "":
			put(w.Package+w.ImportPath, w.Output)
		case w.Reason != "":
			put("", w.Message.Rendered)
		default:
			put("", w.Progress.Stdout+"\n"+w.Progress.Stderr+"\n")
		}
	}
	var all strings.Builder
	for _, group := range order {
		all.WriteString(groups[group].String())
		all.WriteString("\n")
	}
	return all.String()
}

func isWrapped(line string) bool {
	return strings.Contains(line, `"Action":"`) || strings.Contains(line, `"reason":"`) || strings.HasPrefix(line, `{"id":{`)
}
