package configuration

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"landfall.build/platform/landing"
)

// Defaults are the defaults that depend on the machine. They are arguments, so
// that reading a file has the same result everywhere.
type Defaults struct {
	// Workers is the slots of a queue and the step workers of a builder that name
	// none: the number of cores, usually. At least 1. Services that run on several
	// machines should have `workers` in the file: a queue's Hash covers it.
	Workers int
	// Path is PATH for steps. Empty: DefaultPath.
	Path string
}

// DefaultPath is PATH for steps of a queue that names none: where systems and Go put programs. It is the same
// whoever starts the service.
const DefaultPath = "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin"

func (d Defaults) check() error {
	if d.Workers < 1 {
		return errors.New("configuration: Defaults.Workers must be at least 1")
	}
	return nil
}

// New returns a configuration without repositories and queues, all else default.
// Data is relative to the folder of the file.
func New(d Defaults) *Configuration {
	return &Configuration{
		Version:  1,
		Data:     ".landfall",
		Builder:  Builder{Pool: DefaultPool, Workers: d.Workers, Lease: 10 * time.Second, Remember: 1 << 14, Outputs: defaultSharedOutputs},
		Broker:   Broker{TLS: BrokerTLS{Enabled: Off}, SASL: BrokerSASL{Mechanism: SASLNone}, Partitions: 4, Replication: 1, Archive: DefaultArchive},
		Gateway:  Gateway{Listen: "127.0.0.1:7878"},
		Access:   Access{Mode: AccessOpen, OpenNetwork: Off, Logs: "viewer", Requests: RequestsAccept, Rate: 50, Sessions: defaultSessions},
		Outcomes: Outcomes{Format: OutcomesJSON},
		Hosts:    newHosts(),

		Snapshots: Snapshots{After: 5000, Every: 10 * time.Second},
		Retention: newRetention(),
	}
}

// NewRepository returns a repository with the defaults.
func NewRepository(name string) Repository {
	return Repository{Name: name, Poll: 2 * time.Second}
}

// NewQueue returns a queue with the defaults; it has no repository yet.
//
// Threshold is 0.05: a build that will be needed less often than once in twenty
// is waste under any price of a slot, while with the priors below the optimistic
// path stays worth a slot for 28 changes in a row, and a path that rejects one
// change for the first six. At 0.1 the latter would never be built (1 − 0.9 is
// just below it), and a queue without models would be merely optimistic.
func NewQueue(name string, d Defaults) Queue {
	bypass := 0.5
	queue := Queue{
		Name:        name,
		Branch:      "main",
		Strategy:    landing.Squash,
		Pool:        DefaultPool,
		Weight:      1,
		Shadow:      Off,
		PoolWorkers: d.Workers,
		Workers:     d.Workers,
		Speculation: Speculation{Threshold: 0.05, BypassThreshold: &bypass},
		Steps: Steps{
			Timeout:     30 * time.Minute,
			LogLimit:    64 * MiB,
			OutputTail:  16 * KiB,
			Groups:      GroupsOn,
			Workspace:   WorkspaceOpen,
			Outputs:     defaultOutputs,
			Environment: Environment{Path: cmp.Or(d.Path, DefaultPath)},
			Isolation:   IsolationBest,
			Network:     NetworkOutbound,
		},
		Retries: Retries{Failed: 1, TimedOut: 2, Infrastructure: 2},
		Flaky:   defaultFlaky,
		Priors: Priors{
			Success:  0.9,
			Conflict: 0.05,
			Duration: DurationPrior{Mean: 5 * time.Minute, Std: 2 * time.Minute},
		},
		Analysis: Analysis{
			Adapter: AdapterAuto, Timeout: 2 * time.Minute,
			Uncovered: Uncovered{Policy: UncoveredWholeRepository}, Bazel: defaultBazel,
		},
		Limits: Limits{Pending: 10_000, Stack: 50, Requires: 50},
		// Below the ten seconds for which clients wait by default, so that they hear why.
		Admission: defaultAdmission,
		Base:      Base{Prove: ProveIdle},
	}
	queue.Speculation.AbortThreshold = queue.Speculation.Threshold / 2
	queue.Speculation.Candidates = max(64, queue.Workers)
	return queue
}

// defaultFlaky quarantines nothing by itself.
var defaultFlaky = Flaky{Versions: 20, For: 7 * 24 * time.Hour}

// defaultBazel is for workspaces of some ten thousand rules.
var defaultBazel = Bazel{Binary: "bazel", Heap: 2 * GiB, Output: 2 * GiB}

var defaultAdmission = Admission{Patience: 8 * time.Second}

// complete fills in the defaults that follow from other fields of the same queue.
func complete(c *Configuration, f *findings) {
	for name, queue := range c.Queues {
		queue.PoolWorkers = c.poolWorkers(queue.Pool)
		at := root.child("queues").child(name)
		speculation := at.child("speculation")
		if !f.given(speculation.child("abort_threshold")) {
			queue.Speculation.AbortThreshold = queue.Speculation.Threshold / 2
		}
		if !f.given(speculation.child("candidates")) {
			queue.Speculation.Candidates = max(64, queue.Workers)
		}
		steps := at.child("analysis").child("whole_repository_steps")
		for i := range queue.Analysis.WholeRepositorySteps {
			if !f.given(steps.index(i).child("timeout")) {
				queue.Analysis.WholeRepositorySteps[i].Timeout = queue.Steps.Timeout
			}
		}
		c.Queues[name] = queue
	}
}

func compareVariables(a, b string) int {
	nameA, _, _ := strings.Cut(a, "=")
	nameB, _, _ := strings.Cut(b, "=")
	return strings.Compare(nameA, nameB)
}
