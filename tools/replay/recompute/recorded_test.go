package recompute_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/tools/replay/recompute"
	"landfall.build/tools/replay/replaytest"
)

const recordedFolder = "testdata/recorded"

// recordings reads all files once.
func recordings(t testing.TB) (logs []replaytest.Recording) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(recordedFolder, "*.bz2"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded logs in %s: %v", recordedFolder, err)
	}
	for _, f := range files {
		logs = append(logs, replaytest.ReadRecordings(t, f)...)
	}
	return logs
}

// TestEveryRecordOfTheRecordedLogsIsWhatTheCoresSay: the logs were written by the code of an earlier commit. Whatever was
// moved or rewritten since, it says the same, byte for byte.
func TestEveryRecordOfTheRecordedLogsIsWhatTheCoresSay(t *testing.T) {
	sums := map[string]recompute.Service{}
	records, waiting, durations, chances, estimates := 0, 0, 0, 0, 0
	for _, l := range recordings(t) {
		records += len(l.Records)
		r := verify(t, l.Open(t), recompute.Options{AllVersions: true, Kept: recordedRejections + recordedDurations + recordedChances + recordedEstimates + 1})
		for _, s := range r.Services {
			for _, d := range s.Differences {
				switch {
				case waits(d):
					waiting++
					continue
				case hasOtherDurations(d):
					durations++
					continue
				case hasOtherChances(d):
					chances++
					continue
				case hasOtherEstimates(d):
					estimates++
					continue
				}
				t.Errorf("%s: %v", l.Name, &d)
			}
			if int64(len(s.Differences)) != s.Different+s.Missing {
				t.Errorf("%s: %s: %d records are not what this code says, and %d are missing", l.Name, s.Service, s.Different, s.Missing)
			}
			sum := sums[s.Service]
			sum.Compared += s.Compared
			sum.Identical += s.Identical
			sum.Silent += s.Silent
			sum.Given += s.Given
			sum.NotCounted += s.NotCounted
			sums[s.Service] = sum
		}
	}
	t.Logf("%d records", records)
	if estimates != recordedEstimates {
		t.Errorf("%d priorities have other estimates than this code makes, and there were %d", estimates, recordedEstimates)
	}
	if waiting != recordedRejections {
		t.Errorf("%d records have a rejection that this code does not decide yet, and there were %d", waiting, recordedRejections)
	}
	if durations != recordedDurations {
		t.Errorf("%d profiles have other durations than this code predicts, and there were %d", durations, recordedDurations)
	}
	if chances != recordedChances {
		t.Errorf("%d profiles have other chances than this code predicts, and there were %d", chances, recordedChances)
	}
	for _, service := range slices.Sorted(maps.Keys(sums)) {
		s := sums[service]
		got := recordedSums{s.Identical, s.Silent, s.Given, s.NotCounted}
		t.Logf("%-12s %5d compared, %5d identical, %5d silences, %4d given, %4d not counted", service, s.Compared, s.Identical, s.Silent, s.Given, s.NotCounted)
		if got != recorded[service] {
			t.Errorf("%s: %+v, and there were %+v: something is compared no more, or does not count any more", service, got, recorded[service])
		}
	}
}

// recordedRejections is how many records have a rejection that waits since for the changes ahead that could mend it (decision 0100).
const recordedRejections = 12

// waits reports whether a decision differs from the computed one by further rejections, and in which builds run, and by nothing else.
func waits(d recompute.Difference) bool {
	written, is := d.Written.(*eventsv1.Decision)
	if !is {
		return false
	}
	computed, _ := d.Computed.(*eventsv1.Decision)
	rejected, others := verdictsOf(written)
	rejectedStill, othersStill := verdictsOf(computed)
	return len(rejectedStill) < len(rejected) && slices.Equal(others, othersStill) &&
		!slices.ContainsFunc(rejectedStill, func(r string) bool { return !slices.Contains(rejected, r) })
}

// recordedDurations is how many profiles predict another duration since targets that never ran, beside such that did, take what the queue's steps took last
// (M32). The ranking is computed from the profiles as they were written.
const recordedDurations = 372

