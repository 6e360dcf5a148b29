package view

import (
	"bytes"
	"cmp"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/decisive"
	"landfall.build/engine/lineup"
	"landfall.build/engine/pathkind"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// The values of Fault.Whose.
const (
	// WhoseYours is a failure of the change by itself, on the mainline as it stands.
	WhoseYours = "yours"
	// WhoseAhead is a failure together with changes ahead of it, or ones that landed before it, and not without.
	WhoseAhead = "ahead"
	// WhoseMainline is a failure that the mainline has without the change.
	WhoseMainline = "mainline"
	// WhoseUnknown is a failure that cannot be attributed yet, such as one on top of changes ahead before a build without them
	// has ended, or one together with changes that landed before it, where nothing was built without them and the mainline has
	// no such target; and a step that ran past its limit, or could not run.
	WhoseUnknown = "unknown"
)

// Fault is what the author of a change reads first: what failed, why, and whose fault it is. Of the targets that the change fails
// in for certain it is one that depends on no other, and of those one that needs the least of what the others need. Those are
// what speaks against the change, and what has used up its retries and is green without it.
type Fault struct {
	Target string `json:"target"`
	// Owners are those of the target, by the mainline's manifests and CODEOWNERS file.
	Owners []string `json:"owners,omitempty"`
	// Step is the command of the target's that failed.
	Step string `json:"step,omitempty"`
	// Whose is yours, ahead, mainline or unknown.
	Whose string `json:"whose"`
	// With are the changes on top of which it failed: with Whose "ahead" those without which it passes, with "yours" those that
	// landed since the commit that the change is based on, and without which the target was never built.
	With []string `json:"with,omitempty"`
	// Sentence is all of this in words, with the first of Lines.
	Sentence string `json:"sentence"`
	// Lines are the decisive ones of the output, at most 3.
	Lines []string `json:"lines"`
	// Also are other targets that failed, at most 8.
	Also []string `json:"also,omitempty"`
	// Hash and Attempt name the run, Log its complete output in the log store.
	Hash    string `json:"hash,omitempty"`
	Attempt uint32 `json:"attempt,omitempty"`
	Log     string `json:"log,omitempty"`
}

// fault returns the failure of a change, nil if no step of it is known to have failed. If the change has left the queue, it
// is the failure that it left for.
func (q *Queue) fault(c *change) *Fault {
	if c.end.state == lineup.Landed || c.end.state == lineup.Cancelled {
		return nil
	}
	against := q.redVersions(c)
	for _, red := range against {
		b := q.buildThatWants(c, red)
		v, also := q.cause(c, b, red, against)
		a := q.steps.settlingIn(v, c.end.at) // what ran once it had left is not what it left for
		if a == nil || a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			continue
		}
		f := &Fault{Target: v.target, Step: a.command, Hash: v.hash, Attempt: a.number, Log: a.log, Lines: a.lines(), Also: also}
		if b != nil {
			f.Owners = b.ownersOf(v.target)
		}
		f.Whose, f.With = q.whose(c, b, v.target, a)
		if f.Whose != WhoseAhead && f.Whose != WhoseMainline && q.malformed(c, f) {
			f.Whose, f.With = WhoseYours, nil
		}
		if a.outcome != eventsv1.StepOutcome_STEP_OUTCOME_FAILED {
			f.Whose, f.With = WhoseUnknown, nil
		}
		f.Sentence = q.faultSentence(c, f, a)
		if an := c.analysis; an != nil && an.Everything && an.Message != "" && f.Target == targets.Repository && len(f.Lines) > 0 && len(f.Lines) < decisive.Most {
			// A tool may not say which file it cannot read.
			f.Lines = append(slices.Clone(f.Lines), "the whole repository was verified: "+an.Message)
		}
		return f
	}
	return nil
}

// maxAlso is how many other targets that failed are named.
const maxAlso = 8

