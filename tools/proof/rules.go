package proof

// Rule is something that safety rests on, and that a schedule can be made to leave out. Nothing in production
// can: what leaves it out stands between the production code and what it reads, writes or pushes to. A check
// that finds nothing wrong then would prove nothing.
type Rule string

// The rules of ARCHITECTURE, "Exactly once".
const (
	Terms          Rule = "terms"
	ReadToTheClaim Rule = "read-to-the-claim"
	Positions      Rule = "positions"
	WrittenStands  Rule = "written-stands"
	SentIsState    Rule = "sent-is-state"
	FailedAppend   Rule = "failed-append"
	StampsRise     Rule = "stamps-rise"
	WholeRecords   Rule = "whole-records"
	AskedNotRead   Rule = "asked-not-read"
	FirstOfAnID    Rule = "first-of-an-id"
	AdmittedOnce   Rule = "admitted-once"
	SnapshotsCount Rule = "snapshots-count"
	ForgottenByAll Rule = "forgotten-by-all"
)

// The rules of landing.
const (
	ReadBack       Rule = "read-back"
	CancelWins     Rule = "cancel-wins"
	TooLateToStop  Rule = "too-late"
	SettleFirst    Rule = "settle-first"
	OneRead        Rule = "one-read"
	Unanswered     Rule = "unanswered"
	NeverAgain     Rule = "never-again"
	ForeignInOrder Rule = "foreign-in-order"
	KnownByID      Rule = "known-by-id"
	MadeAgain      Rule = "made-again"

	FreezeBlamesNobody Rule = "freeze-blames-nobody"
	RefusalIsHeard     Rule = "refusal-is-heard"

	HeadsSwap Rule = "heads-compare-and-swap"
	HeadsBack Rule = "heads-back"
)

// The claims of the model.
const (
	M5aRequires      Rule = "M5a-requires"
	M19Land          Rule = "M19-land"
	M19Reject        Rule = "M19-reject"
	M19GreenMembers  Rule = "M19-green-members"
	M19Holds         Rule = "M19-holds"
	M19aNoResult     Rule = "M19a-no-result"
	M19aRetries      Rule = "M19a-retries"
	M19aEject        Rule = "M19a-eject"
	M20aWithdrawn    Rule = "M20a-withdrawn"
	M21GuardLands    Rule = "M21-guard-lands"
	M21GuardRejects  Rule = "M21-guard-rejects"
	M22Swap          Rule = "M22-compare-and-swap"
	M23EveryCommit   Rule = "M23-every-commit"
	M23aVerifyPushes Rule = "M23a-verify-pushes"
	M23aProveBase    Rule = "M23a-prove-base"
	M23cFoundAgain   Rule = "M23c-found-again"
	M24aByName       Rule = "M24a-by-name"
)

// Those that are there for fairness, latency and cost: what leaving one out costs is a figure.
const (
	Lease            Rule = "lease"
	EvidencePosition Rule = "evidence-position"
	GuardFirst       Rule = "guard-first"
)

// FoundWithin is how many schedules, from seed 1 on, it takes at most to find a promise broken without a rule: the
// rarest break one in about 200.
const FoundWithin = 1000

// RuleInfo says what a rule is, what schedules without it do, and what is found then.
type RuleInfo struct {
	Rule Rule
	// Says is the rule, Without what happens instead.
	Says, Without string
	// Breaks are promises of which one at least is found broken; none for a rule that is shown by a figure.
	Breaks []Count
	// Needs are troubles that are in every such schedule.
	Needs []string
}

