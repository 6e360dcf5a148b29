// Package configuration reads the one YAML file that `landfall up` and every
// service take (`--config landfall.config.yaml`): which repositories there are,
// which queues land on which of their branches, and how each queue speculates,
// builds, retries and analyses.
//
// The file is a plain struct. Defaults are filled in first, the file is decoded
// over them, then everything is validated and every problem is reported at once
// with its line. Fields carry their own bounds as tags: `required`, `minimum`
// and `maximum` (for a list, a mapping or a text: of its length), `above` (more
// than, not equal), `enum`, `pattern` and `keys` (patterns.go). The same bounds stand in
// schemas/configuration/configuration.schema.json; a test compares the two.
//
// Relative paths resolve against the folder of the file, not against the
// working directory.
package configuration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"landfall.build/platform/landing"
)

// ErrUnknownQueue is the error for a queue that is not configured. It occurs when a
// request or an event names a queue; asking again cannot help, the name or the
// file has to change.
var ErrUnknownQueue = errors.New("unknown queue")

// Configuration is the whole file, complete and valid: what Load and Parse return
// needs no further checking.
type Configuration struct {
	// Version is the version of the file's format.
	Version int `yaml:"version" required:"true" enum:"1"`
	// Data is the folder in which this process keeps what it must find again:
	// mirrors, worktrees, logs of steps and, in `landfall up`, the topics. Absolute
	// after loading when the path of the file was.
	Data string `yaml:"data" minimum:"1" pattern:"line"`
	// Repositories by name.
	Repositories map[string]Repository `yaml:"repositories" required:"true" minimum:"1" maximum:"1000" keys:"name"`
	// Queues by name. The name is the Kafka key of the queue's events and a part of
	// paths and of metrics.
	Queues map[string]Queue `yaml:"queues" required:"true" minimum:"1" maximum:"1000" keys:"name"`
	// Pools of workers by name.
	Pools    map[string]Pool `yaml:"pools" maximum:"1000" keys:"name"`
	Builder  Builder         `yaml:"builder"`
	Broker   Broker          `yaml:"broker"`
	Gateway  Gateway         `yaml:"gateway"`
	Access   Access          `yaml:"access"`
	Outcomes Outcomes        `yaml:"outcomes"`
	// Webhooks by name.
	Webhooks map[string]Webhook `yaml:"webhooks" maximum:"100" keys:"name"`
	// Hosts are the code hosts at which people ask.
	Hosts      Hosts      `yaml:"hosts"`
	ClickHouse ClickHouse `yaml:"clickhouse"`
	Snapshots  Snapshots  `yaml:"snapshots"`
	Retention  Retention  `yaml:"retention"`
}

// Repository is a git repository with mainlines.
type Repository struct {
	// Name is the key in Configuration.Repositories.
	Name string `yaml:"-"`
	// URL is what git fetches from and pushes to: a URL, host:path, or a path.
	URL string `yaml:"url" required:"true" minimum:"1" maximum:"2000" pattern:"line"`
	// Poll is how often its mainlines are checked for direct pushes (M23a).
	Poll time.Duration `yaml:"poll" minimum:"100ms" maximum:"1h"`
}

