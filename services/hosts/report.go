package hosts

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"landfall.build/platform/access"
)

const (
	// maxStatus bounds the text of a status, in bytes.
	maxStatus = 140
	// maxLines and maxLine bound what is shown of an output.
	maxLines = 20
	maxLine  = 300
	// statusEvery is the time between two statuses that differ in no more than what a change waits for.
	statusEvery = 15 * time.Second
	// placePatience is how long the lines of a failure are waited for.
	placePatience = 5 * time.Second
)

// Report holds what to change at the host. A field that is not set changes nothing.
type Report struct {
	key key
	// Merged is the commit by which it is marked as merged.
	Merged string
	Status *Status
	Commit string
	// Text is the new text of the comment. Comment is its id, 0 if it is not known.
	Text    string
	Comment int64
	Unlabel bool
}

func (r Report) empty() bool { return r.Merged == "" && r.Status == nil && r.Text == "" && !r.Unlabel }

// report returns what the host does not show yet; nothing if it shows all.
func (r *review) report(s Settings, nowUS int64) Report {
	out := Report{Comment: r.kept.Comment}
	k, state := r.kept, r.state()
	if r.pull == nil {
		return out
	}
	if state == nobody && r.pull.Status.State == StatusPending {
		out.Commit, out.Status = r.pull.Head, &Status{State: StatusError, Text: "Not asked to land any more", URL: r.pull.Status.URL}
	}
	// What was pushed since has not landed, so the pull request stays open.
	if state == landed && r.pull.Open && r.hasLanded() && len(r.outcome.Commits) > 0 {
		out.Merged = r.outcome.Commits[len(r.outcome.Commits)-1]
	}
	if k.Head != "" {
		want := r.status(s, state, nowUS)
		seen := r.pull.Status
		if want != seen && (want.State != seen.State || nowUS-r.statusUS >= statusEvery.Microseconds() || state.ended()) {
			out.Commit, out.Status = k.Head, &want
		}
	}
	if r.linesAwaited(state, nowUS) {
		return out
	}
	if text := r.comment(s, state); text != "" {
		if !bytes.Equal(hashOf(text), k.CommentHash) {
			out.Text = text
		}
	}
	out.Unlabel = r.pull.Labelled && r.pull.Open && (state.ended() && state != landed || state == nobody)
	return out
}

// hasLanded reports whether the head of the pull request is what was asked for, or is a landing commit: that of an earlier try may have stayed.
func (r *review) hasLanded() bool {
	return r.pull.Head == r.kept.Head || r.pull.Landing || slices.Contains(r.outcome.Commits, r.pull.Head)
}

// linesAwaited reports whether the lines of a failure may still come.
func (r *review) linesAwaited(state state, nowUS int64) bool {
	return (state == rejected || state == ejected) && (r.place == nil || r.place.State != string(state)) && nowUS-r.endedUS < placePatience.Microseconds()
}

// status returns the status that the host is to show.
func (r *review) status(s Settings, state state, nowUS int64) Status {
	k, o := r.kept, r.outcome
	out := Status{State: StatusPending}
	if s.Page != nil {
		out.URL = s.Page(s.Queue, k.Change)
	}
	switch state {
	case waiting:
		out.Text = "Waits for " + strings.Join(r.pull.Missing, ", ")
	case asked:
		out.Text = "Asked to land"
	case queued:
		out.Text = "In the queue"
		if p := r.place; p != nil && p.Position > 0 {
			out.Text = fmt.Sprintf("%s in the queue%s: %s", ordinal(p.Position), soon(p.ETA, nowUS), p.Why)
		}
	case held:
		out.Text = "Held by " + o.Who
		if k.Withheld {
			out.Text = "Held: waits for " + strings.Join(r.pull.Missing, ", ")
		}
	case landed:
		out.State, out.Text = StatusSuccess, "Landed"
		if n := len(o.Commits); n > 0 {
			out.Text += " as " + short(o.Commits[n-1])
		}
	case rejected, ejected:
		out.State, out.Text = StatusFailure, capital(string(state))+": "+o.Reason.GetText()
		if o.Reason.GetTarget() != "" {
			out.Text = fmt.Sprintf("%s: %s of %s failed: %s", capital(string(state)), o.Reason.Step, o.Reason.Target, o.Reason.Text)
		}
	case cancelled:
		out.State, out.Text = StatusError, "Cancelled by "+o.Who
	case dropped:
		out.State, out.Text = StatusError, "Landed, and was dropped by a force-push"
	case refused:
		out.State, out.Text = StatusError, "Refused: "+r.answer.Reason.GetText()
	}
	out.Text = strings.TrimSpace(access.Clean(out.Text, maxStatus))
	return out
}

