package adopt

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// maxParts is how many folders are listed one by one.
const maxParts = 15

// sayFound says what the repository and the machine hold.
func (r *run) sayFound(p *plan, s *source) {
	r.say("%s of %s, %s", p.Branch, p.URL, counted(len(s.paths), "file"))
	if p.password {
		r.say("  The remote's address has a password in it, which is left out.")
	}
	for i, part := range p.parts {
		if i == maxParts {
			r.say("  and %d more", len(p.parts)-maxParts)
			break
		}
		r.say("  %s: %s (%s)", inWords(part.Folder), part.System, strings.Join(part.Files, ", "))
	}
	for _, m := range p.written {
		if m.Command == "" {
			r.say("  %s: %s, for which an example is written", inWords(m.Folder), m.System)
		} else {
			r.say("  %s: %s, which no adapter reads: a target of its own, verified by %s", inWords(m.Folder), m.System, m.Command)
		}
	}
	if len(p.parts)+len(p.written) == 0 {
		r.say("  There is no build system that is known.")
	}
}

// inWords returns a folder as sentences name it.
func inWords(folder string) string {
	if folder == "." {
		return "the root"
	}
	return folder
}

// sayFiles says what was written, or shows it.
func (r *run) sayFiles(p *plan, files []writtenFile) {
	r.say("This machine has %s%s.", p.size(), p.toolsInWords())
	for _, f := range files {
		if f.Written {
			r.say("Written: %s", shown(f.Path))
			continue
		}
		r.say("\n--- %s\n%s", shown(f.Path), strings.TrimRight(f.Content, "\n"))
	}
}

// toolsInWords says which tools there are.
func (p *plan) toolsInWords() string {
	var there, missing []string
	for name, t := range p.Tools {
		if t.Path == "" {
			missing = append(missing, name)
		} else {
			there = append(there, strings.TrimSpace(name+" "+t.Version))
		}
	}
	slices.Sort(there)
	slices.Sort(missing)
	text := ""
	if len(there) > 0 {
		text += ", and " + strings.Join(there, ", ")
	}
	if len(missing) > 0 {
		text += "; " + strings.Join(missing, ", ") + " is missing"
	}
	return text
}

// saySeen says what the queue will see, and what it lacks.
func (r *run) saySeen(seen treeView, lacks []lack, past pastConflicts) {
	r.say("%s.", counted(seen.Targets, "target"))
	if past.Commits > 0 {
		r.say("%s", past.inWords())
		for _, reason := range past.Reasons {
			r.say("  %d: %s", reason.Commits, reason.Text)
		}
	}
	r.sayLacks(lacks)
}

// inWords says how many of the commits would have conflicted with everything.
func (p pastConflicts) inWords() string {
	switch of := "Of the last " + counted(p.Commits, "commit") + " of the mainline "; {
	case p.Commits == 1 && p.All == 0:
		return "The last commit of the mainline would not have conflicted with everything."
	case p.Commits == 1:
		return "The last commit of the mainline would have conflicted with everything:"
	case p.All == 0:
		return of + "none would have conflicted with everything."
	default:
		return of + fmt.Sprintf("%d (%d %%) would have conflicted with everything:", p.All, (100*p.All+p.Commits/2)/p.Commits)
	}
}

func (r *run) sayLacks(lacks []lack) {
	for _, l := range lacks {
		r.say("Lacking: %s", strings.TrimSpace(l.Message+" "+l.Advice))
	}
}

// sayChecked prints what landfall init --check found, for people.
func (r *run) sayChecked(c checked) {
	for _, q := range c.Queues {
		r.say("Queue %s: %s.", q.Queue, counted(q.Targets, "target"))
		r.sayLacks(q.Lacks)
		if len(q.Lacks) == 0 {
			r.say("Nothing lacks.")
		}
		for _, note := range q.Notes {
			r.say("Note: %s", note)
		}
	}
}

// next returns the commands to type, in a folder of the clone. Without the mainline on the remote there is nothing to land on.
func (p *plan) next(ctx context.Context, file string, lacks []lack) []string {
	var next []string
	if p.Clone != "" && slices.ContainsFunc(lacks, func(l lack) bool { return l.Code == "branch_missing" }) {
		next = append(next, p.pushMainline(ctx))
	}
	up := "landfall up"
	if shown(file) != configurationFile {
		up += " --config " + shellQuoted(shown(file))
	}
	next = append(next, up)
	land := func(branch string) {
		if !p.isRemote() {
			next = append(next, "git push origin "+shellQuoted(branch))
		}
		next = append(next, "landfall land "+branch+" --wait")
	}
	if p.Clone == "" {
		return append(next, "landfall land my-branch --wait")
	}
	if !p.here() {
		next = append(next, "cd "+shellQuoted(p.Clone))
	}
	if len(p.written) > 0 {
		var files []string
		for _, m := range p.written {
			files = append(files, shellQuoted(m.File()))
		}
		next = append(next, "git checkout -b targets && git add "+strings.Join(files, " ")+" && git commit -m 'targets of the merge queue'")
		land("targets")
		return next
	}
	land("my-branch")
	return next
}

// isRemote reports whether the clone is the repository that changes land in: it has no remote.
func (p *plan) isRemote() bool { return p.Clone != "" && p.URL == p.Clone }

// here reports whether the working directory is in the clone.
func (p *plan) here() bool {
	here, err := os.Getwd()
	if err != nil {
		return true
	}
	_, below := relativeTo(p.Clone, here)
	return below
}

// pushMainline returns the command that makes the mainline on the remote: of the clone's branch of that name, else of what is
// checked out. Where the clone is the remote, it makes the branch.
func (p *plan) pushMainline(ctx context.Context) string {
	command := "git "
	if !p.here() {
		command += "-C " + shellQuoted(p.Clone) + " "
	}
	if p.isRemote() {
		return command + "branch " + shellQuoted(p.Branch)
	}
	if _, err := git(ctx, p.Clone, "rev-parse", "--verify", "--quiet", "refs/heads/"+p.Branch); err == nil {
		return command + "push origin " + shellQuoted(p.Branch)
	}
	return command + "push origin HEAD:refs/heads/" + shellQuoted(p.Branch)
}