// Queue is one repository and one target branch: the unit of ordering, of
// sharding and of isolation.
type Queue struct {
	// Name is the key in Configuration.Queues.
	Name       string `yaml:"-"`
	Repository string `yaml:"repository" required:"true" pattern:"name"`
	// Branch is the mainline, without refs/heads/.
	Branch   string           `yaml:"branch" minimum:"1" maximum:"200" pattern:"line"`
	Strategy landing.Strategy `yaml:"strategy" enum:"squash,rebase,merge"`
	// Shadow has the queue decide what others land on the mainline, which is only read, on or off.
	Shadow string `yaml:"shadow" enum:"on,off"`
	// Pool names the workers that run its steps. Weight is how much the queue's steps count among those of other queues of the
	// pool.
	Pool   string  `yaml:"pool" pattern:"name"`
	Weight float64 `yaml:"weight" minimum:"0.001" maximum:"1000"`
	// PoolWorkers is how many workers the pool has.
	PoolWorkers int `yaml:"-"`
	// Workers is how many running builds count as many: from half of it on, builds that are needed with little probability
	// have to be worth more to begin (M16).
	Workers     int         `yaml:"workers" minimum:"1" maximum:"4096"`
	Speculation Speculation `yaml:"speculation"`
	Steps       Steps       `yaml:"steps"`
	Retries     Retries     `yaml:"retries"`
	Flaky       Flaky       `yaml:"flaky"`
	Priors      Priors      `yaml:"priors"`
	Analysis    Analysis    `yaml:"analysis"`
	Limits      Limits      `yaml:"limits"`
	Admission   Admission   `yaml:"admission"`
	Base        Base        `yaml:"base"`
	Quotas      Quotas      `yaml:"quotas"`
}

// Speculation decides which builds are worth a slot.
type Speculation struct {
	// Threshold is τ (M16): a build that is needed with a lower probability is not
	// started.
	Threshold float64 `yaml:"threshold" minimum:"0" maximum:"1"`
	// AbortThreshold (M26) is lower than Threshold, so that a running build is not
	// aborted and started again while its worth moves about τ.
	AbortThreshold float64 `yaml:"abort_threshold" minimum:"0" maximum:"1"`
	// BypassThreshold is θ_bypass (M13): a change may plan to be decided before one
	// ahead of it when it finishes first with at least this probability. Nil: never.
	BypassThreshold *float64 `yaml:"bypass_threshold" minimum:"0" maximum:"1"`
	// Candidates is K (M18): how many best builds are considered on every round.
	Candidates int `yaml:"candidates" minimum:"1" maximum:"4096"`
}

// Steps bounds what one step of a build may use, and gives its environment.
type Steps struct {
	// Timeout ends a step that names none of its own; it then has timed out (M19a).
	Timeout time.Duration `yaml:"timeout" minimum:"1s" maximum:"24h"`
	// LogLimit is how much of a step's output is kept.
	LogLimit Size `yaml:"log_limit" minimum:"1KiB" maximum:"4GiB"`
	// OutputTail is how much of the end of a step's output goes into its event.
	OutputTail  Size        `yaml:"output_tail" minimum:"0B" maximum:"256KiB"`
	Environment Environment `yaml:"environment"`
	// Isolation says what a step may see and do besides what it is given: nothing, and it is not run on a system that
	// cannot see to that (required); as little as the system can see to (best); what the service's user may (off).
	Isolation string `yaml:"isolation" enum:"required,best,off"`
	// Network is what isolated steps reach over it: each other, within one step (none); besides, what the machine reaches, but
	// not the machine (outbound); or all that the machine reaches, its own services among it (host).
	Network string `yaml:"network" enum:"none,outbound,host"`
	// NetworkDeny are networks that are not reached with NetworkOutbound, besides the machine.
	NetworkDeny []string `yaml:"network_deny" maximum:"100"`
	// Read are folders and files that steps can read, besides those of the system and the tools on their PATH.
	Read []string `yaml:"read" maximum:"100"`
	// Write are folders and files that steps can read and write. A change can leave there what the next one uses.
	Write []string `yaml:"write" maximum:"100"`
	// Caches are folders that steps name, besides the standard ones.
	Caches map[string]Cache `yaml:"caches" maximum:"100" keys:"name"`
	// Secrets are values that steps name; here is where they are.
	Secrets map[string]Secret `yaml:"secrets" maximum:"100" keys:"variable"`
	// Reports are patterns of JUnit files that steps leave in the tree, relative to its root, * ? [a-z] and ** as in Input.
	// Of a step that failed the builder reads those that it wrote.
	Reports []string `yaml:"reports" maximum:"100"`
	// Outputs bounds what the steps of a target leave for those of its dependents.
	Outputs OutputBounds `yaml:"outputs"`
	// RunsOn has targets run on machines with certain labels, besides what they ask for themselves.
	RunsOn []RunsOn `yaml:"runs_on" maximum:"100"`
	// Groups has one invocation verify many targets where a tool can (M27a), on or off. Their code then runs side by side.
	Groups string `yaml:"groups" enum:"on,off"`
	// Workspace is what a step finds of its tree: the files that its target depends on (closed), or all (open). Targets are then
	// verified one by one, but for Bazel's, which sees to it itself, and the whole repository, which depends on all.
	Workspace string `yaml:"workspace" enum:"closed,open"`
}

