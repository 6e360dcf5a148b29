package hosts

import "strings"

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

// Commands returns the commands of a comment. A command is a line of its own, outside of code blocks and quotations.
func Commands(text string) (commands []Command) {
	fence := ""
	for line := range strings.SplitSeq(text[:min(len(text), maxCommentBytes)], "\n") {
		line = strings.TrimRight(line, " \t\r")
		if trimmed := strings.TrimLeft(line, " "); len(line)-len(trimmed) < 4 {
			for _, mark := range []string{"```", "~~~"} {
				if strings.HasPrefix(trimmed, mark) && (fence == "" || fence == mark) {
					if fence == "" {
						fence = mark
					} else {
						fence = ""
					}
					trimmed = ""
					break
				}
			}
			if trimmed == "" {
				continue
			}
		}
		words := strings.Fields(line)
		if fence != "" || !strings.HasPrefix(line, prefix) || words[0] != prefix {
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
