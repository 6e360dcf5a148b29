package landing

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"landfall.build/platform/gitrepo"
)

const (
	maxSources   = 200 // commits of one squash whose messages are read
	maxCoAuthors = 50
	maxMessage   = 1 << 20 // bytes of a subject, and of a text
)

// reserved matches a line that could be read as one of Landfall's trailers, however it is written:
// what an author writes must not look like what the lander says (M22).
var reserved = regexp.MustCompile(`(?i)^\s*landfall-[^\s:]*\s*:`)

// trailerLine matches a line of a trailer block: "Key: value", or a continued value.
var trailerLine = regexp.MustCompile(`^([A-Za-z0-9-]+\s*:\s|\s+\S)`)

// Message makes the message of a landing commit from the commits that go into it, oldest
// first. One commit's message stands as it is. Of several, the oldest commit's leads, the
// subjects of the others follow as a list, and authors other than the head's are named by
// Co-authored-by. A merge is called "Merge: " and the head's subject. title and body
// replace these parts where they are not empty.
//
// Lines that look like one of Landfall's trailers are removed, wherever they stand; then Landfall's
// trailers ("Key: value", one line each) are appended to the block of trailers at the end,
// or as one.
func Message(sources []gitrepo.Commit, merge bool, title, body string, trailers []string) string {
	subject, text := splitMessage(sources[0].Message)
	head := sources[len(sources)-1]
	if merge {
		subject, text = splitMessage(head.Message)
		subject = "Merge: " + subject
	}
	if len(sources) > 1 && !merge {
		var list []string
		for _, source := range sources[1:] {
			if line, _ := splitMessage(source.Message); line != "" {
				list = append(list, "* "+line)
			}
		}
		text = paragraphs(text, strings.Join(list, "\n"))
	}
	if title = stripReserved(oneLine(stripReserved(title))); title != "" {
		subject = title
	}
	if body = stripReserved(body); body != "" {
		text = body
	}
	if subject == "" {
		subject = "(no message)"
	}
	subject, text = clipped(subject), strings.Trim(clipped(text), "\n")
	if !merge {
		trailers = append(coAuthors(sources), trailers...)
	}
	return appendTrailers(subject, text, trailers)
}

// splitMessage returns the first line and the rest, without Landfall's trailers.
func splitMessage(message string) (subject, text string) {
	subject, text, _ = strings.Cut(stripReserved(message), "\n")
	return oneLine(subject), strings.Trim(text, "\n")
}

// stripReserved removes lines that look like Landfall's trailers, with the lines that continue
// them, and settles line ends, so that none hides behind a carriage return.
func stripReserved(message string) string {
	message = strings.ReplaceAll(message, "\r\n", "\n")
	message = strings.ReplaceAll(message, "\r", "\n")
	message = strings.ReplaceAll(message, "\x00", "")
	var kept []string
	stripped := false
	for line := range strings.SplitSeq(message, "\n") {
		line = strings.TrimRight(line, " \t\v\f")
		continued := stripped && line != "" && (line[0] == ' ' || line[0] == '\t')
		if stripped = continued || reserved.MatchString(line); !stripped {
			kept = append(kept, line)
		}
	}
	return strings.Trim(strings.Join(kept, "\n"), "\n")
}

// clipped bounds a text that need not be UTF-8, without cutting a character that is.
func clipped(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	cut := maxMessage
	for cut > maxMessage-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func paragraphs(parts ...string) string {
	var filled []string
	for _, part := range parts {
		if part = strings.Trim(part, "\n"); part != "" {
			filled = append(filled, part)
		}
	}
	return strings.Join(filled, "\n\n")
}

func coAuthors(sources []gitrepo.Commit) []string {
	head := sources[len(sources)-1]
	named := map[string]bool{strings.ToLower(cleanName(head.AuthorEmail)): true}
	var lines []string
	for _, source := range sources {
		name, email := cleanName(source.AuthorName), cleanName(source.AuthorEmail)
		if key := strings.ToLower(email); email != "" && !named[key] && len(lines) < maxCoAuthors {
			named[key] = true
			lines = append(lines, fmt.Sprintf("Co-authored-by: %s <%s>", name, email))
		}
	}
	return lines
}

// appendTrailers joins subject, text and trailers; trailers join a block of trailers that
// ends the text.
func appendTrailers(subject, text string, trailers []string) string {
	block := strings.Join(trailers, "\n")
	last := text[strings.LastIndex("\n\n"+text, "\n\n"):]
	if text != "" && isTrailerBlock(last) {
		return paragraphs(subject, text+"\n"+block) + "\n"
	}
	return paragraphs(subject, text, block) + "\n"
}

func isTrailerBlock(paragraph string) bool {
	for line := range strings.SplitSeq(paragraph, "\n") {
		if !trailerLine.MatchString(line + " ") {
			return false
		}
	}
	return paragraph != "" && paragraph[0] != ' ' && paragraph[0] != '\t'
}