// OutputBounds bounds the outputs of one target. One that leaves more has failed.
type OutputBounds struct {
	// MaxSize bounds each output, a file or a folder with all below it, and MaxTotal all of a target.
	MaxSize  Size `yaml:"max_size" minimum:"1KiB" maximum:"1TiB"`
	MaxTotal Size `yaml:"max_total" minimum:"1KiB" maximum:"1TiB"`
}

var defaultOutputs = OutputBounds{MaxSize: GiB, MaxTotal: 4 * GiB}

// RunsOn says on which machines some targets run.
type RunsOn struct {
	// Targets are names, in which * stands for any text.
	Targets []string `yaml:"targets" required:"true" minimum:"1" maximum:"1000"`
	// Labels are names from Builder.Labels; the machine has all of them.
	Labels []string `yaml:"labels" required:"true" minimum:"1" maximum:"100"`
}

// Values of Steps.Workspace.
const (
	WorkspaceClosed = "closed"
	WorkspaceOpen   = "open"
)

// Values of Steps.Groups.
const (
	GroupsOn  = "on"
	GroupsOff = "off"
)

// Environment is what a step sees besides what the builder sets: nothing is
// inherited from the service. Values are taken as written; no $NAME in them is replaced.
type Environment struct {
	// Path is PATH: absolute folders, separated by colons.
	Path      string            `yaml:"path" minimum:"1" maximum:"16384" pattern:"line"`
	Variables map[string]string `yaml:"variables" maximum:"256" keys:"variable"`
}

// PlatformPrefix is what the names of variables begin with by which a step is told of itself. Nobody else sets these.
const PlatformPrefix = "LANDFALL_"

// Retries is how often a step is run again, by how it ended (M19a). Zero: never.
type Retries struct {
	// Failed covers flakes: a failed step counts as red only after these.
	Failed         int `yaml:"failed" minimum:"0" maximum:"10"`
	TimedOut       int `yaml:"timed_out" minimum:"0" maximum:"10"`
	Infrastructure int `yaml:"infrastructure" minimum:"0" maximum:"10"`
}

// Flaky is about targets that fail by chance. Results of a quarantined target are reported, and block nobody (M24a).
type Flaky struct {
	Quarantine []Quarantine `yaml:"quarantine" maximum:"1000"`
	// Above is the rate of flakes above which a target is quarantined for the time For, once Versions of it have passed.
	// A flake is a version that passes after it failed. Zero: never.
	Above    float64       `yaml:"above" minimum:"0" maximum:"1"`
	Versions int           `yaml:"versions" minimum:"2" maximum:"200"`
	For      time.Duration `yaml:"for" minimum:"1m" maximum:"8760h"`
}

// Quarantine has one target, or several with * for any text in the name, quarantined.
type Quarantine struct {
	Target string `yaml:"target" required:"true" minimum:"1" maximum:"1000" pattern:"line"`
	// Until is the last day of it, in UTC: 2026-12-31.
	Until string `yaml:"until" required:"true" pattern:"date"`
	Why   string `yaml:"why" required:"true" minimum:"1" maximum:"500" pattern:"line"`
}

