package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	eventsv1 "landfall.build/events/v1"
)

// Bounds of a request's texts, in bytes.
const (
	MaxIDBytes          = 200
	maxRefBytes         = 1000
	maxNameBytes        = 300
	maxTitleBytes       = 1000
	maxDescriptionBytes = 64 << 10
	maxURIBytes         = 2000
	maxLabels           = 50
	maxLabelBytes       = 1000
	maxBenefit          = 1e6
	maxRevision         = 1 << 52 // JSON numbers hold the next ones, too
	commitIDBytes       = 40
	shortCommitBytes    = 12
)

// notInRefs are characters that git has in no name of a ref.
const notInRefs = ` ~^:?*[\`

func refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Complete fills in what a request leaves out: the change's id, a benefit, lower case in commit ids. It returns what is
// wrong with the request by itself, before git is asked; nil if nothing is.
func Complete(r *eventsv1.LandRequest, limits Limits) *Refusal {
	if problem := checkEntries(r.Entries, limits.Stack); problem != nil {
		return problem
	}
	if r.Change == "" {
		r.Change = DefaultID(r.Entries)
	}
	if why := idProblem(r.Change); why != "" {
		return refuse(BadRequest, "The change's id %s %s; give another one.", quote(r.Change), why)
	}
	if r.Revision > maxRevision {
		return refuse(BadRequest, "Revision %d is too large; leave it out, and the next one is taken.", r.Revision)
	}
	if problem := checkRequires(r, limits.Requires); problem != nil {
		return problem
	}
	if problem := checkTexts(r); problem != nil {
		return problem
	}
	switch {
	case math.IsNaN(r.Benefit) || r.Benefit < 0 || r.Benefit > maxBenefit:
		return refuse(BadRequest, "The benefit %v is not between 0 and %d; 1 is what a change has by default.", r.Benefit, int(maxBenefit))
	case r.Benefit == 0:
		r.Benefit = 1
	}
	return nil
}

func checkEntries(entries []*eventsv1.Entry, most int) *Refusal {
	if len(entries) == 0 {
		return refuse(BadRequest, "The request names nothing to land; give at least one entry with a ref or a commit.")
	}
	if len(entries) > most {
		return refuse(BadRequest, "The request has %d entries and this queue takes at most %d in one change; land it as several changes that require each other.", len(entries), most)
	}
	for i, e := range entries {
		if e == nil || (e.Ref == "" && e.Commit == "") {
			return refuse(BadRequest, "Entry %d has neither a ref nor a commit; give one of the two.", i+1)
		}
		if e.Commit != "" {
			e.Commit = strings.ToLower(e.Commit)
			if len(e.Commit) != commitIDBytes || strings.Trim(e.Commit, "0123456789abcdef") != "" {
				return refuse(BadRequest, "Entry %d: %s is not a full commit id of 40 hexadecimal digits; give the whole id, or a ref.", i+1, quote(e.Commit))
			}
		}
		if e.Ref != "" {
			if !isRefName(e.Ref) {
				return refuse(BadRequest, "Entry %d: %s is no name of a ref; give a branch, or a full name such as refs/pull/7/head.", i+1, quote(e.Ref))
			}
		}
		if v := e.Review; v != nil && !(isRefName(v.Branch) && strings.HasPrefix(v.Branch, "refs/heads/") && isRefName(v.Shown) && strings.HasPrefix(v.Shown, "refs/")) {
			return refuse(BadRequest, "Entry %d: %s and %s are no branch and ref of a review; give full names, or leave the review out.", i+1, quote(v.Branch), quote(v.Shown))
		}
	}
	return nil
}

func isRefName(name string) bool {
	return name != "" && textProblem(name, maxRefBytes) == "" && !strings.HasPrefix(name, "-") && !strings.ContainsAny(name, notInRefs) && !strings.Contains(name, "..") && !strings.Contains(name, "@{")
}

func checkRequires(r *eventsv1.LandRequest, most int) *Refusal {
	seen := make(map[string]bool, len(r.Requires))
	kept := r.Requires[:0]
	for _, id := range r.Requires {
		if why := idProblem(id); why != "" {
			return refuse(BadRequest, "The required change's id %s %s; give the id that the queue shows.", quote(id), why)
		}
		if id == r.Change {
			return refuse(CyclicRequirement, "The change %s requires itself; leave that out.", quote(id))
		}
		if !seen[id] {
			seen[id] = true
			kept = append(kept, id)
		}
	}
	r.Requires = kept
	if len(kept) > most {
		return refuse(BadRequest, "The change requires %d others and this queue takes at most %d; require the last ones of each chain only.", len(kept), most)
	}
	return nil
}

func checkTexts(r *eventsv1.LandRequest) *Refusal {
	for _, text := range []struct {
		name, value string
		most        int
	}{
		{"author", r.Author, maxNameBytes}, {"team", r.Team, maxNameBytes}, {"title", r.Title, maxTitleBytes},
		{"uri", r.Uri, maxURIBytes}, {"request_id", r.RequestId, MaxIDBytes},
	} {
		if why := textProblem(text.value, text.most); why != "" {
			return refuse(BadRequest, "The field %s %s; shorten it or leave it out.", text.name, why)
		}
	}
	if len(r.Description) > maxDescriptionBytes || !utf8.ValidString(r.Description) || strings.ContainsRune(r.Description, 0) {
		return refuse(BadRequest, "The description is not UTF-8 text of at most %d bytes; shorten it.", maxDescriptionBytes)
	}
	if len(r.Labels) > maxLabels {
		return refuse(BadRequest, "The request has %d labels; at most %d are taken.", len(r.Labels), maxLabels)
	}
	for key, value := range r.Labels {
		if key == "" || textProblem(key, maxNameBytes) != "" || textProblem(value, maxLabelBytes) != "" {
			return refuse(BadRequest, "The label %s is too long or not printable; shorten it or leave it out.", quote(key))
		}
	}
	return nil
}

// DefaultID returns the id of a change that names none, made of its first entry: the ref's short name if there is one, else
// the beginning of the commit. A name that has to be altered for it gets a digest, or two refs whose altered names are equal
// would be revisions of one change.
func DefaultID(entries []*eventsv1.Entry) string {
	if len(entries) == 0 || entries[0] == nil {
		return ""
	}
	ref := entries[0].Ref
	for _, prefix := range []string{"refs/heads/", "refs/tags/", "refs/"} {
		if short, found := strings.CutPrefix(ref, prefix); found {
			ref = short
			break
		}
	}
	var b strings.Builder
	for _, c := range ref {
		if unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("._/-+@#", c) {
			b.WriteRune(c)
		} else {
			b.WriteByte('-')
		}
	}
	id := strings.Trim(b.String(), "-./")
	if id == "" {
		return strings.ToLower(entries[0].Commit[:min(len(entries[0].Commit), shortCommitBytes)])
	}
	if id == ref && len(id) <= MaxIDBytes {
		return id
	}
	sum := sha256.Sum256([]byte(ref))
	digest := "~" + hex.EncodeToString(sum[:4])
	for len(id) > MaxIDBytes-len(digest) {
		_, size := utf8.DecodeLastRuneInString(id)
		id = id[:len(id)-size]
	}
	return id + digest
}

// idProblem returns why a text cannot be a change's id, "" if it can.
func idProblem(id string) string {
	switch why := textProblem(id, MaxIDBytes); {
	case id == "":
		return "is empty"
	case why != "":
		return why
	case strings.HasPrefix(id, "-"):
		return "begins with '-', which commands take for an option"
	case id == "." || id == "..":
		return "cannot stand in an address"
	case strings.TrimSpace(id) != id:
		return "begins or ends with a space"
	}
	return ""
}

// ValidID reports whether a text can be a change's id.
func ValidID(id string) bool { return idProblem(id) == "" }

// ValidRequestID reports whether a text can be the id of a request.
func ValidRequestID(id string) bool { return id != "" && textProblem(id, MaxIDBytes) == "" }

func textProblem(text string, most int) string {
	if len(text) > most {
		return fmt.Sprintf("is longer than %d bytes", most)
	}
	if !utf8.ValidString(text) {
		return "is not UTF-8"
	}
	for _, c := range text {
		if !unicode.IsPrint(c) {
			return "holds a character that cannot be printed"
		}
	}
	return ""
}

func quote(text string) string {
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