// redVersions returns the target versions that speak against a change, those with the fewest changes ahead first, and of these what
// the mainline does not fail in.
func (q *Queue) redVersions(c *change) []version {
	var out []version
	add := func(proof []*eventsv1.Proof) {
		for _, p := range proof {
			out = append(out, version{p.GetVersion().GetTarget(), p.GetVersion().GetHash()})
		}
	}
	if !c.pending() {
		add(c.end.reason.GetFailed())
		return out
	}
	n := q.node(c.ref())
	if n.GetGuard().GetState() == eventsv1.OutcomeState_OUTCOME_STATE_RED {
		add(n.GetGuard().GetReason().GetFailed())
	}
	var red []*eventsv1.Outcome
	for _, class := range n.GetClasses() {
		for _, o := range class.Outcomes {
			if (o.State == eventsv1.OutcomeState_OUTCOME_STATE_RED || o.State == eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED) && o.Version.GetHash() != "" {
				red = append(red, o)
			}
		}
	}
	blocked := func(o *eventsv1.Outcome) int {
		if o.State == eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(red, func(a, b *eventsv1.Outcome) int {
		return cmp.Or(cmp.Compare(membersIn(a), membersIn(b)), cmp.Compare(blocked(a), blocked(b)), bytes.Compare(a.Members, b.Members))
	})
	for _, o := range red {
		out = append(out, version{o.Version.Target, o.Version.Hash})
	}
	return out
}

// membersIn returns how many changes ahead an outcome assumes.
func membersIn(o *eventsv1.Outcome) (n int) {
	for _, b := range o.Members {
		n += bits.OnesCount8(b)
	}
	return n
}

// buildThatWants returns the newest build of a change that wants a version, nil if none is kept.
func (q *Queue) buildThatWants(c *change, v version) *build {
	mine := q.builds.ofChange[c.ref()]
	for i := len(mine) - 1; i >= 0; i-- {
		if mine[i].placeOf(v) >= 0 {
			return mine[i]
		}
	}
	return nil
}

// placeOf returns the place of a version among those that the build wants, -1 if it does not.
func (b *build) placeOf(v version) int {
	return slices.IndexFunc(b.wants(), func(w *eventsv1.TargetVersion) bool { return w.Target == v.target && w.Hash == v.hash })
}

// cause returns the version whose failure explains that of red, which may be red itself, and the other targets of the build
// that failed. Another version explains it only if it speaks against the change, too, or is certain to fail by the change.
func (q *Queue) cause(c *change, b *build, red version, against []version) (v version, also []string) {
	if b == nil {
		return red, nil
	}
	wants, mainlineRed := b.wants(), q.mainlineRed()
	failed := func(i int) bool {
		a := q.steps.settlingIn(version{wants[i].Target, wants[i].Hash}, c.end.at)
		return a != nil && a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED && !q.toleratedIn(b, a, c.end.at)
	}
	explains := func(i int) bool {
		w := version{wants[i].Target, wants[i].Hash}
		if !failed(i) {
			return false
		}
		if slices.Contains(against, w) && (q.isBlocked(c, red.target) || !q.isBlocked(c, w.target)) {
			return true
		}
		return q.isSettled(w) && !slices.Contains(mainlineRed, w.target) && (q.passesOnMainline(w.target) || c.analysis.creates(w.target))
	}
	at := b.placeOf(red)
	if needs := b.prepared.GetNeeds(); len(needs) == len(wants) {
		at = deepestFailure(needs, at, explains)
		at = simplestFailure(needs, at, func(i int) bool { return explains(i) && !slices.Contains(mainlineRed, wants[i].Target) })
	}
	at = q.installThatFailed(wants, at, explains)
	for i, w := range wants {
		if i != at && len(also) < maxAlso && w.Target != wants[at].Target && failed(i) {
			also = append(also, w.Target)
		}
	}
	return version{wants[at].Target, wants[at].Hash}, sortedUnique(also)
}

// installThatFailed returns the version of an install that explains the failure of the one at a place, or that one. The steps of a project's
// packages install first, and say the same if that fails; none of them needs the target of the install, which rests on all manifests.
func (q *Queue) installThatFailed(wants []*eventsv1.TargetVersion, at int, explains func(int) bool) int {
	lines := func(i int) []string {
		if a := q.steps.settling(version{wants[i].Target, wants[i].Hash}); a != nil {
			return a.lines()
		}
		return nil
	}
	for i, w := range wants {
		if strings.HasSuffix(w.Target, " [install]") && explains(i) && len(lines(i)) > 0 && slices.Equal(lines(i), lines(at)) {
			return i
		}
	}
	return at
}

// isSettled reports whether the policy's retries of a version that failed are used up.
func (q *Queue) isSettled(v version) bool {
	failed := uint32(0)
	for _, a := range q.steps.attempts[v] {
		if a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED && !a.forgotten && a.number > q.steps.withdrawn.upTo[v] {
			failed++
		}
	}
	return failed > q.known.Settings().GetSteps().GetFailedRetries()
}

// deepestFailure walks down from a version to one that explains its failure and needs none that does.
func deepestFailure(needs []*eventsv1.VersionNeeds, at int, explains func(int) bool) int {
	seen := map[int]bool{at: true}
	for pending := []int{at}; len(pending) > 0; {
		i := pending[0]
		pending = pending[1:]
		for _, n := range needs[i].GetVersions() {
			below := int(n)
			if below >= len(needs) || seen[below] {
				continue
			}
			seen[below] = true
			pending = append(pending, below)
			if explains(below) {
				at, pending = below, []int{below} // the walk goes on from here
				break
			}
		}
	}
	return at
}

// simplestFailure returns the version that needs the smallest part of what the one at a place needs, of those that explain its
// failure, or that one. It prefers the tests of a package to those of a package that imports it.
func simplestFailure(needs []*eventsv1.VersionNeeds, at int, explains func(int) bool) int {
	least := reached(needs, at)
	for i := range needs {
		if i == at || !explains(i) {
			continue
		}
		if part := reached(needs, i); len(part) > 0 && len(part) < len(least) && within(part, least) {
			at, least = i, part
		}
	}
	return at
}

// reached returns the places of the versions that one needs, directly or through others.
func reached(needs []*eventsv1.VersionNeeds, at int) map[int]bool {
	out := map[int]bool{}
	for pending := []int{at}; len(pending) > 0; {
		i := pending[0]
		pending = pending[1:]
		for _, n := range needs[i].GetVersions() {
			if below := int(n); below < len(needs) && below != at && !out[below] {
				out[below] = true
				pending = append(pending, below)
			}
		}
	}
	return out
}

// within reports whether every place of a part is in the whole.
func within(part, whole map[int]bool) bool {
	for i := range part {
		if !whole[i] {
			return false
		}
	}
	return true
}

// lines returns the decisive lines of an attempt. Records of older builders have only the end of its output.
func (a *attempt) lines() []string {
	if len(a.decisive) > 0 {
		return a.decisive
	}
	if lines := decisive.Lines([]byte(text(a.tail)), decisive.Tree{}); lines != nil {
		return lines
	}
	return []string{}
}

// whose returns whose fault it is that a target fails in a build of a change, and with which others.
func (q *Queue) whose(c *change, b *build, target string, a *attempt) (whose string, with []string) {
	if q.isBlocked(c, target) {
		if q.redOnMainline(target, a) != "" {
			return WhoseMainline, nil
		}
		if b != nil && len(holding([]string{target}, q.mainlineRed())) == 0 && !q.unverifiable(c.admission.Change) {
			return WhoseUnknown, q.notLanded(b.assumed())
		}
		return WhoseUnknown, nil
	}
	if b == nil {
		return WhoseYours, nil
	}
	if with = q.passesWithout(c, b, target); len(with) > 0 {
		return WhoseAhead, with
	}
	ahead := q.notLanded(b.assumed())
	if len(ahead) == 0 || !c.pending() {
		with = q.uncompared(c, target)
		if q.passesOnMainline(target) || len(with) == 0 && (!c.pending() || c.analysis.creates(target)) {
			return WhoseYours, with
		}
		return WhoseUnknown, with
	}
	for _, id := range ahead {
		if q.failsIn(id, target) {
			return WhoseAhead, []string{id}
		}
	}
	return WhoseUnknown, ahead
}

// notLanded returns those of the changes that have not landed.
func (q *Queue) notLanded(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return q.lineup.RequirementState(id) == lineup.Landed })
}