// hasOtherDurations reports whether a profile differs from the computed one in the durations of changes, and in which it predicts again
// for that, and in nothing else. The chances of a change of both are the same.
func hasOtherDurations(d recompute.Difference) bool {
	written, is := d.Written.(*eventsv1.Profile)
	computed, also := d.Computed.(*eventsv1.Profile)
	if !is || !also {
		return false
	}
	success := map[string]float64{}
	for _, p := range written.Predictions {
		success[p.Change.String()] = p.Success
	}
	for _, p := range computed.Predictions {
		if before, both := success[p.Change.String()]; both && before != p.Success {
			return false
		}
	}
	written, computed = proto.CloneOf(written), proto.CloneOf(computed)
	written.Predictions, computed.Predictions = nil, nil
	return proto.Equal(written, computed)
}

// recordedChances is how many profiles predict p or r otherwise since a failed build no longer moves r with a member that it did not hold:
// 16 beside one that predicts other durations too; and since a member of one that has left keeps the prior of r (M10): 11.
const recordedChances = 27

// hasOtherChances reports whether a profile differs from the computed one in predictions, of changes or of pairs, and in nothing else.
func hasOtherChances(d recompute.Difference) bool {
	written, is := d.Written.(*eventsv1.Profile)
	computed, also := d.Computed.(*eventsv1.Profile)
	if !is || !also {
		return false
	}
	written, computed = proto.CloneOf(written), proto.CloneOf(computed)
	for _, p := range []*eventsv1.Profile{written, computed} {
		p.Predictions, p.Pairs = nil, nil
	}
	return proto.Equal(written, computed)
}

// recordedEstimates is how many priorities estimate a change otherwise: since it waits for one that decides its fate, though both of its
// paths have an outcome; since workers share the steps of all builds; and since what is late is expected to take longer (decision 0122).
const recordedEstimates = 229

// hasOtherEstimates reports whether a priority differs from the computed one in when changes are decided, and in nothing else: what is built,
// and in which order, does not rest on it. How likely a change of both lands is the same.
func hasOtherEstimates(d recompute.Difference) bool {
	written, is := d.Written.(*eventsv1.Priority)
	computed, also := d.Computed.(*eventsv1.Priority)
	if !is || !also {
		return false
	}
	lands := map[string]float64{}
	for _, e := range written.GetEstimates().GetMoved() {
		lands[e.Change.String()] = e.Lands
	}
	for _, e := range computed.GetEstimates().GetMoved() {
		if before, both := lands[e.Change.String()]; both && before != e.Lands {
			return false
		}
	}
	written, computed = proto.CloneOf(written), proto.CloneOf(computed)
	written.Estimates, computed.Estimates = nil, nil
	return proto.Equal(written, computed)
}

// verdictsOf returns what a decision says of changes: rejections, and all else.
func verdictsOf(d *eventsv1.Decision) (rejections, others []string) {
	for _, i := range d.GetItems() {
		switch {
		case i.GetRejectDecided() != nil:
			rejections = append(rejections, i.String())
		case i.GetBuildScheduled() == nil && i.GetBuildAborted() == nil && i.GetBuildRevalued() == nil:
			others = append(others, i.String())
		}
	}
	return rejections, others
}

type recordedSums struct{ identical, silences, given, notCounted int64 }

// recorded is what a verification by the code that wrote the logs found, without the records above.
var recorded = map[string]recordedSums{
	events.ServiceEnumerator:  {identical: 4915, notCounted: 8},
	events.ServiceProfiler:    {identical: 3245, silences: 1270, notCounted: 5},
	events.ServicePrioritizer: {identical: 3415, notCounted: 4},
	events.ServiceSelector:    {identical: 1522, silences: 2059, notCounted: 2},
	events.ServiceLander:      {identical: 1940, given: 310, notCounted: 45},
}

const leastRecords = 20_000