// End returns when the quarantine is over. The configuration must be valid.
func (q Quarantine) End() time.Time {
	day, _ := time.Parse(time.DateOnly, q.Until)
	return day.AddDate(0, 0, 1)
}

// Over returns a sentence about each quarantine of the configuration that is over at a time, sorted by queue: it has no effect any
// more. The configuration must be valid.
func (c *Configuration) Over(now time.Time) (list []string) {
	for _, name := range c.QueueNames() {
		for _, one := range c.Queues[name].Flaky.Quarantine {
			if !now.Before(one.End()) {
				list = append(list, fmt.Sprintf("queue %s: the quarantine of %s ended with %s, so the target blocks again; remove it, or set another day", name, one.Target, one.Until))
			}
		}
	}
	return list
}

// Priors stand in for the models until there is evidence (M32).
type Priors struct {
	// Success is p (M6): that a change passes alone on the mainline.
	Success float64 `yaml:"success" above:"0" maximum:"1"`
	// Conflict is c (M6): that a change is green alone and red together
	// with one ahead of it whose targets it meets. At most Success.
	Conflict float64       `yaml:"conflict" minimum:"0" maximum:"1"`
	Duration DurationPrior `yaml:"duration"`
}

// DurationPrior is the predicted duration of a change's builds (M11).
type DurationPrior struct {
	Mean time.Duration `yaml:"mean" minimum:"1ms" maximum:"24h"`
	// Std is the standard deviation.
	Std time.Duration `yaml:"std" minimum:"0s" maximum:"24h"`
}

// Adapter names how targets are found.
type Adapter string

// The adapters.
const (
	// AdapterAuto takes the manifest where the tree has one, else the whole repository.
	AdapterAuto Adapter = "auto"
	// AdapterManifest reads the targets that the repository declares.
	AdapterManifest Adapter = "manifest"
	// AdapterGo makes a target of each Go package and of its tests (platform/buildgraph/gograph).
	AdapterGo Adapter = "go"
	// AdapterBazel makes a target of each rule of a Bazel workspace (platform/buildgraph/bazelgraph).
	AdapterBazel Adapter = "bazel"
	// AdapterNode makes targets of the packages of npm, pnpm and yarn workspaces (platform/buildgraph/nodegraph).
	AdapterNode Adapter = "node"
	// AdapterCargo makes targets of Rust packages (platform/buildgraph/cargograph).
	AdapterCargo Adapter = "cargo"
	// AdapterPython makes targets of Python projects and of their folders of tests (platform/buildgraph/pythongraph).
	AdapterPython Adapter = "python"
	// AdapterWholeRepository knows one target only, so that every two changes conflict.
	AdapterWholeRepository Adapter = "whole-repository"
)

// Adapters returns every adapter, as Analysis.Adapter lists them.
func Adapters() []Adapter {
	return []Adapter{AdapterAuto, AdapterManifest, AdapterGo, AdapterBazel, AdapterNode, AdapterCargo, AdapterPython, AdapterWholeRepository}
}

