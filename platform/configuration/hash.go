package configuration

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// hashDomain makes these hashes differ from others, and from those of another set of fields.
const hashDomain = "landfall queue settings 2"

// Hash identifies the settings of one queue, as they are in effect: defaults
// included, independent of how the file writes them. Events carry it, so that a
// replay knows which settings a decision was taken under.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal, 64 digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Hash covers every setting of the queue and its name, but not the repository's URL
// and poll interval: these say how to reach it, not how to decide.
func (q Queue) Hash() Hash {
	w := fieldHash{sha256.New()}
	w.text("domain", hashDomain)
	w.text("name", q.Name)
	w.text("repository", q.Repository)
	w.text("branch", q.Branch)
	w.text("strategy", string(q.Strategy))
	if q.Shadow != Off {
		w.text("shadow", q.Shadow)
	}
	w.text("pool", q.Pool)
	w.number("weight", q.Weight)
	w.integer("pool.workers", int64(q.PoolWorkers))
	w.integer("workers", int64(q.Workers))
	w.number("speculation.threshold", q.Speculation.Threshold)
	w.number("speculation.abort_threshold", q.Speculation.AbortThreshold)
	w.optional("speculation.bypass_threshold", q.Speculation.BypassThreshold)
	w.integer("speculation.candidates", int64(q.Speculation.Candidates))
	w.integer("steps.timeout", int64(q.Steps.Timeout))
	w.integer("steps.log_limit", int64(q.Steps.LogLimit))
	w.integer("steps.output_tail", int64(q.Steps.OutputTail))
	w.text("steps.environment.path", q.Steps.Environment.Path)
	w.table("steps.environment.variables", q.Steps.Environment.Variables)
	w.integer("retries.failed", int64(q.Retries.Failed))
	w.integer("retries.timed_out", int64(q.Retries.TimedOut))
	w.integer("retries.infrastructure", int64(q.Retries.Infrastructure))
	w.number("priors.success", q.Priors.Success)
	w.number("priors.conflict", q.Priors.Conflict)
	w.integer("priors.duration.mean", int64(q.Priors.Duration.Mean))
	w.integer("priors.duration.std", int64(q.Priors.Duration.Std))
	w.text("analysis.adapter", string(q.Analysis.Adapter))
	w.integer("analysis.timeout", int64(q.Analysis.Timeout))
	w.integer("analysis.whole_repository_steps", int64(len(q.Analysis.WholeRepositorySteps)))
	for _, step := range q.Analysis.WholeRepositorySteps {
		w.text("name", step.Name)
		w.list("run", step.Run)
		if step.Dir != "" {
			w.text("dir", step.Dir)
		}
		w.integer("timeout", int64(step.Timeout))
		if len(step.Caches) > 0 {
			w.list("caches", step.Caches)
		}
		if len(step.Secrets) > 0 {
			w.list("secrets", step.Secrets)
		}
		if step.Image != "" {
			w.text("image", step.Image)
		}
		if len(step.Exclusive) > 0 {
			w.list("exclusive", step.Exclusive)
		}
		if len(step.Resources) > 0 {
			w.integer("resources", int64(len(step.Resources)))
			for _, name := range slices.Sorted(maps.Keys(step.Resources)) {
				w.integer(name, int64(step.Resources[name]))
			}
		}
		if len(step.RunsOn) > 0 {
			w.list("runs_on", step.RunsOn)
		}
	}
	w.integer("limits.pending", int64(q.Limits.Pending))
	w.integer("limits.stack", int64(q.Limits.Stack))
	w.integer("limits.requires", int64(q.Limits.Requires))
	// A queue without these has the hash that it had before there were any.
	if len(q.Analysis.Inputs) > 0 {
		w.integer("analysis.inputs", int64(len(q.Analysis.Inputs)))
		for _, in := range q.Analysis.Inputs {
			w.list("folders", in.Folders)
			w.list("files", in.Files)
		}
	}
	if len(q.Analysis.Adapters) > 0 {
		w.integer("analysis.adapters", int64(len(q.Analysis.Adapters)))
		for _, use := range q.Analysis.Adapters {
			w.text("adapter", string(use.Adapter))
			w.list("folders", use.Folders)
			w.list("except", use.Except)
			w.text("toolchain", use.Toolchain)
			for _, step := range use.Steps {
				w.text("kind", step.Kind)
				w.text("name", step.Name)
				w.list("run", step.Run)
				w.integer("timeout", int64(step.Timeout))
			}
		}
	}
	if f := q.Flaky; !reflect.DeepEqual(f, Flaky{}) && !isDefaultFlaky(f) {
		w.number("flaky.above", f.Above)
		w.integer("versions", int64(f.Versions))
		w.integer("for", int64(f.For))
		w.integer("quarantine", int64(len(f.Quarantine)))
		for _, one := range f.Quarantine {
			w.text("target", one.Target)
			w.text("until", one.Until)
			w.text("why", one.Why)
		}
	}
	if q.Analysis.Toolchain != "" {
		w.text("analysis.toolchain", q.Analysis.Toolchain)
	}
	if q.Analysis.ModuleProxy != "" {
		w.text("analysis.module_proxy", q.Analysis.ModuleProxy)
	}
	if len(q.Analysis.Hubs) > 0 {
		w.list("analysis.hubs", q.Analysis.Hubs)
	}
	if u := q.Analysis.Uncovered; u.Policy != "" && u.Policy != UncoveredWholeRepository || len(u.Ignore) > 0 {
		w.text("analysis.uncovered.policy", string(u.Policy))
		w.list("ignore", u.Ignore)
	}
	if len(q.Steps.Caches) > 0 {
		w.caches(q.Steps.Caches)
	}
	if len(q.Steps.Secrets) > 0 {
		w.secrets(q.Steps.Secrets)
	}
	if len(q.Steps.Reports) > 0 {
		w.list("steps.reports", q.Steps.Reports)
	}
	if len(q.Steps.RunsOn) > 0 {
		w.integer("steps.runs_on", int64(len(q.Steps.RunsOn)))
		for _, r := range q.Steps.RunsOn {
			w.list("targets", r.Targets)
			w.list("labels", r.Labels)
		}
	}
	if q.Steps.Groups != GroupsOn {
		w.text("steps.groups", q.Steps.Groups)
	}
	if q.Steps.Workspace != WorkspaceOpen {
		w.text("steps.workspace", q.Steps.Workspace)
	}
	if o := q.Steps.Outputs; o != (OutputBounds{}) && o != defaultOutputs {
		w.integer("steps.outputs.max_size", int64(o.MaxSize))
		w.integer("max_total", int64(o.MaxTotal))
	}
	w.isolation(q.Steps)
	if b := q.Analysis.Bazel; !isDefault(b) {
		w.text("analysis.bazel.binary", b.Binary)
		w.list("startup_flags", b.StartupFlags)
		w.list("query_flags", b.QueryFlags)
		w.integer("heap", int64(b.Heap))
		w.integer("output", int64(b.Output))
		w.list("build", b.Build)
		w.list("test", b.Test)
	}
	if q.Admission != (Admission{}) && q.Admission != defaultAdmission {
		w.integer("admission.patience", int64(q.Admission.Patience))
	}
	if q.Base.Prove != "" && q.Base.Prove != ProveIdle {
		w.text("base.prove", q.Base.Prove)
	}
	if !q.Quotas.Empty() {
		w.quotas(q.Quotas)
	}
	return Hash(w.Sum(nil))
}