// unrecorded are the kinds that came after the logs were recorded.
var unrecorded = []string{
	"field Actor.client",
	"field Actor.issuer",
	"field Actor.name",
	"field Actor.role",
	"field Actor.subject",
	"field Actor.token",
	"field Admission.actor",
	"field Admission.place",
	"field Admission.trace",
	"field Affected.created",
	"field Affected.uncovered",
	"field AuthorQuota.steps",
	"field AuthorQuota.who",
	"field BuildPrepared.claims",
	"field BuildPrepared.groups",
	"field BuildPrepared.needs",
	"field BuildPrepared.owned",
	"field BuildRevalued.build",
	"field BuildRevalued.value",
	"field BuildScheduled.idle",
	"field ChangeCancelled.actor",
	"field ChangeHeld.actor",
	"field ChangeLanded.quarantined",
	"field ChangeMoved.actor",
	"field ChangeOutcome.author",
	"field ChangeOutcome.change",
	"field ChangeOutcome.commits",
	"field ChangeOutcome.head",
	"field ChangeOutcome.queue",
	"field ChangeOutcome.reason",
	"field ChangeOutcome.request_id",
	"field ChangeOutcome.revision",
	"field ChangeOutcome.sequence",
	"field ChangeOutcome.state",
	"field ChangeOutcome.subject",
	"field ChangeOutcome.time",
	"field ChangeOutcome.title",
	"field ChangeOutcome.uri",
	"field ChangeOutcome.who",
	"field ChangeReleased.actor",
	"field ChangeRetried.actor",
	"field ChangeRetried.change",
	"field ChangeRetried.failed",
	"field ChangeRetried.stamp_us",
	"field ChangeRetried.who",
	"field ChangeRetried.why",
	"field DeadLetter.advice",
	"field DeadLetter.headers",
	"field DeadLetter.key",
	"field DeadLetter.request_id",
	"field DeadLetterSent.actor",
	"field DeadLetterSent.offset",
	"field DeadLetterSent.partition",
	"field DeadLetterSent.stamp_us",
	"field DeadLetterSent.topic",
	"field DeadLetterSent.who",
	"field DeadLetterSent.why",
	"field DecisionItem.build_revalued",
	"field Entry.review",
	"field Fact.change_retried",
	"field Fact.landings_paused",
	"field Fact.landings_resumed",
	"field Fact.mainline_surveyed",
	"field Fact.quarantine_ended",
	"field Fact.target_quarantined",
	"field GatewayKey.instance",
	"field GatewayKey.key",
	"field GatewayKey.public",
	"field GatewayKey.stamp_us",
	"field GraphDelta.more",
	"field GraphDelta.survey",
	"field HostNoticed.commit",
	"field HostNoticed.delivery",
	"field HostNoticed.event",
	"field HostNoticed.host",
	"field HostNoticed.number",
	"field HostNoticed.queue",
	"field HostNoticed.stamp_us",
	"field HostedChange.asked_by",
	"field HostedChange.asker",
	"field HostedChange.change",
	"field HostedChange.comment",
	"field HostedChange.comment_hash",
	"field HostedChange.handled",
	"field HostedChange.head",
	"field HostedChange.host",
	"field HostedChange.note",
	"field HostedChange.number",
	"field HostedChange.over",
	"field HostedChange.queue",
	"field HostedChange.request_id",
	"field HostedChange.revision",
	"field HostedChange.shown",
	"field HostedChange.stamp_us",
	"field HostedChange.updated_us",
	"field HostedChange.withheld",
	"field LandIntended.heads",
	"field LandIntended.quarantined",
	"field LandRequest.actor",
	"field LandRequest.signature",
	"field LandRequest.signed_by",
	"field LandVoid.concern",
	"field LandingsPaused.message",
	"field LandingsPaused.since_us",
	"field LandingsPaused.stamp_us",
	"field LandingsResumed.stamp_us",
	"field LeasedVersion.attempt",
	"field LeasedVersion.hash",
	"field LeasedVersion.target",
	"field Mainline.refused_by_remote",
	"field MainlineSurveyed.again",
	"field MainlineSurveyed.commit",
	"field MainlineSurveyed.message",
	"field MainlineSurveyed.reading",
	"field MainlineSurveyed.targets",
	"field MainlineSurveyed.whole",
	"field ModelPromoted.actor",
	"field ModelRolledBack.actor",
	"field Node.author",
	"field Node.inherited",
	"field Node.urgent",
	"field OutcomeReason.class",
	"field OutcomeReason.log",
	"field OutcomeReason.now",
	"field OutcomeReason.other",
	"field OutcomeReason.step",
	"field OutcomeReason.target",
	"field OutcomeReason.text",
	"field OutcomeReason.whose",
	"field OwnedVersions.owners",
	"field OwnedVersions.versions",
	"field Proof.quarantined",
	"field Proof.step",
	"field Proof.tests",
	"field Proof.untested",
	"field QuarantineEnded.actor",
	"field QuarantineEnded.stamp_us",
	"field QuarantineEnded.target",
	"field QuarantineEnded.who",
	"field QuarantineEnded.why",
	"field QueuePaused.actor",
	"field QueueResumed.actor",
	"field QueueSettings.pool",
	"field QueueSettings.pool_workers",
	"field QueueSettings.prove_when_needed",
	"field QueueSettings.quotas",
	"field Quotas.author",
	"field Quotas.authors",
	"field Quotas.queue",
	"field Quotas.teams",
	"field RecordHeader.key",
	"field RecordHeader.value",
	"field Refused.base_outdated",
	"field Refused.base_unproven",
	"field RequestPlace.offset",
	"field RequestPlace.partition",
	"field RequestRefused.actor",
	"field RequestRefused.place",
	"field RequestRefused.state",
	"field ResourceAmount.amount",
	"field ResourceAmount.name",
	"field Review.branch",
	"field Review.shown",
	"field ReviewHead.from",
	"field ReviewHead.review",
	"field ReviewHead.to",
	"field StepClaims.exclusive",
	"field StepClaims.labels",
	"field StepClaims.resources",
	"field StepClaims.version",
	"field StepFinished.decisive",
	"field StepFinished.group",
	"field StepFinished.outputs",
	"field StepFinished.outputs_given",
	"field StepFinished.outputs_made",
	"field StepFinished.tests",
	"field StepFinished.unreported",
	"field StepFinished.untested",
	"field StepGroup.ordered",
	"field StepGroup.versions",
	"field StepLeased.exclusive",
	"field StepLeased.filling",
	"field StepLeased.group",
	"field StepLeased.quotas",
	"field StepOutputs.bytes",
	"field StepOutputs.files",
	"field StepOutputs.kept",
	"field StepQuota.kind",
	"field StepQuota.limit",
	"field StepQuota.name",
	"field Survey.targets",
	"field Survey.unproven",
	"field TargetQuarantined.actor",
	"field TargetQuarantined.source",
	"field TargetQuarantined.stamp_us",
	"field TargetQuarantined.target",
	"field TargetQuarantined.until_us",
	"field TargetQuarantined.who",
	"field TargetQuarantined.why",
	"field TeamQuota.name",
	"field TeamQuota.steps",
	"field TeamQuota.who",
	"field TokenCreated.actor",
	"field TokenCreated.expires_us",
	"field TokenCreated.hash",
	"field TokenCreated.name",
	"field TokenCreated.queues",
	"field TokenCreated.role",
	"field TokenCreated.stamp_us",
	"field TokenCreated.token",
	"field TokenCreated.verbs",
	"field TokenRevoked.actor",
	"field TokenRevoked.stamp_us",
	"field TokenRevoked.token",
	"field TokenRevoked.why",
	"field TokenUsed.stamp_us",
	"field TokenUsed.token",
	"field Uncovered.files",
	"field Uncovered.files_total",
	"field Uncovered.ignored",
	"field Uncovered.ignored_total",
	"field Uncovered.policy",
	"field VersionNeeds.given",
	"field VersionNeeds.versions",
	"field WebhookAsked.actor",
	"field WebhookAsked.endpoint",
	"field WebhookAsked.id",
	"field WebhookAsked.outcome",
	"field WebhookAsked.stamp_us",
	"field WebhookAsked.who",
	"field WebhookDelivery.asked",
	"field WebhookDelivery.attempt",
	"field WebhookDelivery.endpoint",
	"field WebhookDelivery.first_us",
	"field WebhookDelivery.id",
	"field WebhookDelivery.message",
	"field WebhookDelivery.next_us",
	"field WebhookDelivery.position",
	"field WebhookDelivery.queue",
	"field WebhookDelivery.sequence",
	"field WebhookDelivery.settled_below",
	"field WebhookDelivery.stamp_us",
	"field WebhookDelivery.state",
	"field WebhookDelivery.status",
	"field WebhookDelivery.subject",
	"field WebhookFollowed.endpoint",
	"field WebhookFollowed.from",
	"field WebhookFollowed.stamp_us",
	"field WebhookLeft.endpoint",
	"field WebhookLeft.stamp_us",
	"message Actor",
	"message AuthorQuota",
	"message BuildRevalued",
	"message ChangeOutcome",
	"message ChangeRetried",
	"message DeadLetterSent",
	"message GatewayKey",
	"message HostNoticed",
	"message HostedChange",
	"message LandingsPaused",
	"message LandingsResumed",
	"message LeasedVersion",
	"message MainlineSurveyed",
	"message OutcomeReason",
	"message OwnedVersions",
	"message QuarantineEnded",
	"message Quotas",
	"message RecordHeader",
	"message RequestPlace",
	"message ResourceAmount",
	"message Review",
	"message ReviewHead",
	"message StepClaims",
	"message StepGroup",
	"message StepOutputs",
	"message StepQuota",
	"message Survey",
	"message TargetQuarantined",
	"message TeamQuota",
	"message TokenCreated",
	"message TokenRevoked",
	"message TokenUsed",
	"message Uncovered",
	"message VersionNeeds",
	"message WebhookAsked",
	"message WebhookDelivery",
	"message WebhookFollowed",
	"message WebhookLeft",
	"value BUILD_STATE_OUTDATED",
	"value DELIVERY_STATE_DELIVERED",
	"value DELIVERY_STATE_FAILED",
	"value DELIVERY_STATE_GIVEN_UP",
	"value HOST_CLASS_GITEA",
	"value QUARANTINE_SOURCE_CONFIGURATION",
	"value QUARANTINE_SOURCE_OPERATOR",
	"value QUARANTINE_SOURCE_RATE",
	"value QUOTA_KIND_AUTHOR",
	"value QUOTA_KIND_QUEUE",
	"value QUOTA_KIND_TEAM",
	"value REFUSAL_CONCERN_CHANGE",
	"value REFUSAL_CONCERN_QUEUE",
}