// isBlocked reports whether red in a target of a change tells nothing about the change (M23a).
func (q *Queue) isBlocked(c *change, target string) bool {
	return c.pending() && slices.Contains(blockedTargets(q.node(c.ref())), target)
}

// redOnMainline returns the red target of the mainline that an attempt at a target failed in, "" if none is known to be. What
// verifies the whole repository are the commands of all its targets, each named for its own.
func (q *Queue) redOnMainline(target string, a *attempt) string {
	for _, red := range holding([]string{target}, q.mainlineRed()) {
		step, of := strings.CutPrefix(a.command, red+" ")
		if red == target || target == targets.Repository && of && !strings.HasPrefix(step, "[") { // unlike "NAME [test] step"
			return red
		}
	}
	return ""
}

// failsIn reports whether a target fails in a build of a change that assumes no other change.
func (q *Queue) failsIn(id, target string) bool {
	c := q.changes[id]
	return c != nil && q.failsAlone(c.ref(), target)
}

// failsAlone is failsIn for a revision.
func (q *Queue) failsAlone(of ref, target string) bool {
	return slices.ContainsFunc(q.builds.ofChange[of], func(b *build) bool {
		return len(b.fact.Assumed) == 0 && q.outcomeIn(b, target) == eventsv1.StepOutcome_STEP_OUTCOME_FAILED
	})
}