// Analysis is how the targets of a change are computed (M2, M4).
type Analysis struct {
	Adapter Adapter `yaml:"adapter" enum:"auto,manifest,go,bazel,node,cargo,python,whole-repository"`
	// Adapters are those of a repository with several build systems; with any, Adapter is left out.
	Adapters []AdapterUse `yaml:"adapters" maximum:"20"`
	// Timeout ends an analysis; the change then conflicts with everything (M4).
	Timeout time.Duration `yaml:"timeout" minimum:"1s" maximum:"1h"`
	// WholeRepositorySteps prove a tree whose targets are not known (M4). Without
	// them such a change cannot be built, and is ejected for that reason.
	WholeRepositorySteps []Step `yaml:"whole_repository_steps" maximum:"100"`
	// Inputs are files that targets read and do not declare, such as one that a
	// test opens by ../../x.yaml. All adapters but "manifest" use them.
	Inputs []Input `yaml:"inputs" maximum:"100"`
	// Toolchain is what code is built with, such as the version of the go command
	// or the digest of the image that steps run in: it is part of the hash of every
	// target of go, node, cargo and python. Empty: `landfall up` on its own broker asks the tools that steps
	// see; services alone, which must agree whatever machine they are on, take nothing.
	Toolchain string `yaml:"toolchain" maximum:"200" pattern:"line"`
	// ModuleProxy is where the go.mod files of external Go modules are: a module
	// proxy (http, https), or a folder laid out like one (file). With it a new version
	// of one module affects only what can reach it; empty, all that uses any.
	ModuleProxy string `yaml:"module_proxy" maximum:"2000" pattern:"line"`
	// Hubs are targets that are verified but do not serialize, each a name in which *
	// stands for any text: two changes that meet in hubs only do not conflict, and a
	// hub is proven on the very tree that lands (M21). None by default.
	Hubs []string `yaml:"hubs" maximum:"1000"`
	// Uncovered is what a change to files means that no target covers.
	Uncovered Uncovered `yaml:"uncovered"`
	// Bazel is how the adapter "bazel" runs it.
	Bazel Bazel `yaml:"bazel"`
}

// AdapterUse is an adapter of a repository with several build systems.
type AdapterUse struct {
	Adapter Adapter `yaml:"adapter" required:"true" enum:"manifest,go,bazel,node,cargo,python"`
	// Folders are patterns of the folders that it sees, with all below them; none means the whole tree. Folders and
	// Except are not for bazel, which sees the whole tree.
	Folders []string `yaml:"folders" maximum:"100"`
	// Except are patterns of folders that it does not see: fixtures, say, or what another adapter covers.
	Except []string `yaml:"except" maximum:"100"`
	// Toolchain is Analysis.Toolchain for this adapter.
	Toolchain string `yaml:"toolchain" maximum:"200" pattern:"line"`
	// Steps verify the targets of their kind, in place of the adapter's own. Not for manifest and bazel.
	Steps []AdapterStep `yaml:"steps" maximum:"100"`
}

// AdapterStep is one command for each target of a kind. What {…} stands for in it is the adapter's to say.
type AdapterStep struct {
	// Kind: a package, the tests of one, or what is locked of all of them together.
	Kind string `yaml:"kind" required:"true" enum:"package,test,lock"`
	Name string `yaml:"name" required:"true" pattern:"name"`
	// Run is the program and its arguments, as they are: no shell reads them.
	Run []string `yaml:"run" required:"true" minimum:"1" maximum:"1000"`
	// Timeout is Steps.Timeout unless given.
	Timeout time.Duration `yaml:"timeout" minimum:"1s" maximum:"24h"`
}

// Uses returns the adapters that find targets; none for a repository that is one target.
func (a Analysis) Uses() []AdapterUse {
	switch {
	case len(a.Adapters) > 0:
		return a.Adapters
	case a.Adapter == AdapterWholeRepository:
		return nil
	}
	return []AdapterUse{{Adapter: a.Adapter, Toolchain: a.Toolchain}}
}

// UsesAny reports whether one of the adapters is in use.
func (a Analysis) UsesAny(adapters ...Adapter) bool {
	return slices.ContainsFunc(a.Uses(), func(use AdapterUse) bool { return slices.Contains(adapters, use.Adapter) })
}

// UncoveredPolicy is what a change to a file means that no target covers.
type UncoveredPolicy string

// The policies.
const (
	// UncoveredWholeRepository has the change conflict with everything, and the whole repository verified.
	UncoveredWholeRepository UncoveredPolicy = "whole_repository"
	// UncoveredWarn builds nothing for the file; the change's story says so.
	UncoveredWarn UncoveredPolicy = "warn"
	// UncoveredIgnore is as if all files matched Uncovered.Ignore.
	UncoveredIgnore UncoveredPolicy = "ignore"
)