// recordedKinds are the kinds beside those of the schema.
var recordedKinds = []string{
	"claim of another owner: enumerator",
	"claim of another owner: lander",
	"claim of another owner: prioritizer",
	"claim of another owner: profiler",
	"claim of another owner: selector",
	"dead letter of enumerator",
	"dead letter of gateway",
	"dead letter of profiler",
	"in landfall.builds: BuildPrepared",
	"in landfall.builds: EvidenceForgotten",
	"in landfall.builds: StepFinished",
	"in landfall.builds: StepLeased",
	"in landfall.changes: ChangeAdmitted",
	"in landfall.changes: ChangeAnalyzed",
	"in landfall.changes: ChangeCancelled",
	"in landfall.changes: ChangeEjected",
	"in landfall.changes: ChangeHeld",
	"in landfall.changes: ChangeLanded",
	"in landfall.changes: ChangeMoved",
	"in landfall.changes: ChangeRejected",
	"in landfall.changes: ChangeReleased",
	"in landfall.changes: ChangeRevised",
	"in landfall.changes: Claim",
	"in landfall.changes: LandIntended",
	"in landfall.changes: LandVoid",
	"in landfall.changes: LogCreated",
	"in landfall.changes: MainlineAnalyzed",
	"in landfall.changes: MainlineMoved",
	"in landfall.changes: MainlineReachable",
	"in landfall.changes: MainlineUnreachable",
	"in landfall.changes: QueuePaused",
	"in landfall.changes: QueueResumed",
	"in landfall.changes: Refused",
	"in landfall.changes: RequestRefused",
	"in landfall.dead-letters: DeadLetter",
	"in landfall.decisions: Claim",
	"in landfall.decisions: Decision",
	"in landfall.land-requests: LandRequest",
	"in landfall.models: ModelPromoted",
	"in landfall.models: ModelRolledBack",
	"in landfall.models: ModelTrained",
	"in landfall.priorities: Claim",
	"in landfall.priorities: Priority",
	"in landfall.profiles: Claim",
	"in landfall.profiles: Profile",
	"in landfall.speculations: Claim",
	"in landfall.speculations: Speculation",
	"record in parts",
	"record of a stale owner: enumerator",
	"record of a stale owner: lander",
	"record of a stale owner: prioritizer",
	"record of a stale owner: profiler",
	"record of a stale owner: selector",
	"record of an unknown type",
	"record that cannot be decoded",
	"record with a subject",
	"record with a trace",
	"refusal: already_in",
	"refusal: bad_request",
	"refusal: cyclic_requirement",
	"refusal: no_such_commit",
	"refusal: no_such_ref",
	"refusal: not_a_stack",
	"refusal: queue_full",
	"refusal: repository_unreachable",
	"refusal: revision_taken",
	"refusal: unchanged",
	"refusal: unknown_requirement",
	"torn record",
}

