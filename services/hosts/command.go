package hosts

import (
	"regexp"
	"strings"
)

// Command is a command of a comment.
type Command string

// Commands.
const (
	Land    Command = "land"
	Cancel  Command = "cancel"
	Retry   Command = "retry"
	Front   Command = "front"
	Hold    Command = "hold"
	Release Command = "release"
	Explain Command = "explain"
	// Unknown is none of these.
	Unknown Command = "unknown"
)

const (
	// prefix begins a line that asks for something.
	prefix = "/landfall"
	// maxCommands bounds the commands of one comment.
	maxCommands = 5
	// maxCommentBytes is how much of a comment is read.
	maxCommentBytes = 64 << 10
)

// Commands returns the commands of a comment. A command is a line of its own, outside of code blocks, quotations and what is in HTML comments
// or <pre>: there programs that may land show the text of people who may not, such as the output of a step.
func Commands(text string) (commands []Command) {
	var shown blocks
	for line := range strings.SplitSeq(text[:min(len(text), maxCommentBytes)], "\n") {
		line = strings.TrimRight(line, " \t\r")
		words := strings.Fields(line)
		if shown.within(line) || !strings.HasPrefix(line, prefix) || words[0] != prefix {
			continue
		}
		command := Unknown
		if len(words) == 2 {
			switch c := Command(words[1]); c {
			case Land, Cancel, Retry, Front, Hold, Release, Explain:
				command = c
			}
		}
		if commands = append(commands, command); len(commands) == maxCommands {
			break
		}
	}
	return commands
}

// blocks follows what a comment only shows, line by line.
type blocks struct {
	// fence began the block of code that is open; "" for none.
	fence string
	// end ends the HTML that is open; nil for none.
	end *regexp.Regexp
}

var (
	// fencePattern is of the lines that begin or end a block of code: what CommonMark takes for one, and what follows it.
	fencePattern = regexp.MustCompile("^ {0,3}(```+|~~~+)(.*)$")
	codePattern  = regexp.MustCompile("`+[^`]*`+")
	htmlPattern  = regexp.MustCompile(`(?i)<!--|<pre(?:[\s>]|$)`)
	noteEnd      = regexp.MustCompile("-->")
	preEnd       = regexp.MustCompile(`(?i)</pre\s*>`)
)

// within reports whether a line is of such a block, its first and its last one too.
func (b *blocks) within(line string) bool {
	if b.end != nil {
		if at := b.end.FindStringIndex(line); at != nil {
			b.end = nil
			b.open(line[at[1]:])
		}
		return true
	}
	switch mark := fencePattern.FindStringSubmatch(line); {
	case mark == nil:
	case b.fence == "":
		if mark[1][0] != '`' || !strings.Contains(mark[2], "`") { // else it is code within a line
			b.fence = mark[1]
			return true
		}
	case strings.HasPrefix(mark[1], b.fence) && strings.TrimSpace(mark[2]) == "":
		b.fence = ""
		return true
	}
	if b.fence != "" {
		return true
	}
	b.open(line)
	return b.end != nil
}

// open looks for HTML that is open at the end of a line.
func (b *blocks) open(line string) {
	line = codePattern.ReplaceAllString(line, "")
	for at := htmlPattern.FindStringIndex(line); at != nil; at = htmlPattern.FindStringIndex(line) {
		end := preEnd
		if line[at[0]+1] == '!' {
			end = noteEnd
		}
		line = line[at[1]:]
		if at = end.FindStringIndex(line); at == nil {
			b.end = end
			return
		}
		line = line[at[1]:]
	}
}