// isRedWithout reports whether a build may be red in a target whatever its own change does: a change that it assumes fails in it by
// itself, or has left the queue for it.
func (q *Queue) isRedWithout(b *build, target string) bool {
	return slices.ContainsFunc(b.assumedRefs(), func(r *eventsv1.ChangeRef) bool {
		k := q.keptAt(refOf(r))
		return q.failsAlone(refOf(r), target) || k != nil && slices.ContainsFunc(k.end.reason.GetFailed(), func(p *eventsv1.Proof) bool {
			return isHeldTo(target, p.GetVersion().GetTarget())
		})
	})
}

// passedIn reports whether a target passed in a build, by itself or with the whole repository.
func (q *Queue) passedIn(b *build, target string) bool {
	const passed = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	return q.outcomeIn(b, target) == passed || q.outcomeIn(b, targets.Repository) == passed
}

// outcomeIn returns how the steps of a target ended in a build, unspecified if they did not.
func (q *Queue) outcomeIn(b *build, target string) eventsv1.StepOutcome {
	for _, w := range b.wants() {
		if w.Target == target && w.Hash != "" {
			if a := q.steps.settling(version{w.Target, w.Hash}); a != nil {
				return a.outcome
			}
		}
	}
	return eventsv1.StepOutcome_STEP_OUTCOME_UNSPECIFIED
}

// passesWithout compares a red build with builds of the same change in which the target passed. It returns the changes that
// the red one has and the green one lacks: the fewest of all comparisons.
func (q *Queue) passesWithout(c *change, red *build, target string) (fewest []string) {
	for _, green := range q.builds.ofChange[c.ref()] {
		if green == red || !q.passedIn(green, target) {
			continue
		}
		with := red.assumed()
		without := green.assumed()
		alters := func(k *change) bool { return k.alters(target) }
		if later, known := q.landedBetween(green.fact.Base, red.fact.Base, alters); known {
			with = append(later, with...)
		} else if earlier, known := q.landedBetween(red.fact.Base, green.fact.Base, alters); known {
			without = append(without, earlier...)
		} else {
			continue
		}
		with = slices.DeleteFunc(with, func(id string) bool { return slices.Contains(without, id) || id == c.admission.Change })
		if len(with) > 0 && (fewest == nil || len(with) < len(fewest)) {
			fewest = with
		}
	}
	return fewest
}