// kindsOf counts what a log holds: types by topic, types within records, fields that are set, values of enums, and the ways in
// which records are unlike others.
func kindsOf(t testing.TB, l replaytest.Recording) map[string]int {
	t.Helper()
	kinds := map[string]int{}
	log := l.Open(t)
	owners := map[string]map[string]bool{}
	for _, topic := range events.Topics() {
		for p := range log.Partitions() {
			c, err := log.Follow(t.Context(), topic.Name, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			terms := journal.NewTerms(topic.Name)
			whole := map[int64]bool{}
			for e, ok, err := c.TryNext(); ok; e, ok, err = c.TryNext() {
				if err != nil {
					t.Fatal(err)
				}
				whole[e.Offset] = true
				counts := terms.Counts(e)
				switch {
				case errors.Is(e.Err, events.ErrUnknownType):
					kinds["record of an unknown type"]++
				case e.Err != nil:
					kinds["record that cannot be decoded"]++
				case e.Message == nil:
				default:
					kinds["in "+topic.Name+": "+string(e.Message.ProtoReflect().Descriptor().Name())]++
					fieldsOf(kinds, e.Message.ProtoReflect())
				}
				switch m := e.Message.(type) {
				case *eventsv1.Claim:
					at := fmt.Sprintf("%s/%d/%s", topic.Name, p, m.Service)
					if owners[at] == nil {
						owners[at] = map[string]bool{}
					}
					if owners[at][m.Instance] = true; len(owners[at]) > 1 {
						kinds["claim of another owner: "+m.Service]++
					}
				case *eventsv1.DeadLetter:
					kinds["dead letter of "+m.Service]++
				case *eventsv1.RequestRefused:
					kinds["refusal: "+m.Code]++
				case nil:
				default:
					if !counts && e.Term >= 0 {
						kinds["record of a stale owner: "+e.Source]++
					}
				}
				if e.Trace != "" {
					kinds["record with a trace"]++
				}
				if e.Subject != "" {
					kinds["record with a subject"]++
				}
			}
			c.Close()
			begun := 0
			for _, r := range l.Records {
				if r.Topic != topic.Name || r.Partition != p {
					continue
				}
				e, _, err := events.DecodeHeaders(r.Key, r.Headers)
				switch {
				case err != nil || e.Parts == 0:
				case e.Part == 1:
					begun++
				case e.Part == e.Parts && whole[r.Offset]:
					begun--
					kinds["record in parts"]++
				}
			}
			if begun > 0 {
				kinds["torn record"] += begun
			}
		}
	}
	return kinds
}

// fieldsOf counts what is set in a message and below.
func fieldsOf(kinds map[string]int, m protoreflect.Message) {
	kinds["message "+string(m.Descriptor().Name())]++
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		kinds[fieldKind(f)]++
		switch {
		case f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				valueOf(kinds, f, v.List().Get(i))
			}
		default:
			valueOf(kinds, f, v)
		}
		return true
	})
}