// Reading identifies the settings that decide what is found in a tree: which targets there are, their versions, and what
// their steps take.
func (q Queue) Reading() Hash {
	analysis := q.Analysis
	analysis.Timeout, analysis.Hubs = 0, nil
	return Queue{
		Analysis: analysis, Base: q.Base, Shadow: Off,
		Steps: Steps{
			Environment: q.Steps.Environment, Workspace: q.Steps.Workspace, Groups: q.Steps.Groups, RunsOn: q.Steps.RunsOn,
		},
	}.Hash()
}

// isDefault reports whether the settings of Bazel are the defaults, or the queue was not made from a file: such a queue has
// the hash that it had before there was anything to say.
func isDefault(b Bazel) bool {
	return reflect.DeepEqual(b, Bazel{}) || reflect.DeepEqual(b, defaultBazel)
}

// isDefaultFlaky reports whether the settings of flaky targets are the defaults.
func isDefaultFlaky(f Flaky) bool {
	return len(f.Quarantine) == 0 && f.Above == 0 && f.Versions == defaultFlaky.Versions && f.For == defaultFlaky.For
}

// fieldHash writes every name, value and count with its length before it, so that
// no two different sets of fields give the same bytes.
type fieldHash struct{ hash.Hash }

func (w fieldHash) bytes(text string) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(text)))
	w.Write(length[:])
	w.Write([]byte(text))
}

func (w fieldHash) text(name, value string) {
	w.bytes(name)
	w.bytes(value)
}

func (w fieldHash) integer(name string, value int64) {
	w.text(name, strconv.FormatInt(value, 10))
}

func (w fieldHash) number(name string, value float64) {
	w.text(name, strconv.FormatUint(math.Float64bits(value), 16))
}

func (w fieldHash) optional(name string, value *float64) {
	if value == nil {
		w.text(name, "none")
		return
	}
	w.number(name, *value)
}

func (w fieldHash) quotas(q Quotas) {
	w.optionalInteger("quotas.queue", q.Queue)
	w.optionalInteger("author", q.Author)
	w.integer("authors", int64(len(q.Authors)))
	for _, a := range q.Authors {
		w.list("who", a.Who)
		w.integer("steps", int64(a.Steps))
	}
	w.integer("teams", int64(len(q.Teams)))
	for _, t := range q.Teams {
		w.text("name", t.Name)
		w.list("who", t.Who)
		w.integer("steps", int64(t.Steps))
	}
}

func (w fieldHash) optionalInteger(name string, value *int) {
	if value == nil {
		w.text(name, "none")
		return
	}
	w.integer(name, int64(*value))
}

func (w fieldHash) list(name string, values []string) {
	w.integer(name, int64(len(values)))
	for _, value := range values {
		w.bytes(value)
	}
}

func (w fieldHash) table(name string, values map[string]string) {
	w.integer(name, int64(len(values)))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		w.text(key, values[key])
	}
}
