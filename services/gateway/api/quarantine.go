package api

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/engine/evidence"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/services/gateway/view"
)

const (
	maxTargetBytes = 1000
	// maxQuarantine is how long one may last. Whoever wants it longer has to look at the target again.
	maxQuarantine = 366 * 24 * time.Hour
)

// QuarantineList is GET /v1/queues/{queue}/quarantines, by target.
type QuarantineList struct {
	Queue       string            `json:"queue"`
	Quarantines []view.Quarantine `json:"quarantines"`
}

// FlakeList is GET /v1/queues/{queue}/flakes: the targets for which changes were rejected, those that rejected most first, and those that
// contradicted themselves, those that cost most first.
type FlakeList struct {
	Queue     string                 `json:"queue"`
	Rejecting []view.RejectingTarget `json:"rejecting"`
	Flakes    []view.Flake           `json:"flakes"`
}

func (h *handler) serveQuarantines(w http.ResponseWriter, r *http.Request) {
	list := QuarantineList{Queue: r.PathValue("queue")}
	if err := h.readThen(r, func(q *view.Queue, _ time.Time) { list.Quarantines = q.Quarantines() }); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, list)
}

func (h *handler) serveFlakes(w http.ResponseWriter, r *http.Request) {
	list := FlakeList{Queue: r.PathValue("queue")}
	if err := h.readThen(r, func(q *view.Queue, _ time.Time) { list.Rejecting, list.Flakes = q.Rejecting(), q.Flakes() }); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, list)
}

func (h *handler) serveQuarantine(w http.ResponseWriter, r *http.Request) {
	h.steer(w, r, "Quarantined: it runs and is reported, and blocks nobody.", func(s *steering) (proto.Message, error) {
		now, err := h.namedQuarantine(r, s)
		if err != nil {
			return nil, err
		}
		stamp := time.UnixMicro(s.stampUS)
		switch {
		case strings.Trim(s.body.Target, "*/:.") == "" || s.body.Target == targets.Repository:
			return nil, fail(http.StatusBadRequest, string(admission.BadRequest), "The whole repository cannot be quarantined.", "Name the targets that fail by chance.")
		case s.body.Why == "":
			return nil, fail(http.StatusBadRequest, string(admission.BadRequest), "A quarantine needs a reason.", "Give it as \"why\" (--why); everybody who lands on the target reads it.")
		case !s.body.Until.After(stamp) || s.body.Until.After(stamp.Add(maxQuarantine)):
			return nil, fail(http.StatusBadRequest, string(admission.BadRequest), "A quarantine ends in the future, within a year.", "Correct \"until\"; it can be renewed.")
		case now.full:
			return nil, fail(http.StatusConflict, codeNotApplied, fmt.Sprintf("The queue has %d quarantines, the most that it may have.", evidence.MaxQuarantines), "End one, or name several targets with *.")
		case now.unknown && !s.body.Force:
			return nil, unknownTarget(s.body.Target, now.seen)
		}
		return &eventsv1.TargetQuarantined{
			Target: s.body.Target, UntilUs: s.body.Until.UnixMicro(), Source: eventsv1.QuarantineSource_QUARANTINE_SOURCE_OPERATOR,
			Who: s.body.Who, Why: s.body.Why, StampUs: s.stampUS,
		}, nil
	})
}

func (h *handler) serveQuarantineEnd(w http.ResponseWriter, r *http.Request) {
	h.steer(w, r, "Its quarantine is over: it blocks again.", func(s *steering) (proto.Message, error) {
		now, err := h.namedQuarantine(r, s)
		if err != nil {
			return nil, err
		}
		if !now.inForce {
			return nil, fail(http.StatusConflict, codeNotApplied, fmt.Sprintf("No quarantine of the name %s is in force.", clipText(s.body.Target, 200)), "`landfall quarantine` lists those that are.")
		}
		return &eventsv1.QuarantineEnded{Target: s.body.Target, Who: s.body.Who, Why: s.body.Why, StampUs: s.stampUS}, nil
	})
}

// quarantineNow holds what the queue knows of the target that a request names. unknown is set if no target of that name was seen.
type quarantineNow struct {
	inForce, full, unknown bool
	seen                   []string
}

// unknownTarget refuses a name that is probably a mistake: its quarantine would do nothing.
func unknownTarget(name string, seen []string) error {
	message := fmt.Sprintf("No change and no build that the queue remembers has a target %s.", clipText(name, 200))
	const forced = "A target that is to come needs \"force\" (--force)."
	advice := "Correct the name. " + forced
	if meant := cmp.Or(configuration.Closest(name, seen), onlyWith(name, seen)); meant != "" {
		advice = fmt.Sprintf("Did you mean %s? %s", clipText(meant, 200), forced)
	}
	return fail(http.StatusNotFound, codeUnknownTarget, message, advice)
}

// onlyWith returns the only target whose name has another name in it, "" if there is none or there are several.
func onlyWith(part string, names []string) (only string) {
	for _, name := range names {
		switch {
		case !strings.Contains(name, part):
		case only != "":
			return ""
		default:
			only = name
		}
	}
	return only
}

// namedQuarantine checks the name, and refuses to touch what the configuration says: the lander would write it again.
func (h *handler) namedQuarantine(r *http.Request, s *steering) (now quarantineNow, err error) {
	if s.body.Target == "" || !printable(s.body.Target, maxTargetBytes) {
		return now, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("target is not the name of a target: one line of printable text, at most %d bytes.", maxTargetBytes), "Name a target, or several with *.")
	}
	var named view.Quarantine
	err = h.read(r, func(q *view.Queue) {
		named, now.inForce = q.QuarantineNamed(s.body.Target)
		now.full = !now.inForce && q.QuarantinesFull()
		now.seen = q.TargetNames()
	})
	now.unknown = !now.inForce && !view.SeenTarget(now.seen, s.body.Target)
	if err == nil && now.inForce && named.Source == view.QuarantineConfigured {
		err = fail(http.StatusConflict, codeNotApplied, fmt.Sprintf("The configuration quarantines %s until %s.", clipText(named.Target, 200), named.Until.Format(time.DateOnly)),
			"Change or end it in the configuration: flaky.quarantine.")
	}
	return now, err
}