func valueOf(kinds map[string]int, f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case f.Message() != nil:
		fieldsOf(kinds, v.Message())
	case f.Enum() != nil:
		if of := f.Enum().Values().ByNumber(v.Enum()); of != nil {
			kinds["value "+string(of.Name())]++
		}
	}
}

func fieldKind(f protoreflect.FieldDescriptor) string {
	return fmt.Sprintf("field %s.%s", f.Parent().Name(), f.Name())
}

// allKinds are those that the schema has: messages, fields, values of enums, and of each topic the types that its writers write.
func allKinds() (list []string) {
	protoregistry.GlobalFiles.RangeFilesByPackage("landfall.events.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			list = append(list, "message "+string(m.Name()))
			for j := range m.Fields().Len() {
				list = append(list, fieldKind(m.Fields().Get(j)))
			}
		}
		for i := range file.Enums().Len() {
			values := file.Enums().Get(i).Values()
			for j := range values.Len() {
				if values.Get(j).Number() != 0 {
					list = append(list, "value "+string(values.Get(j).Name()))
				}
			}
		}
		return true
	})
	slices.Sort(list)
	return list
}

// TestTheRecordedLogsHoldEveryKindOfFact there is: every type of record in its topic, every message, field and value that the
// schema has, and what is unlike other records. What the schema got since stands in unrecorded, until the next release's logs are
// recorded too; until then the schedules of tools/proof replay it.
func TestTheRecordedLogsHoldEveryKindOfFact(t *testing.T) {
	sum := map[string]int{}
	records := 0
	for _, l := range recordings(t) {
		records += len(l.Records)
		for k, n := range kindsOf(t, l) {
			sum[k] += n
		}
	}
	for _, k := range slices.Sorted(maps.Keys(sum)) {
		if !strings.HasPrefix(k, "message ") && !strings.HasPrefix(k, "field ") && !strings.HasPrefix(k, "value ") {
			t.Logf("%6d %s", sum[k], k)
		}
	}
	if records < leastRecords {
		t.Errorf("%d records, and there were %d at least", records, leastRecords)
	}
	for _, k := range append(allKinds(), recordedKinds...) {
		if recorded := sum[k] > 0; recorded == slices.Contains(unrecorded, k) {
			t.Errorf("%s is in a recorded log: %v", k, recorded)
		}
	}
}

