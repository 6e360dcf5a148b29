package gitrepo

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// RefusedError is an ErrRefused with what the remote said.
type RefusedError struct {
	// Sentence is the remote's own words, in one line of at most 300 bytes: "main is frozen until Monday".
	Sentence string
	// Everybody reports whether these are words by which servers refuse whoever pushes, or the branch, and no commit in
	// particular.
	Everybody bool
	Err       error
}

func (e *RefusedError) Error() string { return e.Err.Error() }

func (e *RefusedError) Unwrap() error { return e.Err }

// everybody are words by which the common hosts, and hooks, refuse whoever pushes or the branch. Each is in the table of
// refusal_test.go with the text that it is from.
var everybody = regexp.MustCompile(`(?i)` + strings.Join([]string{
	// the branch
	`GH006`, `protected branch`, `cannot update this protected ref`, `must be made through a pull request`, `through pull requests`,
	`must use a pull request`, `must have verified signatures`, `required status check`, `\bfrozen\b`, `\bfreeze\b`, `branch is locked`,
	// whoever pushes
	`not allowed to (force )?push`, `not authorized to push`, `permission to \S+ denied`, `permission denied`, `access denied`,
	`write access .*not granted`, `you need (the git )?'\w+' (rights|permission)`, `prohibited by gerrit`,
	`returned error: 40[13]`, `authentication failed`, `could not read username`, `service not enabled`,
	// the repository
	`read[- ]only`, `\barchived\b`, `project state does not permit`, `unable to create temporary object directory`,
	`insufficient permission for adding an object`,
}, "|"))

// someCommit are words of refusals that concern a commit even though they have words of everybody: Gerrit's of an author whom
// the pusher may not stand for, GitHub's of secrets.
var someCommit = regexp.MustCompile(`(?i)not permitted: forge|cannot contain secrets`)

// noAccess are git's and the hosts' words of a push that was turned away before anything of it was sent: over HTTP by its
// status, over SSH by a line of the host's.
var noAccess = regexp.MustCompile(`(?mi)returned error: 40[13]|authentication failed for|could not read username|^\S*: permission denied \(|` +
	`permission to \S+ denied|permission denied for writing|not allowed to push|read[- ]only|write access .*not granted|` +
	`access denied or repository not exported|service not enabled`)

// brokeOff are words of a remote that was stopped, or failed, in the middle of a push. It has refused nothing, even though git
// shows it as a refusal.
var brokeOff = regexp.MustCompile(`(?i)hooks/[\w-]+ died of signal|unable to migrate objects|internal server error|no space left on device|disk quota exceeded`)

// unpackerDied are git's words of an unpacker that ended before it could say why. With a reason of its own, as for a pack that is too
// large, the remote has refused.
var unpackerDied = regexp.MustCompile(`(?m)^error: remote unpack failed: \S+ abnormal exit`)

// saidWhy is a line of the remote's own.
var saidWhy = regexp.MustCompile(`(?m)^remote: .*\S`)

// refusal returns what a push failed with if the remote has refused it, nil if it may have failed otherwise. summary is the
// status line without the names, "" if the remote gave none.
func refusal(summary string, failure error) *RefusedError {
	var stderr string
	if failed, ok := errors.AsType[*CommandError](failure); ok {
		stderr = failed.Stderr
	}
	switch {
	case brokeOff.MatchString(stderr + "\n" + summary), unpackerDied.MatchString(stderr) && !saidWhy.MatchString(stderr):
		return nil
	case strings.HasPrefix(summary, "[remote rejected]"):
	case summary != "" || !noAccess.MatchString(quotedPath.ReplaceAllString(stderr, "''")):
		return nil
	}
	if lock := lockInTheWay.FindStringSubmatch(stderr); lock != nil {
		return &RefusedError{Sentence: sentenceOf("the branch is locked by " + filepath.Clean(lock[1]) + "; if no git runs in that repository, one that was killed has left this file: remove it"), Everybody: true}
	}
	words := remoteWords(summary, stderr)
	all := words + " " + summary
	return &RefusedError{Sentence: sentenceOf(words), Everybody: everybody.MatchString(all) && !someCommit.MatchString(all)}
}

// quotedPath is a path or URL as git quotes it, which may hold any words.
var quotedPath = regexp.MustCompile(`'[^'\n]*/[^'\n]*'`)

// remoteWords returns what the remote said: the lines that git marks as the remote's; those that a host has written over SSH; or
// else the reason in the status line.
func remoteWords(summary, stderr string) string {
	var said, others []string
	var unpacking string
	for line := range strings.Lines(stderr) {
		text, remote := strings.CutPrefix(strings.TrimSpace(line), "remote:")
		text = strings.TrimSpace(text)
		if why, is := strings.CutPrefix(text, "error: remote unpack failed: "); is {
			unpacking = why
		}
		for _, prefix := range []string{"error: ", "fatal: ", "ERROR: "} {
			text = strings.TrimPrefix(text, prefix)
		}
		switch {
		case strings.HasPrefix(text, "hook declined to update "): // git's own, after what the hook said
		case strings.Trim(text, "-=*#! ") == "":
		case remote && !slices.Contains(said, text):
			said = append(said, text)
		case !remote && noAccess.MatchString(quotedPath.ReplaceAllString(text, "''")):
			others = append(others, text)
		}
	}
	switch {
	case len(said) > 0:
		return strings.Join(said, " ")
	case summary == "" && len(others) > 0:
		return others[0]
	case unpacking != "":
		return unpacking
	}
	return strings.Trim(strings.TrimPrefix(summary, "[remote rejected]"), " ()")
}

const maxSentence = 300

// sentenceOf returns words as one line of bounded length that can be printed anywhere.
func sentenceOf(words string) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(words, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxSentence {
		text = strings.ToValidUTF8(text[:maxSentence-len("…")], "") + "…"
	}
	return text
}