// Uncovered is what a change means to files that no target covers: nothing that steps verify depends on them, as far
// as the targets say.
type Uncovered struct {
	Policy UncoveredPolicy `yaml:"policy" enum:"whole_repository,warn,ignore"`
	// Ignore are patterns of files for which nothing has to be built if no target covers them, such as documents:
	// relative to the repository's root, * ? [a-z] and ** as in Input.
	Ignore []string `yaml:"ignore" maximum:"1000"`
}

// Bazel is how targets are queried, and how they are verified. A query may take Analysis.Timeout.
type Bazel struct {
	// Binary is a name in Steps.Environment.Path, or an absolute path.
	Binary string `yaml:"binary" minimum:"1" maximum:"4096" pattern:"line"`
	// StartupFlags and QueryFlags are given to each query, before those of the adapter, which win.
	StartupFlags []string `yaml:"startup_flags" maximum:"100"`
	QueryFlags   []string `yaml:"query_flags" maximum:"100"`
	// Heap bounds the memory of Bazel's server, Output what one query prints.
	Heap   Size `yaml:"heap" minimum:"128MiB" maximum:"1TiB"`
	Output Size `yaml:"output" minimum:"1MiB" maximum:"64GiB"`
	// Build and Test are the commands that verify a rule, {label} in them is its label. Empty: Binary's own.
	Build []string `yaml:"build" maximum:"1000"`
	Test  []string `yaml:"test" maximum:"1000"`
}

// Input is files on which the targets of some folders depend. Patterns are relative
// to the repository's root: * ? and [a-z] stay within a name, ** between slashes is
// any number of folders, at the end everything below.
type Input struct {
	// Folders are patterns of the folders; none means all.
	Folders []string `yaml:"folders" maximum:"100"`
	Files   []string `yaml:"files" required:"true" minimum:"1" maximum:"100"`
}

// Step is one command, run in a worktree.
type Step struct {
	Name string `yaml:"name" required:"true" pattern:"name"`
	// Run is the program and its arguments, as they are: no shell reads them.
	Run []string `yaml:"run" required:"true" minimum:"1" maximum:"1000"`
	// Dir is the folder that it runs in, relative to the tree's root; "" for the root.
	Dir string `yaml:"dir" maximum:"4096" pattern:"line"`
	// Timeout is Steps.Timeout unless given.
	Timeout time.Duration `yaml:"timeout" minimum:"1s" maximum:"24h"`
	// Caches are names from Steps.Caches, or of standard ones.
	Caches []string `yaml:"caches" maximum:"100"`
	// Secrets are names from Steps.Secrets.
	Secrets []string `yaml:"secrets" maximum:"100"`
	// Image is the container image that it runs in, with its digest.
	Image string `yaml:"image" maximum:"330" pattern:"line"`
	// Exclusive is what no other step of the queue has at the same time.
	Exclusive []string `yaml:"exclusive" maximum:"100"`
	// Resources are amounts, by names from Builder.Resources.
	Resources map[string]int `yaml:"resources" maximum:"100" keys:"resource"`
	// RunsOn are labels of the machine that it runs on, from Builder.Labels.
	RunsOn []string `yaml:"runs_on" maximum:"100"`
}

// Limits bound what one queue holds; a request beyond them is refused.
type Limits struct {
	// Pending is the number of pending changes.
	Pending int `yaml:"pending" minimum:"1" maximum:"100000"`
	// Stack is the number of entries of one change.
	Stack int `yaml:"stack" minimum:"1" maximum:"1000"`
	// Requires is the number of changes that one change may require (M5a).
	Requires int `yaml:"requires" minimum:"0" maximum:"1000"`
}

// Admission is how requests are taken.
type Admission struct {
	// Patience is how long a request waits for a repository that does not answer before it is refused.
	Patience time.Duration `yaml:"patience" minimum:"1s" maximum:"1h"`
}

