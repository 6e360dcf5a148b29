// Package analytics answers how a queue does by week, from the history in ClickHouse (schemas/clickhouse). It only reads.
package analytics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const (
	// DefaultWeeks is how many weeks an answer covers if nothing is said.
	DefaultWeeks = 12
	// MostTargets is how many targets a list has.
	MostTargets = 20
	// fresh is how long an answer is reused, patience how long all of its queries may take.
	fresh    = time.Minute
	patience = 20 * time.Second
	// failing is how long a failure is returned again without asking.
	failing = 5 * time.Second
	// mostKept is how many answers are kept.
	mostKept = 64
)

// Weeks are how many weeks an answer may cover, fewest first. They are few, so that askers share their answers.
func Weeks() []int { return []int{4, DefaultWeeks, 26, 52, 104} }

// ErrNone is returned where no history is kept.
var ErrNone = errors.New("no history is kept")

// Analytics is how a queue did. Lists by week are in the order of time, without weeks in which nothing of theirs happened; those of
// targets have MostTargets at most, the worst first.
type Analytics struct {
	Queue string `json:"queue"`
	// Weeks is how many were asked for, the present one among them, or that of At.
	Weeks int `json:"weeks"`
	// At is the moment of the past up to which is counted, zero for the present.
	At time.Time `json:"at,omitzero"`
	// Missing is set, and everything else empty, where no history is kept.
	Missing *NoHistory `json:"missing,omitempty"`
	// Written is when the history was last written; the zero time if never.
	Written     time.Time        `json:"written,omitzero"`
	Verdicts    []WeekOfVerdicts `json:"verdicts"`
	Rejected    []RejectedChange `json:"rejected"`
	Waits       []WeekOfWaits    `json:"waits"`
	Builds      []WeekOfBuilds   `json:"builds"`
	Work        []WeekOfWork     `json:"work"`
	Bypasses    []WeekOfBypasses `json:"bypasses"`
	Predictions []WeekOfAccuracy `json:"predictions"`
	Calibration []Calibration    `json:"calibration"`
	Rejections  []Rejecting      `json:"rejections"`
	Flaky       []FlakyRate      `json:"flaky"`
}

