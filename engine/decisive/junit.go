package decisive

import (
	"encoding/xml"
	"regexp"
	"strings"
)

var xmlPlace = regexp.MustCompile(`([^\s"'():]+\.\w+):(\d+)\b`)

// junit finds the tests that failed in a report of JUnit's kind, which a step has printed.
func junit(lines []string, tree Tree) (found []finding) {
	start := -1
	for i, line := range lines {
		if strings.Contains(line, "<testsuite") {
			start = i
			break
		}
	}
	if start < 0 {
		return nil
	}
	text := strings.Join(lines[start:], "\n")
	decoder := xml.NewDecoder(strings.NewReader(text[strings.Index(text, "<testsuite"):]))
	decoder.Strict = false
	var test, failure map[string]string
	var body strings.Builder
	for {
		token, err := decoder.Token()
		if err != nil { // the end, or what follows the report
			return found
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "testcase":
				test = attributes(t)
			case "failure", "error":
				failure = attributes(t)
				body.Reset()
			}
		case xml.CharData:
			if failure != nil {
				body.Write(t)
			}
		case xml.EndElement:
			if failure != nil && (t.Name.Local == "failure" || t.Name.Local == "error") {
				found = append(found, finding{failedTest, start, junitText(test, failure, body.String(), tree)})
				failure = nil
			}
		}
	}
}

func attributes(e xml.StartElement) map[string]string {
	of := map[string]string{}
	for _, a := range e.Attr {
		of[a.Name.Local] = a.Value
	}
	return of
}

func junitText(test, failure map[string]string, body string, tree Tree) string {
	name := test["name"]
	if class := test["classname"]; class != "" && !strings.Contains(name, class) {
		name = class + "." + name
	}
	where := ""
	for _, m := range xmlPlace.FindAllStringSubmatch(body, 50) {
		if file, own := tree.locate(m[1], ""); own {
			where = file + ":" + m[2]
			break
		}
	}
	if file := test["file"]; where == "" && file != "" {
		where, _ = tree.locate(file, "")
		if line := test["line"]; line != "" {
			where += ":" + line
		}
	}
	says := failure["message"]
	if says == "" {
		says = strings.TrimSpace(body)
		says, _, _ = strings.Cut(says, "\n")
	}
	return joined(where, name, strings.ReplaceAll(says, "\n", " "))
}