// Base says how targets are proven that the mainline had before the queue (M23b).
type Base struct {
	// Prove says when targets that nothing has proven there are verified: while workers are idle, or only once a change fails
	// in one.
	Prove string `yaml:"prove" enum:"idle,when_needed"`
}

// When Base.Prove has targets of the mainline verified.
const (
	ProveIdle       = "idle"
	ProveWhenNeeded = "when_needed"
)

// Pool is the workers of all builders that serve the same queues.
type Pool struct {
	// Workers is how many steps run at the same time.
	Workers int `yaml:"workers" minimum:"1" maximum:"100000"`
}

// hasPool reports whether a pool is configured, or is that of this process's builder.
func (c *Configuration) hasPool(name string) bool {
	_, given := c.Pools[name]
	return given || name == c.Builder.Pool
}

// poolWorkers returns how many workers a pool has: what is configured, else those of this process's builder. It is 0 for a pool
// that is not there.
func (c *Configuration) poolWorkers(name string) int {
	if p, given := c.Pools[name]; given {
		return p.Workers
	}
	if name == c.Builder.Pool {
		return c.Builder.Workers
	}
	return 0
}

// DefaultPool is the pool of queues and builders that name none.
const DefaultPool = "default"

// Builder configures the step workers of one process.
type Builder struct {
	// Pool is what the workers belong to: they run steps of its queues.
	Pool string `yaml:"pool" pattern:"name"`
	// Workers is how many steps this process runs at the same time.
	Workers int `yaml:"workers" minimum:"1" maximum:"4096"`
	// Lease is how long a worker that has gone silent keeps its step (M27).
	Lease time.Duration `yaml:"lease" minimum:"1s" maximum:"10m"`
	// MemoryLimit bounds all processes of a step together. Nil: half of the machine's memory.
	MemoryLimit *Size `yaml:"memory_limit" minimum:"16MiB" maximum:"16TiB"`
	// ProcessLimit bounds the processes of a step and their threads. Nil: half of what the machine allows the service's user, divided among the workers.
	ProcessLimit *int `yaml:"process_limit" minimum:"32" maximum:"4194304"`
	// ContainerRuntime is the path of docker or podman, for steps with an image. Empty: the one on PATH of steps, if any.
	ContainerRuntime string `yaml:"container_runtime" maximum:"4096" pattern:"line"`
	// Resources is how much this builder has of what steps name, in units of your choice.
	Resources map[string]int `yaml:"resources" maximum:"100" keys:"resource"`
	// Labels are names of what this machine is or has. Steps name those that they need.
	Labels []string `yaml:"labels" maximum:"100"`
	// Outputs is where builders share the outputs of steps.
	Outputs SharedOutputs `yaml:"outputs"`
	// Remember is how many target versions a queue remembers results of, besides those of pending changes: who submits
	// a change once more, or reverts one, within so many finds them proven.
	Remember int `yaml:"remember" minimum:"1" maximum:"16777216"`
}

// Broker is where the topics are.
type Broker struct {
	// Brokers are host:port. Empty: only `landfall up`, with its embedded broker.
	Brokers []string `yaml:"brokers" maximum:"100"`
	// SecretFile has the secret that an embedded broker asks for. Empty: if one of Brokers is the embedded broker of Data, that of
	// its own file, else none.
	SecretFile string     `yaml:"secret_file" maximum:"4096"`
	TLS        BrokerTLS  `yaml:"tls"`
	SASL       BrokerSASL `yaml:"sasl"`
	// Partitions of every topic. It never changes once the topics exist.
	Partitions int `yaml:"partitions" minimum:"1" maximum:"1024"`
	// Replication is the number of copies of every partition.
	Replication int `yaml:"replication" minimum:"1" maximum:"15"`
	// Archive has the log's old records.
	Archive Archive `yaml:"archive"`
}