// TestAnAlteredRecordOfARecordedLogIsFound: one field of one record of each service is another one.
func TestAnAlteredRecordOfARecordedLogIsFound(t *testing.T) {
	logs := recordings(t)
	for service, alter := range map[string]func(m proto.Message) bool{
		events.ServiceEnumerator: func(m proto.Message) bool {
			s, is := m.(*eventsv1.Speculation)
			if is = is && len(s.GetDelta().GetNodes()) > 0; is {
				s.Delta.Nodes[0].Epoch++
			}
			return is
		},
		events.ServiceProfiler: func(m proto.Message) bool {
			p, is := m.(*eventsv1.Profile)
			if is = is && len(p.Predictions) > 0; is {
				p.Predictions[0].Success = math.Nextafter(p.Predictions[0].Success, 2)
			}
			return is
		},
		events.ServicePrioritizer: func(m proto.Message) bool {
			p, is := m.(*eventsv1.Priority)
			if is = is && len(p.GetRanking().GetBest()) > 0; is {
				p.Ranking.Best[0].Needed = math.Nextafter(p.Ranking.Best[0].Needed, 2)
			}
			return is
		},
		events.ServiceSelector: func(m proto.Message) bool {
			d, is := m.(*eventsv1.Decision)
			if is = is && len(d.Items) > 0 && d.Items[0].GetBuildScheduled() != nil; is {
				d.Items[0].GetBuildScheduled().Why += "."
			}
			return is
		},
		events.ServiceLander: func(m proto.Message) bool {
			i, is := m.(*eventsv1.LandIntended)
			if is = is && len(i.Proof) > 0; is {
				i.Proof[0].Attempt++
			}
			return is
		},
	} {
		t.Run(service, func(t *testing.T) {
			for _, l := range logs {
				l.Records = slices.Clone(l.Records)
				at := slices.IndexFunc(l.Records, func(r journal.Record) bool { return altered(&r, alter) })
				if at < 0 {
					continue
				}
				altered(&l.Records[at], alter)
				is := l.Records[at]
				found := false
				for _, s := range verify(t, l.Open(t), recompute.Options{AllVersions: true, Kept: 10}).Services {
					for _, d := range s.Differences { // what the lander wrote is an input, too
						if d.Service == service && d.Topic == is.Topic && d.Partition == is.Partition && d.Offset == is.Offset {
							t.Log(&d)
							found = true
						}
					}
				}
				if !found {
					t.Errorf("%s: the record at %s/%d/%d was altered, and not found", l.Name, is.Topic, is.Partition, is.Offset)
				}
				return
			}
			t.Error("no log has such a record")
		})
	}
}