// NoHistory says why there is no history, and what to do.
type NoHistory struct {
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// WeekOfVerdicts is how the changes ended that left the queue in a week. Of the rejected ones some did not merge (Conflicting). Of the others,
// each version that failed may have failed again since (Confirmed), or passed (Contradicted).
type WeekOfVerdicts struct {
	Week         string `json:"week"`
	Landed       int    `json:"landed"`
	Rejected     int    `json:"rejected"`
	Conflicting  int    `json:"conflicting"`
	Confirmed    int    `json:"confirmed"`
	Contradicted int    `json:"contradicted"`
	Ejected      int    `json:"ejected"`
}

// RejectedChange is a change that was rejected, with the first five of the targets that failed.
type RejectedChange struct {
	Change   string    `json:"change"`
	Revision uint64    `json:"revision"`
	Title    string    `json:"title"`
	Author   string    `json:"author"`
	At       time.Time `json:"at"`
	Class    string    `json:"class"`
	Targets  []string  `json:"targets"`
	// Since is failed or passed if every version that failed has done so again since, else "".
	Since string `json:"since,omitempty"`
}

// WeekOfWaits is how long changes that landed in a week had waited, in seconds. The parts add up to the mean: until a change was in the
// queue (admission), was analysed, its first step began (worker), the last of its builds ended (building), it was decided, which waits for
// changes ahead (behind), and it had landed (push).
type WeekOfWaits struct {
	Week      string  `json:"week"`
	Landed    int     `json:"landed"`
	P50       float64 `json:"p50_s"`
	P95       float64 `json:"p95_s"`
	Mean      float64 `json:"mean_s"`
	Admission float64 `json:"admission_s"`
	Analysis  float64 `json:"analysis_s"`
	Worker    float64 `json:"worker_s"`
	Building  float64 `json:"building_s"`
	Behind    float64 `json:"behind_s"`
	Push      float64 `json:"push_s"`
}

// WeekOfBuilds is how many builds the changes took that were decided in a week.
type WeekOfBuilds struct {
	Week      string  `json:"week"`
	Changes   int     `json:"changes"`
	Builds    int     `json:"builds"`
	Aborted   int     `json:"aborted"`
	PerChange float64 `json:"per_change"`
}

// WeekOfWork is the worker time of the changes that left the queue in a week, a step that several waited for shared out among them.
type WeekOfWork struct {
	Week      string  `json:"week"`
	Changes   int     `json:"changes"`
	Hours     float64 `json:"hours"`
	PerChange float64 `json:"per_change"`
}

// WeekOfBypasses is how many changes landed in a week before one that was ahead of them.
type WeekOfBypasses struct {
	Week      string  `json:"week"`
	Landed    int     `json:"landed"`
	Bypassing int     `json:"bypassing"`
	Rate      float64 `json:"rate"`
}

// WeekOfAccuracy is how right the last predictions about the changes were that left the queue in a week. Of Changes it is known whether
// they landed, of Durations how long their builds took; figures of none are 0.
type WeekOfAccuracy struct {
	Week             string  `json:"week"`
	Changes          int     `json:"changes"`
	PredictedRate    float64 `json:"predicted_rate"`
	LandedRate       float64 `json:"landed_rate"`
	Brier            float64 `json:"brier"`
	CalibrationError float64 `json:"calibration_error"`
	Durations        int     `json:"durations"`
	MeanSeconds      float64 `json:"mean_s"`
	MeanError        float64 `json:"mean_error_s"`
	// Covered is the share within the interval that nine of ten should be in.
	Covered float64 `json:"covered"`
}

// Calibration is a tenth of the probabilities that changes land: what was predicted, and what came true.
type Calibration struct {
	From          float64 `json:"from_probability"`
	Changes       int     `json:"changes"`
	PredictedRate float64 `json:"predicted_rate"`
	LandedRate    float64 `json:"landed_rate"`
}

// Rejecting is a target that rejected changes.
type Rejecting struct {
	Target     string    `json:"target"`
	Rejections int       `json:"rejections"`
	Changes    int       `json:"changes"`
	LastAt     time.Time `json:"last_at"`
	Owners     []string  `json:"owners,omitempty"`
}

// Owned returns the figures with who owns each target. It leaves the lists as they are, which others may read.
func (a Analytics) Owned(ownersOf func(targets []string) map[string][]string) Analytics {
	var targets []string
	for _, r := range a.Rejections {
		targets = append(targets, r.Target)
	}
	for _, f := range a.Flaky {
		targets = append(targets, f.Target)
	}
	owners := ownersOf(targets)
	a.Rejections, a.Flaky = slices.Clone(a.Rejections), slices.Clone(a.Flaky)
	for i := range a.Rejections {
		a.Rejections[i].Owners = owners[a.Rejections[i].Target]
	}
	for i := range a.Flaky {
		a.Flaky[i].Owners = owners[a.Flaky[i].Target]
	}
	return a
}

// FlakyRate is the flake rate of a target: how many of its versions failed in one run and passed in another.
type FlakyRate struct {
	Target      string   `json:"target"`
	Versions    int      `json:"versions"`
	FlakeRate   float64  `json:"flake_rate"`
	FailureRate float64  `json:"failure_rate"`
	P50         float64  `json:"p50_s"`
	Owners      []string `json:"owners,omitempty"`
}

// History asks a ClickHouse. It is safe for concurrent use, and asks one question at a time.
type History struct {
	dsn func() string
	now func() time.Time
	// turn holds a token unless somebody is asking the history.
	turn chan struct{}

	// What follows is of who has the token.
	opened     string
	connection driver.Conn
	readOnly   bool

	mu   sync.Mutex
	kept map[Question]answer
	// failure is the last one, at failedAt, of the history at failedDSN; nil if there was none.
	failure   error
	failedAt  time.Time
	failedDSN string
}

// Question is how a queue did in so many weeks; at a moment of the past, by what had happened until then.
type Question struct {
	Queue string
	Weeks int
	// At is that moment, zero for the present.
	At time.Time
}

type answer struct {
	Analytics
	at time.Time
}

// New returns a history that asks where dsn says, clickhouse://user:password@host:port/database, each time that it connects; "" is nowhere.
// now is the clock by which weeks are counted.
func New(dsn func() string, now func() time.Time) *History {
	h := &History{dsn: dsn, now: now, turn: make(chan struct{}, 1), kept: map[Question]answer{}}
	h.turn <- struct{}{}
	return h
}

// Close ends the connection, if there is one. Nothing may be asked afterwards.
func (h *History) Close() {
	<-h.turn
	if h.connection != nil {
		h.connection.Close()
	}
}

// Ask returns how a queue did, as of the last minute. The error is ErrNone, or says why the history does not answer, or did
// not in the last five seconds; it names no password.
func (h *History) Ask(ctx context.Context, q Question) (Analytics, error) {
	if h.dsn() == "" {
		return Analytics{}, ErrNone
	}
	q.At = q.At.UTC()
	if a, err := h.known(q); a.Queue != "" || err != nil {
		return a, err
	}
	asker := ctx
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	select {
	case <-h.turn:
		defer func() { h.turn <- struct{}{} }()
	case <-ctx.Done():
		return Analytics{}, fmt.Errorf("somebody else's question is being answered: %w", context.Cause(ctx))
	}
	if a, err := h.known(q); a.Queue != "" || err != nil { // somebody else has asked meanwhile
		return a, err
	}
	ctx, err := h.connect(ctx)
	if err != nil {
		return Analytics{}, h.failedWith(asker, err)
	}
	a, err := h.read(ctx, q)
	if err != nil {
		return Analytics{}, h.failedWith(asker, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.kept) >= mostKept {
		clear(h.kept)
	}
	h.kept[q] = answer{a, h.now()}
	return a, nil
}

// known returns a kept answer or failure, neither if the history has to be asked.
func (h *History) known(q Question) (a Analytics, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if kept, is := h.kept[q]; is && h.now().Sub(kept.at) < fresh {
		return kept.Analytics, nil
	}
	if h.failure != nil && h.failedDSN == h.dsn() && h.now().Sub(h.failedAt) < failing {
		err = h.failure
	}
	return a, err
}

// failedWith keeps a failure and returns it. One for which the asker left is none of the history.
func (h *History) failedWith(asker context.Context, err error) error {
	if asker.Err() == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.failure, h.failedAt, h.failedDSN = err, h.now(), h.dsn()
	}
	return err
}

// connect opens the connection, again if it has to lead elsewhere, and returns the context of queries that may only read.
func (h *History) connect(ctx context.Context) (context.Context, error) {
	dsn := h.dsn()
	if dsn != h.opened {
		options, err := clickhouse.ParseDSN(dsn)
		if err != nil {
			return ctx, errors.New("its DSN is not clickhouse://user:password@host:9000/database")
		}
		options.DialTimeout, options.ReadTimeout, options.MaxOpenConns, options.MaxIdleConns = 3*time.Second, patience, 2, 1
		c, err := clickhouse.Open(options)
		if err != nil {
			return ctx, fmt.Errorf("%s: %w", strings.Join(options.Addr, ", "), err)
		}
		if h.connection != nil {
			h.connection.Close()
		}
		h.connection, h.opened, h.readOnly = c, dsn, false
		var may string
		if err := c.QueryRow(ctx, "SELECT value FROM system.settings WHERE name = 'readonly'").Scan(&may); err != nil {
			h.opened = ""
			return ctx, fmt.Errorf("%s: %w", strings.Join(options.Addr, ", "), err)
		}
		h.readOnly = may != "0"
	}
	if h.readOnly {
		return ctx, nil
	}
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"readonly": 2})), nil
}