// Rules lists what can be left out.
func Rules() []RuleInfo {
	return []RuleInfo{
		{Terms, "a record counts only under its service's last claim before it", "readers take every record, whoever wrote it",
			[]Count{Disordered, Doubled, Lost}, []string{"crashes", "zombies"}},
		{ReadToTheClaim, "an owner reads its own topic up to its claim before it writes", "it reads, and claims a little later",
			[]Count{Disordered}, []string{"crashes"}},
		{Positions, "the enumerator reads on where its last record says", "it reads on a little before that", []Count{Disordered}, []string{"crashes"}},
		{WrittenStands, "what a stage has written is its state; nothing is computed again", "a stage that starts decides again what it had decided, in another version of the code",
			[]Count{Undecided, Disordered}, []string{"crashes", "versions"}},
		{SentIsState, "a stage holds its own output from the moment it is sent", "it learns of it when it starts again", []Count{Disordered}, nil},
		{FailedAppend, "the first append that fails ends the ownership", "a stage goes on behind it", []Count{Disordered}, nil},
		{StampsRise, "stamps never run backwards", "a stamp is what the clock says", []Count{Disordered}, []string{"clocks"}},
		{WholeRecords, "a record in parts counts when all have come", "the first part counts for what it holds", []Count{Disordered}, []string{"large records"}},
		{AskedNotRead, "effects resume from what was asked and not answered", "analyzer and builder read on at a position when they start again", []Count{Undecided}, []string{"crashes"}},
		{FirstOfAnID, "the first record of an attempt stands", "a repeat counts as another attempt", []Count{WronglyRejected}, []string{"repeats", "flakes"}},
		{AdmittedOnce, "the first record of a (change, revision) stands", "a repeat is another revision", []Count{Doubled, Lost}, []string{"repeats"}},
		{SnapshotsCount, "a snapshot is kept only once all outputs in it count, and dropped if one does not", "what an instance that was replaced has kept is opened",
			[]Count{Disordered}, []string{"crashes", "zombies", "snapshots"}},
		{ForgottenByAll, "what is forgotten is forgotten by all where the log says so", "builders go on knowing it", []Count{Undecided}, []string{forgotten}},

		{ReadBack, "an intention is read back before the push", "the lander pushes without a look at what came before its intention", []Count{Lost, Doubled}, []string{"races"}},
		{CancelWins, "a cancellation or revision before LandIntended wins", "the lander does not hear of it", []Count{Lost, Doubled}, []string{"races"}},
		{TooLateToStop, "behind LandIntended a cancellation is too late", "it ends the intention", []Count{Doubled, Lost}, []string{"races"}},
		{SettleFirst, "a new lander settles every open intention first", "it does not see those of others", []Count{Lost, Doubled}, []string{"crashes", "lost answers"}},
		{OneRead, "an intention is settled on one read of the head", "whether it arrived is asked of the head as it was before", []Count{Lost, Doubled}, []string{"lost answers"}},
		{Unanswered, "a push without an answer is settled by looking", "it is taken for refused", []Count{Lost, Doubled}, []string{"lost answers"}},
		{NeverAgain, "what was given up is never pushed again", "every push is tried again later", []Count{Lost, Doubled}, []string{"races"}},
		{ForeignInOrder, "each foreign commit gets its MainlineMoved", "only the last one does", []Count{Disordered}, nil},
		{KnownByID, "a landing is recognised by its commit", "it is recognised by a trailer, which anybody can write", []Count{Lost}, []string{"races"}},
		{MadeAgain, "commits of an intention that another lander has made, in its own mirror, are made again", "they are not known",
			[]Count{Undecided}, []string{"crashes", "lost answers"}},
		{FreezeBlamesNobody, "a refusal of every push pauses landings and blames nobody", "each is taken for a refusal of the change", []Count{WronglyEjected}, []string{freezes}},
		{RefusalIsHeard, "a refused push is counted against its change", "it is taken for a push without an answer", []Count{Undecided}, []string{refusedPushes}},

		{HeadsSwap, "a branch under review is moved by compare-and-swap", "it is forced", []Count{Lost}, []string{reviewed}},
		{HeadsBack, "a branch under review is moved back before what it was moved for is given up", "it stays", []Count{Disordered}, []string{reviewed, "races"}},

		{M5aRequires, "a change lands behind what it requires", "nobody reads what is required", []Count{Unproven}, nil},
		{M19Land, "land only if every path that is not dead is green", "(c, ∅) green is enough", []Count{Overtaken}, nil},
		{M19Reject, "reject only if (c, S) is red for every S", "(c, ∅) red is enough", []Count{WronglyRejected}, nil},
		{M19GreenMembers, "a path that is dead only because a member is green counts for rejecting; behind it stands the guard, which is left out too",
			"such paths do not count", []Count{WronglyRejected}, nil},
		{M19Holds, "nothing that is held lands", "the cores and the lander do not hear of holds and pauses", []Count{Unheeded}, nil},
		{M19aNoResult, "a step that ran out of time, or could not run, says nothing against a change", "it counts as failed", []Count{WronglyRejected}, []string{"slowness"}},
		{M19aRetries, "such a step, and a failed one, is tried again", "it is not", []Count{WronglyRejected, WronglyEjected}, []string{"flakes", "slowness"}},
		{M19aEject, "a change whose retries are used up is ejected", "it waits", []Count{Undecided}, []string{"slowness"}},
		{M20aWithdrawn, "what had its effect is withdrawn", "it still counts", []Count{WronglyRejected}, []string{"flakes"}},
		{M21GuardLands, "nothing lands but what is proven of T itself", "the guard sees every version of T proven", []Count{Red, Unproven}, []string{"sabotage"}},
		{M21GuardRejects, "nobody is rejected but for a red version of T itself", "the guard believes every rejection", []Count{WronglyRejected}, nil},
		{M22Swap, "the push is a compare-and-swap", "it is forced", []Count{Lost}, []string{"races"}},
		{M23EveryCommit, "every commit is green on its own", "only the last one of a change is looked at", []Count{Red, Unproven}, nil},
		{M23aVerifyPushes, "what came past the queue is analysed and verified", "it is taken for green, as the base is", []Count{WronglyRejected}, nil},
		{M23aProveBase, "a target that is red with a change is proven green on the base before the change is rejected", "the base is taken for green",
			[]Count{WronglyRejected}, []string{oldFailures}},
		{M23cFoundAgain, "what passed on the base before a failure does not count for rejecting; it is found again", "nobody hears that it does not count", []Count{Undecided}, nil},
		{M24aByName, "a quarantine covers the targets that it names", "it covers all targets", []Count{Red, Unproven}, []string{quarantines}},

		{Lease, "a step runs under a lease that was read back", "every worker that wants to runs it", nil, nil},
		{EvidencePosition, "the lander first folds the evidence that a decision rests on", "it does not wait for it", nil, nil},
		{GuardFirst, "a refused change's build on T comes before all others", "it comes when its worth says", nil, nil},
	}
}

// Info gives what is said of a rule; ok is false if there is none of that name.
func (r Rule) Info() (info RuleInfo, ok bool) {
	for _, i := range Rules() {
		if i.Rule == r {
			return i, true
		}
	}
	return RuleInfo{}, false
}