// altered alters a record that is in one part, if it is one of those to be altered, and says so.
func altered(r *journal.Record, alter func(m proto.Message) bool) bool {
	e, name, err := events.DecodeHeaders(r.Key, r.Headers)
	if err != nil || e.Parts > 0 {
		return false
	}
	m, err := events.DecodeMessage(name, r.Value)
	if err != nil || !alter(m) {
		return false
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return false
	}
	r.Value = value
	return true
}

// TestARecordOfTheRecordedLogsIsWrittenAsItWas: read and written again, it has the same key, value and headers.
func TestARecordOfTheRecordedLogsIsWrittenAsItWas(t *testing.T) {
	compared := 0
	for _, l := range recordings(t) {
		at := map[string]journal.Record{}
		for _, r := range l.Records {
			at[fmt.Sprint(r.Topic, r.Partition, r.Offset)] = r
		}
		log := l.Open(t)
		for _, topic := range events.Topics() {
			for p := range log.Partitions() {
				c, err := log.Follow(t.Context(), topic.Name, p, 0)
				if err != nil {
					t.Fatal(err)
				}
				for e, ok, err := c.TryNext(); ok || err != nil; e, ok, err = c.TryNext() {
					if err != nil {
						t.Fatal(err)
					}
					if e.Message == nil || topic.Name == events.TopicLandRequests && len(e.Headers) < 6 {
						continue // by a program that is not Landfall
					}
					if len(e.Message.ProtoReflect().GetUnknown()) > 0 {
						t.Errorf("%s: %s/%d/%d has fields that are not known", l.Name, e.Topic, e.Partition, e.Offset)
					}
					written, err := journal.RecordsOf(e.Topic, e.Partition, e.Envelope)
					if err != nil {
						t.Fatal(err)
					}
					was, is := at[fmt.Sprint(e.Topic, e.Partition, e.Offset)], written[len(written)-1]
					same := func(a, b events.Header) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) }
					if !bytes.Equal(is.Key, was.Key) || !bytes.Equal(is.Value, was.Value) || !slices.EqualFunc(is.Headers, was.Headers, same) {
						t.Errorf("%s: %s/%d/%d is written as\n%q %q\nand was\n%q %q", l.Name, e.Topic, e.Partition, e.Offset, is.Headers, is.Value, was.Headers, was.Value)
					}
					compared++
				}
				c.Close()
			}
		}
	}
	t.Logf("%d records", compared)
	if compared < leastRecords*9/10 {
		t.Error("too few were compared")
	}
}