// uncompared returns the changes that may be why a target fails with a change, and that no build of the change lacks in which it
// failed: the fewest of all these builds. They landed after the commit that the change is based on, and altered the target, or
// what the change has a target depend on. Builds that are red without the change compare nothing.
func (q *Queue) uncompared(c *change, target string) (fewest []string) {
	found := false
	for _, red := range q.builds.ofChange[c.ref()] {
		if q.outcomeIn(red, target) != eventsv1.StepOutcome_STEP_OUTCOME_FAILED || q.isRedWithout(red, target) {
			continue
		}
		may := func(k *change) bool {
			return !slices.Contains(c.admission.Requires, k.admission.Change) && (target == targets.Repository || !k.analysis.isUncovered()) && (k.alters(target) || slices.ContainsFunc(c.analysis.dependsOn(), k.alters))
		}
		with := q.landedSinceBase(c, red, may)
		for _, id := range red.assumed() {
			if k := q.changes[id]; k != nil && may(k) && !slices.Contains(with, id) {
				with = append(with, id)
			}
		}
		if !found || len(with) < len(fewest) {
			found, fewest = true, with
		}
	}
	return fewest
}

// landedSinceBase lists the changes for which may holds that landed after the commit that a change is based on and before a build
// of it. If the landings that are kept do not lead there, it lists those since the change was admitted.
func (q *Queue) landedSinceBase(c *change, b *build, may func(*change) bool) []string {
	if commits := c.admission.LandingCommits; len(commits) > 0 {
		if ids, known := q.landedBetween(commits[0].Base, b.fact.Base, may); known {
			return ids
		}
	}
	ids, _ := q.landedBetween(c.admission.Mainline, b.fact.Base, may)
	return ids
}

// malformedText is what tools say of a file that cannot be parsed, whatever others hold.
var malformedText = regexp.MustCompile(`(?i)syntax ?error|invalid syntax|unterminated|unclosed|unexpected (?:token|end|eof|indent)|non-declaration statement|expected ['"\x60]?[;:,)\]}]|mismatched (?:closing )?delimiter`)

// malformed reports whether the first line of a failure is about a file that cannot be parsed, and that the change touches and
// none of the others with which it failed does.
func (q *Queue) malformed(c *change, f *Fault) bool {
	if len(f.Lines) == 0 {
		return false
	}
	file, text, _ := strings.Cut(f.Lines[0], ":")
	return c.analysis.touches(file) && malformedText.MatchString(text) && !slices.ContainsFunc(f.With, func(id string) bool {
		k := q.changes[id]
		return k == nil || k.analysis == nil || k.analysis.touches(file)
	})
}

// touches reports whether the analysed change is known to add, alter or remove a file.
func (a *Analysis) touches(file string) bool { return a != nil && slices.Contains(a.does.files, file) }

// isUncovered reports whether no target covers any of the files of the analysed change.
func (a *Analysis) isUncovered() bool {
	return a != nil && a.Uncovered != nil && len(a.does.files) > 0 && len(a.does.files) == int(a.FilesChanged) && a.Uncovered.FilesTotal+a.Uncovered.IgnoredTotal == len(a.does.files)
}

// dependsOn returns what the analysed change has targets depend on.
func (a *Analysis) dependsOn() []string {
	if a == nil {
		return nil
	}
	return a.needs
}

// creates reports whether the analysed change adds a target that its base lacks.
func (a *Analysis) creates(target string) bool {
	return a != nil && slices.Contains(a.does.created, target)
}

