package decisive

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	// psqlSays matches psql's error with a file and line, sqlSays an error of psql, sqlite3 or mysql, with or without a line.
	psqlSays = regexp.MustCompile(`^psql:([^\s:]+):(\d+): (?:ERROR|FATAL): +(.+)$`)
	sqlSays  = regexp.MustCompile(`^(?:(?:Parse |Runtime )?[Ee]rror:? (?:near|at|in) line (\d+): (.+)|ERROR \d+ \(\w+\) at line (\d+)(?: in file: '([^']+)')?: (.+)|ERROR: {2}(.+))$`)
	// sqlLine is psql's line of a statement, sqlName a file that a command names.
	sqlLine = regexp.MustCompile(`^LINE \d+: (.+)$`)
	sqlName = regexp.MustCompile(`[\w@+./-]*\w\.sql\b`)
)

// sqlFiles finds the errors of databases in the files that they are given.
func sqlFiles(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= Most {
			break
		}
		if m := match(psqlSays, line); m != nil {
			found = append(found, finding{crash, i, joined(tree.first([]place{{m[1], m[2]}}), m[3])})
			continue
		}
		m := match(sqlSays, line)
		if m == nil {
			continue
		}
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		at, excerpt := 0, ""
		switch of := match(sqlLine, next); {
		case of != nil:
			excerpt = of[1]
		case strings.HasPrefix(next, "  "):
			excerpt = next
		}
		at, _ = strconv.Atoi(m[1] + m[3])
		where := ""
		if m[4] != "" {
			where = tree.first([]place{{m[4], m[3]}})
		} else {
			_, missing, _ := strings.Cut(m[2], "no such table: ")
			where = tree.sqlFile(at, strings.TrimSuffix(strings.TrimSpace(excerpt), "..."), missing)
		}
		found = append(found, finding{crash, i, joined(where, m[2]+m[5]+m[6])})
	}
	return found
}

// sqlFile returns the file, with the line, that a database was given by its standard input: of those that the command names, else of
// all in its folder, the one that has the statement, or names what is missing. at is the line, 0 if it is not known.
func (t Tree) sqlFile(at int, statement, missing string) string {
	var files []string
	for _, name := range sqlName.FindAllString(strings.Join(t.Command, " "), enough) {
		if file, own := t.locate(name, ""); own {
			files = append(files, file)
		}
	}
	named := len(files)
	if named == 0 {
		files = t.below("*.sql")
	}
	statement = strings.Join(strings.Fields(statement), " ")
	best, lines := "", 1 // of psql's excerpt; sqlite3 puts more of a statement into one
	if at > 0 {
		lines = 50
	}
	for _, file := range files {
		line := 0
		texts := strings.Split(string(t.read(file)), "\n")
		for n := range texts {
			if statement+missing == "" || at > 0 && n+1 != at {
				continue
			}
			text, _, _ := strings.Cut(strings.Join(texts[n:min(len(texts), n+lines)], " "), ";")
			if strings.HasPrefix(strings.Join(strings.Fields(text+";"), " "), statement) && strings.Contains(text, missing) {
				line = n + 1
				break
			}
		}
		switch {
		case line > 0 && best != "":
			return "" // several have it
		case line > 0:
			best = file + ":" + strconv.Itoa(line)
		}
	}
	if best == "" && named == 1 {
		if best = files[0]; at > 0 {
			best += ":" + strconv.Itoa(at)
		}
	}
	return best
}
