package targets

import (
	"maps"
	"slices"
	"time"
)

// Command is one step that verifies a target. Argv is started as it stands,
// never through a shell.
type Command struct {
	// Name is unique within the target and shown to people.
	Name string `json:"name"`
	// Argv is the program and its arguments.
	Argv []string `json:"run"`
	// Dir is the working directory, relative to the repository's root with
	// slashes; empty for the root.
	Dir string `json:"dir,omitempty"`
	// Timeout is the step's own limit; 0 leaves the queue's.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Env holds sorted NAME=value entries that the step sees.
	Env []string `json:"env,omitempty"`
	// Needs is what the step asks of the worker besides.
	Needs Needs `json:"needs,omitzero"`
	// Outputs are files and folders that the step leaves for those of the targets
	// that depend on this one, relative to the repository's root with slashes, sorted.
	Outputs []string `json:"outputs,omitempty"`
	// Group is how one invocation verifies the target together with others; nil if
	// none does.
	Group *Group `json:"group,omitempty"`
}

// Group is how one invocation of a tool verifies many targets: those whose steps
// differ in Argv, and in Member and Label of their groups, alone.
type Group struct {
	// Argv is the program and its arguments. The members of all targets follow.
	Argv []string `json:"run"`
	// Member is the argument for this target, and Label what results call it.
	Member string `json:"member"`
	Label  string `json:"label"`
	// Results is the format in which the tool reports the result of each.
	Results Results `json:"results"`
}

// Results is a format in which a tool reports the results of the targets of one invocation.
type Results string

const (
	// GoTest is the output of go test -json, and GoBuild that of go build -json.
	GoTest  Results = "go test"
	GoBuild Results = "go build"
	// BazelBuild and BazelTest are the build event protocol of bazel build and bazel
	// test. The flag that asks for it goes before the last word of Argv, which is --.
	BazelBuild Results = "bazel build"
	BazelTest  Results = "bazel test"
	// Lines is a file of lines such as "passed //a:b", which the tool writes itself. No
	// Member follows Argv: the labels are in a file too.
	Lines Results = "lines"
	// JUnit are files of JUnit's kind in a folder, whose test suites are named like the
	// targets. The labels are in a file, as with Lines.
	JUnit Results = "junit"
)

// Ordered reports whether the tool itself builds what a target depends on first.
func (r Results) Ordered() bool {
	return r == GoTest || r == GoBuild || r == BazelBuild || r == BazelTest
}

// Needs is what a step asks of whoever runs it. Names are sorted, and mean what
// the queue's configuration says of them.
type Needs struct {
	// Caches are folders that outlive the step.
	Caches []string `json:"caches,omitempty"`
	// Secrets are values that the step must not show.
	Secrets []string `json:"secrets,omitempty"`
	// Exclusive is what no other step of the queue has at the same time.
	Exclusive []string `json:"exclusive,omitempty"`
	// Resources are amounts of what one machine has, sorted by name.
	Resources []Resource `json:"resources,omitempty"`
	// Services run beside the step, in this order.
	Services []Service `json:"services,omitempty"`
	// Image is the container image that the step runs in, with its digest.
	Image string `json:"image,omitempty"`
	// RunsOn holds the labels that a machine must have to run the step.
	RunsOn []string `json:"runs_on,omitempty"`
}

// Service is a program that runs beside a step, from before its start to its end.
type Service struct {
	// Name is unique within the step and shown to people.
	Name string `json:"name"`
	// Argv is the program and its arguments.
	Argv []string `json:"run"`
	// Dir is as in Command.
	Dir string `json:"dir,omitempty"`
	// PortVariable has the port that it is to listen on.
	PortVariable string `json:"port_variable"`
	// HTTP is the path that answers with a status below 400 once it is ready, and
	// Probe the command that then ends with exit code 0. Without either it is ready
	// when its port takes a connection.
	HTTP  string   `json:"http,omitempty"`
	Probe []string `json:"probe,omitempty"`
	// Timeout is how long it may take to be ready; 0 leaves the builder's.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Resource is an amount of something that a machine has so much of, such as
// memory_gb. Its unit is what the configuration counts it in.
type Resource struct {
	Name   string `json:"name"`
	Amount int64  `json:"amount"`
}

// IsZero reports whether a step needs nothing.
func (n Needs) IsZero() bool {
	return len(n.Caches) == 0 && len(n.Secrets) == 0 && len(n.Exclusive) == 0 && len(n.Resources) == 0 && len(n.Services) == 0 && n.Image == "" && len(n.RunsOn) == 0
}

// Claims returns what the steps of a target take together, as they run one after
// the other: all that one of them has to itself, of each resource what the
// greediest needs, and all labels.
func Claims(commands []Command) (exclusive []string, resources []Resource, labels []string) {
	most := map[string]int64{}
	for _, c := range commands {
		exclusive, labels = append(exclusive, c.Needs.Exclusive...), append(labels, c.Needs.RunsOn...)
		for _, r := range c.Needs.Resources {
			most[r.Name] = max(most[r.Name], r.Amount)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(most)) {
		resources = append(resources, Resource{name, most[name]})
	}
	slices.Sort(exclusive)
	slices.Sort(labels)
	return slices.Compact(exclusive), resources, slices.Compact(labels)
}

// Outputs returns what the steps of a target leave for others, sorted.
func Outputs(commands []Command) (paths []string) {
	for _, c := range commands {
		paths = append(paths, c.Outputs...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func (e *encoding) commands(commands []Command) {
	e.number(uint64(len(commands)))
	for _, c := range commands {
		e.text(c.Name)
		e.texts(c.Argv)
		e.text(c.Dir)
		e.number(uint64(c.Timeout))
		e.texts(c.Env)
	}
	// Commands are the last of a target's own fields. Those that need nothing, leave
	// nothing and have no group have the hash that they had before there were any.
	defer e.outputs(commands)
	defer e.labels(commands)
	defer e.groups(commands)
	if !slices.ContainsFunc(commands, func(c Command) bool { return !c.Needs.IsZero() }) {
		return
	}
	for _, c := range commands {
		e.texts(c.Needs.Caches)
		e.texts(c.Needs.Secrets)
		e.texts(c.Needs.Exclusive)
		e.number(uint64(len(c.Needs.Resources)))
		for _, r := range c.Needs.Resources {
			e.text(r.Name)
			e.number(uint64(r.Amount))
		}
		e.number(uint64(len(c.Needs.Services)))
		for _, s := range c.Needs.Services {
			e.text(s.Name)
			e.texts(s.Argv)
			e.text(s.Dir)
			e.text(s.PortVariable)
			e.text(s.HTTP)
			e.texts(s.Probe)
			e.number(uint64(s.Timeout))
		}
		e.text(c.Needs.Image)
	}
}

func (e *encoding) labels(commands []Command) {
	for i, c := range commands {
		if len(c.Needs.RunsOn) > 0 {
			e.text("runs_on")
			e.number(uint64(i))
			e.texts(c.Needs.RunsOn)
		}
	}
}

func (e *encoding) outputs(commands []Command) {
	for i, c := range commands {
		if len(c.Outputs) > 0 {
			e.text("outputs")
			e.number(uint64(i))
			e.texts(c.Outputs)
		}
	}
}

func (e *encoding) groups(commands []Command) {
	for i, c := range commands {
		if c.Group == nil {
			continue
		}
		e.text("group")
		e.number(uint64(i))
		e.texts(c.Group.Argv)
		e.text(c.Group.Member)
		e.text(c.Group.Label)
		e.text(string(c.Group.Results))
	}
}