// leavesSources reports whether all files of the analysed change are known, and each is a build file, such as a manifest, or one
// that no target covers.
func (a *Analysis) leavesSources() bool {
	var uncovered []string
	if u := a.Uncovered; u != nil {
		uncovered = slices.Concat(u.Files, u.Ignored)
	}
	return len(a.does.files) > 0 && len(a.does.files) == int(a.FilesChanged) && !slices.ContainsFunc(a.does.files, func(path string) bool {
		return pathkind.Of(path) != pathkind.Build && !slices.Contains(uncovered, path)
	})
}

// alters reports whether a change landed and altered or deleted a target. The whole repository is altered by every change.
func (c *change) alters(target string) bool {
	f := c.end.landed
	return f != nil && (slices.Contains(f.Deleted, target) ||
		slices.ContainsFunc(f.Proof, func(p *eventsv1.Proof) bool { return isHeldTo(target, p.GetVersion().GetTarget()) }))
}

// passesOnMainline reports whether a target is known to have passed on the mainline: by itself, or as something landed.
func (q *Queue) passesOnMainline(target string) bool {
	return len(q.verifiedByLandings([]string{target})) > 0 ||
		slices.ContainsFunc(q.builds.ofChange[ref{}], func(b *build) bool { return q.outcomeIn(b, target) == eventsv1.StepOutcome_STEP_OUTCOME_PASSED })
}

// landedBetween lists the changes that landed between two heads of the mainline, and for which a condition holds. known is false
// if the landings that are kept do not lead from the first to the second.
func (q *Queue) landedBetween(from, to string, holds func(*change) bool) (ids []string, known bool) {
	if from == to {
		return nil, true
	}
	const most = 256
	heads := map[string]*change{}
	for i := len(q.finished) - 1; i >= 0 && len(heads) < most; i-- {
		if c := q.stillFinished(q.finished[i]); c != nil && c.end.landed != nil && len(c.end.landed.Commits) > 0 {
			heads[c.end.landed.Base] = c
		}
	}
	for range most {
		c := heads[from]
		if c == nil {
			return nil, false
		}
		if holds(c) {
			ids = append(ids, c.admission.Change)
		}
		if from = last(c.end.landed.Commits); from == to {
			return ids, true
		}
	}
	return nil, false
}

// took are durations in the output of tools, which differ from run to run.
var took = regexp.MustCompile(`\b\d+(\.\d+)? ?(ns|µs|us|ms|s|seconds)\b`)