// Gateway configures the API.
type Gateway struct {
	// Listen is host:port; port 0 takes a free one.
	Listen string `yaml:"listen" minimum:"1" maximum:"300" pattern:"line"`
	// Hosts are the names by which people reach it, besides localhost and IP addresses: it answers requests for no others.
	Hosts []string `yaml:"hosts" maximum:"100"`
	// URL is where people and programs reach it: what links to it begin with. Empty: links are paths.
	URL string `yaml:"url" maximum:"2000" pattern:"line"`
	// TLS is what it serves with. The zero value: it serves in the clear.
	TLS GatewayTLS `yaml:"tls"`
	// Proxies are the networks of the proxies before it: of a request from there the client's address is that in X-Forwarded-For.
	Proxies []string `yaml:"proxies" maximum:"100"`
}

// GatewayTLS names the files of the gateway's certificate and key, in PEM. Both are given, or none. They are read again when they
// change.
type GatewayTLS struct {
	Certificate string `yaml:"certificate" maximum:"4096" pattern:"line"`
	Key         string `yaml:"key" maximum:"4096" pattern:"line"`
}

// On reports whether the gateway serves with TLS.
func (t GatewayTLS) On() bool { return t.Certificate != "" }

// Outcomes says how landfall.outcomes is written.
type Outcomes struct {
	Format string `yaml:"format" enum:"json,protobuf"`
}

// Values of Outcomes.Format.
const (
	OutcomesJSON     = "json"
	OutcomesProtobuf = "protobuf"
)

// Snapshots are kept of the state of services, so that their next start is short. They are in Data.
type Snapshots struct {
	// After is how many records come between two snapshots, at least.
	After int `yaml:"after" minimum:"1" maximum:"1000000000"`
	// Every is the time between two snapshots, at least.
	Every time.Duration `yaml:"every" minimum:"100ms" maximum:"24h"`
}

// ClickHouse is where the history is kept.
type ClickHouse struct {
	// DSN is clickhouse://user:password@host:port/database, of the native protocol. Empty: `landfall up` runs
	// one of its own where it is installed, and the historian alone takes it from elsewhere.
	DSN string `yaml:"dsn" maximum:"2000" pattern:"line"`
	// Cluster is the name of the cluster that tables are made on, replicated. Empty: a single server.
	Cluster string `yaml:"cluster" maximum:"200" pattern:"line"`
}

// Queue returns the queue of that name. The error is ErrUnknownQueue, with the
// names there are.
func (c *Configuration) Queue(name string) (Queue, error) {
	queue, known := c.Queues[name]
	if !known {
		return Queue{}, fmt.Errorf("%w %s: %s", ErrUnknownQueue, quote(name), adviseName(name, c.QueueNames()))
	}
	return queue, nil
}

// RepositoryOf returns the repository that a queue of this configuration lands on.
func (c *Configuration) RepositoryOf(queue Queue) Repository {
	return c.Repositories[queue.Repository]
}

// QueueNames returns the names of all queues, sorted. Iterate over these, not over
// the map.
func (c *Configuration) QueueNames() []string {
	return slices.Sorted(maps.Keys(c.Queues))
}

// ClosedQueues returns the names of the queues whose steps run in closed workspaces, sorted.
func (c *Configuration) ClosedQueues() []string {
	return slices.DeleteFunc(c.QueueNames(), func(name string) bool { return c.Queues[name].Steps.Workspace != WorkspaceClosed })
}

// repositoryNames returns the names of all repositories, sorted.
func (c *Configuration) repositoryNames() []string {
	return slices.Sorted(maps.Keys(c.Repositories))
}

// List returns PATH and the variables as NAME=value, sorted by name.
func (e Environment) List() []string {
	names := slices.Sorted(maps.Keys(e.Variables))
	list := make([]string, 0, len(names)+1)
	for _, name := range names {
		list = append(list, name+"="+e.Variables[name])
	}
	list = append(list, "PATH="+e.Path)
	slices.SortFunc(list, compareVariables)
	return list
}