// soon says when something is, so coarsely that it seldom changes.
func soon(at time.Time, nowUS int64) string {
	if at.IsZero() {
		return ""
	}
	left := time.Duration(at.UnixMicro()-nowUS) * time.Microsecond
	switch minutes := int(left.Minutes() + 0.5); {
	case minutes < 2:
		return ", about a minute"
	case minutes < 10:
		return fmt.Sprintf(", about %d min", minutes)
	case minutes < 90:
		return fmt.Sprintf(", about %d min", (minutes+4)/5*5)
	default:
		return fmt.Sprintf(", about %d h", (minutes+30)/60)
	}
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// comment returns the text of the comment, "" if nobody needs one. One that is there is kept true.
func (r *review) comment(s Settings, state state) string {
	k, o := r.kept, r.outcome
	var b strings.Builder
	switch {
	case state == landed:
		b.WriteString("**Landed**")
		if len(o.Commits) > 0 {
			fmt.Fprintf(&b, " as `%s`", strings.Join(o.Commits, "`, `"))
		}
		b.WriteString(".")
		if r.pull.Open && !r.hasLanded() {
			fmt.Fprintf(&b, " What was pushed after `%s` has not landed; ask again to land it.", short(k.Head))
		}
	case state == rejected || state == ejected:
		fmt.Fprintf(&b, "**%s.** ", capital(string(state)))
		r.writeFailure(&b)
		b.WriteString("\n\nPush what mends it, then ask again by the label or `/landfall land`. `/landfall retry` has the same commit tried again.")
	case state == refused:
		fmt.Fprintf(&b, "**Refused.** %s", escape(r.answer.Reason.GetText()))
	case k.Comment == 0 && k.Note == "":
		return ""
	case state == cancelled:
		fmt.Fprintf(&b, "Cancelled by %s.", escape(o.Who))
	case state == waiting:
		fmt.Fprintf(&b, "`%s` is asked to land, and waits to be ready.", short(k.Head))
	case state == asked || state.pending():
		fmt.Fprintf(&b, "`%s` is in the queue.", short(k.Head))
	}
	if k.Note != "" {
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(k.Note)
	}
	if b.Len() == 0 {
		return ""
	}
	if s.Page != nil {
		if page := s.Page(s.Queue, k.Change); page != "" && k.Head != "" {
			fmt.Fprintf(&b, "\n\n[What the queue knows of it](%s)", page)
		}
	}
	return b.String() + "\n\n" + Marker(s.Queue) + "\n"
}

// writeFailure writes what failed, with the first lines of it.
func (r *review) writeFailure(b *strings.Builder) {
	reason := r.outcome.Reason
	if reason.GetTarget() != "" {
		fmt.Fprintf(b, "The step `%s` of `%s` failed. ", inCode(reason.Step), inCode(reason.Target))
	}
	if p := r.place; p != nil && p.State == string(r.state()) && p.Failure != "" {
		b.WriteString(escape(p.Failure))
		if len(p.Lines) > 0 {
			lines := make([]string, 0, maxLines)
			for _, line := range p.Lines[:min(len(p.Lines), maxLines)] {
				lines = append(lines, " "+access.Clean(line, maxLine)) // other programs take lines for commands, and know no blocks of code
			}
			text := strings.Join(lines, "\n")
			fence := "```"
			for strings.Contains(text, fence) {
				fence += "`"
			}
			fmt.Fprintf(b, "\n\n%s\n%s\n%s", fence, text, fence)
		}
		return
	}
	b.WriteString(escape(reason.GetText()))
}

// mention names somebody without calling them: they are told by having written.
func mention(login string) string { return "`" + inCode(login) + "`" }

// inCode returns text of others for between backquotes.
func inCode(text string) string { return strings.ReplaceAll(access.Clean(text, 300), "`", "'") }

// addresses are what makes a link of text that stands bare.
var addresses = regexp.MustCompile(`(?i)(:)(//)|(www)(\.)`)

// escape returns text of others as Markdown that means nothing but the text: no links, no images, no calls of people.
func escape(text string) string {
	var b strings.Builder
	for _, c := range access.Clean(text, 1000) {
		if c < unicode.MaxASCII && (unicode.IsPunct(c) || unicode.IsSymbol(c)) && !strings.ContainsRune(".,:;'/-%()?=", c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
		if c == '@' || c == '#' {
			b.WriteRune('\u200b') // a call of somebody has none of these
		}
	}
	return addresses.ReplaceAllString(b.String(), "$1$3\u200b$2$4")
}

func hashOf(text string) []byte {
	hash := sha256.Sum256([]byte(text))
	return hash[:]
}
