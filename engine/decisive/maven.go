package decisive

import (
	"regexp"
	"strings"
)

var (
	// javacSays is a line of a compiler, as Maven prints it.
	javacSays = regexp.MustCompile(`^\[ERROR\] (\S.*\.\w+):\[(\d+),\d+\] (.+)$`)
	// pomSays is a complaint about a pom.xml. Where it is stands in its middle or at its end.
	pomSays = regexp.MustCompile(`^\[(?:ERROR|FATAL)\] (?:Malformed POM |Non-parseable POM )?(?:(\S.*pom\.xml): )?(\S.*?) @ (?:(\S.*pom\.xml), )?line (\d+), column \d+$`)
	// goalSays is what ended the build, where nothing above it is more exact.
	goalSays = regexp.MustCompile(`^\[ERROR\] (Failed to execute goal .+?|The build could not .+?)(?: -> \[Help \d+\])?$`)
	// surefireSays begins the report of a test that failed, of Surefire 2 and 3.
	surefireSays = regexp.MustCompile(`^(?:\[ERROR\] )?(?:(\w\S*)\(([\w.$]+)\)|([\w.$]+)\.(\w\S*)) +(?:-- )?Time elapsed: .*<<< (?:FAILURE|ERROR)!`)
	javaFrame    = regexp.MustCompile(`^\s+at (?:\S+/)?([\w.$]+)\.[\w$<>]+\((\w+\.\w+):(\d+)\)$`)
)

// maven finds what Maven prints of a file that does not compile, of a pom.xml and of a test that failed; else the goal at which it ended.
func maven(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		if m := match(javacSays, line); m != nil {
			text := m[3]
			if i+1 < len(lines) {
				if symbol, is := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(lines[i+1], "[ERROR]")), "symbol:"); is {
					text += ": " + strings.TrimSpace(symbol)
				}
			}
			found = append(found, finding{doesNotCompile, i, joined(tree.first([]place{{m[1], m[2]}}), text)})
		} else if m := match(pomSays, line); m != nil {
			file := m[1] + m[3]
			if file == "" {
				file = "pom.xml"
			}
			found = append(found, finding{doesNotCompile, i, joined(tree.first([]place{{file, m[4]}}), m[2])})
		} else if m := match(surefireSays, line); m != nil {
			found = append(found, surefire(lines[i+1:], i, m[2]+m[3], m[1]+m[4], tree))
		} else if m := match(goalSays, line); m != nil {
			found = append(found, finding{report, i, m[1]})
		}
	}
	return found
}

// surefire returns the finding of a test of a class that failed. What follows in the output are the exception and its frames.
func surefire(block []string, at int, class, test string, tree Tree) finding {
	name := class[strings.LastIndexByte(class, '.')+1:] + "." + test
	message, where := "", ""
	for i, line := range block[:blockEnd(block, 0, func(line string) bool { return strings.TrimSpace(line) == "" || surefireSays.MatchString(line) })] {
		m := match(javaFrame, line)
		switch {
		case i == 0:
			message = strings.TrimPrefix(strings.TrimPrefix(line, "java.lang.AssertionError: "), "org.opentest4j.AssertionFailedError: ")
		case m != nil && m[1] == class && where == "":
			file := strings.ReplaceAll(class[:strings.LastIndexByte(class, '.')+1], ".", "/") + m[2]
			where = tree.first([]place{{file, m[3]}})
		}
	}
	return finding{failedTest, at, joined(where, name, message)}
}