// faultSentence puts a failure into words, with the first decisive line.
func (q *Queue) faultSentence(c *change, f *Fault, a *attempt) string {
	text := ""
	switch f.Whose {
	case WhoseYours:
		text = "your change breaks " + f.Target
		if a := c.analysis; a.creates(f.Target) {
			text = f.Target + " is new with your change, and fails"
			if a.leavesSources() {
				text += " with its sources as the mainline has them"
			}
		}
	case WhoseMainline:
		red := q.redOnMainline(f.Target, a)
		at, passedBefore := q.passedBefore(red)
		text = q.brokenBy(red) + " broke " + red + " on the mainline"
		switch {
		case slices.Contains(q.redBeforeQueue(), red):
			text = red + " has been red on the mainline since before the queue"
		case passedBefore:
			text = red + " passed on the mainline at " + at.Format(time.DateTime) + " UTC, and fails there now"
		case slices.Contains(q.redUnproven(), red) && len(q.verifiedByLandings([]string{red})) > 0:
			text = red + " passed on the mainline when " + q.verifiedByLandings([]string{red})[0].change + " landed, and fails there now"
		case slices.Contains(q.redUnproven(), red) && len(q.landedQuarantined([]string{red})) > 0:
			text = red + " is red on the mainline, where " + q.landedQuarantined([]string{red})[0].change + " landed while it was quarantined"
		case slices.Contains(q.redUnproven(), red):
			text = red + " is red on the mainline, and nothing proves that it was green there"
		}
	case WhoseAhead:
		landed := slices.ContainsFunc(f.With, func(id string) bool { return q.lineup.RequirementState(id) != lineup.Pending })
		with, where := f.With, verb(len(f.With), "which is", "which are")+" ahead of it"
		if landed {
			with, where = newestFirst(with), "which landed before it"
		}
		text = "your change breaks " + f.Target + " only together with " + names(with) + ", " + where
		if len(f.With) == 1 && !landed && q.failsIn(f.With[0], f.Target) {
			text = f.Target + " fails in " + f.With[0] + ", which is ahead of your change, by itself"
		}
	default:
		switch {
		case a.outcome != eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
			text = f.Target + " " + outcomeText(a.outcome) + "; that blames nobody"
		case len(f.With) > 0 && !slices.ContainsFunc(f.With, func(id string) bool { return q.lineup.RequirementState(id) != lineup.Landed }):
			text = f.Target + " fails on top of " + names(newestFirst(f.With)) + ", which landed before it; it was not built without " + verb(len(f.With), "it", "them")
			if c.analysis.creates(f.Target) {
				text = f.Target + " is new with your change, and" + strings.TrimPrefix(text, f.Target)
			}
		case len(f.With) > 0:
			text = f.Target + " fails on top of " + names(f.With) + "; whether without is not known yet"
		default:
			text = f.Target + " fails; " + q.unknownBlock(c, f.Target)
		}
	}
	if known := q.knownFlake(f.Target); known != "" && f.Whose != WhoseMainline {
		text += " (" + known + "; it may have failed by chance)"
	}
	step := a.shown()
	step.Lines = f.Lines
	why := step.why()
	if f.Whose == WhoseMainline {
		// It may fail by itself, too, which cannot be told while the mainline is red.
		there := q.mainlineLines(q.redOnMainline(f.Target, a))
		if alone := linesBeside(there, append([]string{why}, f.Lines...)); len(there) > 0 && len(alone) > 0 {
			return text + ", and your change may break it too: " + strings.TrimRight(there[0], ".") + " (with your change: " + strings.TrimRight(alone[0], ".") + ")"
		}
		text += ": not your change"
	}
	if why != "" {
		text += ": " + strings.TrimRight(why, ".")
	}
	if f.Whose == WhoseYours && len(f.With) > 0 {
		text += " (not built without " + names(newestFirst(f.With)) + ", which landed meanwhile)"
	}
	return text
}

// linesBeside returns the lines that are not among others, whatever durations they have.
func linesBeside(others, lines []string) []string {
	timeless := func(line string) string { return took.ReplaceAllString(line, "") }
	return slices.DeleteFunc(lines, func(line string) bool {
		return line == "" || slices.ContainsFunc(others, func(other string) bool { return timeless(other) == timeless(line) })
	})
}

// newestFirst returns changes that have landed with the last one first: it is the likeliest to be at fault.
func newestFirst(landed []string) []string {
	out := slices.Clone(landed)
	slices.Reverse(out)
	return out
}

// mainlineLines returns the decisive lines of the run that made a target red on the mainline, none if that is not kept.
func (q *Queue) mainlineLines(target string) []string {
	for _, v := range q.redVersionsOfMainline() {
		if a := q.steps.settling(v); v.target == target && a != nil && a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED {
			return a.lines()
		}
	}
	return nil
}

// unknownBlock says why it is not known whether a target that fails with a pending change does so without it.
func (q *Queue) unknownBlock(c *change, target string) string {
	if red := holding([]string{target}, q.mainlineRed()); len(red) > 0 {
		return "whether without your change too is not known while the mainline is red in " + names(red)
	}
	if id := c.admission.Change; q.unverifiable(id) {
		said := "on the mainline it could not be verified"
		if runs := q.fruitless([]string{target}); len(runs) > 0 {
			said = "whether without your change too is not known, since " + runs[0].version.target + " " + q.onMainlineText(runs[0])
		}
		return said + ", and `landfall retry " + id + "` tries again there"
	}
	if !q.isBlocked(c, target) {
		return "whether it does on the mainline too is verified before your change is rejected"
	}
	return "whether it does on the mainline too is being verified"
}
