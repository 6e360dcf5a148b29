package graphview

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/buildgraph/glob"
	"landfall.build/platform/configuration"
	"landfall.build/tools/remote"
)

// configurationFile is where a configuration is looked for in a repository.
const configurationFile = "landfall.config.yaml"

// settings are those of the queue that is looked through: of --config, else of the configuration that the tree
// itself has in its root, else of one that lies in the clone, else none; flags come on top. Of several trees the first has the
// configuration, and without one the adapters are those that fit any of them.
func (f *flags) settings(ctx context.Context, s *source, trees []string) (configuration.Queue, error) {
	config, where, err := f.configuration(ctx, s, trees[0])
	if err != nil {
		return configuration.Queue{}, err
	}
	queue := configuration.Queue{}
	if config != nil {
		if queue, err = f.choose(ctx, config, where); err != nil {
			return queue, err
		}
		asked := queue
		if f.config == "" {
			distrust(&queue)
			asked = queue
			asked.Steps.Environment.Variables = nil // some name programs, and where they are fetched from
		}
		if len(config.Broker.Brokers) == 0 && f.toolchain == "" {
			// As `landfall up` does; who has no go command here sees other hashes, and the same targets.
			queue.Analysis, _ = buildgraph.WithToolchains(ctx, asked)
		}
	} else if f.queue != "" {
		return queue, fmt.Errorf("--queue %s: neither is there a %s in the root of the tree or of the clone, nor --config", f.queue, configurationFile)
	}
	f.unconfigured = config == nil && f.adapter == ""
	if f.adapter != "" {
		queue.Analysis.Adapter, queue.Analysis.Adapters = configuration.Adapter(f.adapter), nil
	}
	if queue.Analysis.Adapter == "" {
		uses, err := fitting(ctx, s, trees)
		if err != nil {
			return queue, err
		}
		buildgraph.SetAdapters(&queue.Analysis, uses)
	}
	if !slices.Contains(configuration.Adapters(), queue.Analysis.Adapter) {
		return queue, fmt.Errorf("--adapter is %q; it is one of %v", f.adapter, configuration.Adapters())
	}
	if config != nil && f.config == "" && queue.Analysis.UsesAny(configuration.AdapterBazel) {
		queue.Steps.Environment.Variables = nil // Bazel runs with them; other adapters only read them
	}
	variables := maps.Clone(queue.Steps.Environment.Variables)
	if variables == nil {
		variables = map[string]string{}
	}
	maps.Copy(variables, f.variables)
	queue.Steps.Environment.Variables = variables
	for _, text := range f.inputs {
		folders, files, both := strings.Cut(text, "=")
		if !both {
			folders, files = "", text
		}
		in := configuration.Input{Files: strings.Split(files, ",")}
		if folders != "" {
			in.Folders = strings.Split(folders, ",")
		}
		for _, pattern := range slices.Concat(in.Folders, in.Files) {
			if _, err := glob.Parse(pattern); err != nil {
				return queue, fmt.Errorf("--input %q: %q is no pattern of paths; write it relative to the repository's root, without . and .. in it", text, pattern)
			}
		}
		queue.Analysis.Inputs = append(slices.Clone(queue.Analysis.Inputs), in)
	}
	for _, pattern := range f.ignore {
		if _, err := glob.Parse(pattern); err != nil {
			return queue, fmt.Errorf("--ignore %q is no pattern of paths; write it relative to the repository's root, without . and .. in it", pattern)
		}
	}
	queue.Analysis.Uncovered.Ignore = append(slices.Clone(queue.Analysis.Uncovered.Ignore), f.ignore...)
	queue.Analysis.Hubs = append(slices.Clone(queue.Analysis.Hubs), f.hubs...)
	if f.toolchain != "" {
		queue.Analysis.Toolchain = f.toolchain
	}
	if f.bazel != "" {
		queue.Analysis.Bazel.Binary = f.bazel
	}
	if config == nil {
		queue.Steps.Environment.Path = os.Getenv("PATH") // where a person has their tools
	}
	if config == nil {
		queue.Analysis.Timeout = bazelLimit
	}
	if f.timeout > 0 {
		queue.Analysis.Timeout = f.timeout
	}
	return queue, nil
}

// distrust replaces what the configuration of a repository says about programs that run here, and about what they reach: whoever looks at a
// commit need not trust it. The programs are the caller's own.
func distrust(queue *configuration.Queue) {
	own := configuration.NewQueue("", configuration.Defaults{Path: os.Getenv("PATH")})
	queue.Analysis.Bazel.Binary, queue.Analysis.Bazel.StartupFlags, queue.Analysis.Bazel.QueryFlags = own.Analysis.Bazel.Binary, nil, nil
	queue.Steps.Environment.Path = own.Steps.Environment.Path
	queue.Steps.Isolation = own.Steps.Isolation
	queue.Steps.Network, queue.Steps.NetworkDeny = own.Steps.Network, own.Steps.NetworkDeny
	queue.Steps.Read, queue.Steps.Write = own.Steps.Read, own.Steps.Write
}

// bazelLimit is how long a query of Bazel may take by default; it is part of no hash.
const bazelLimit = 20 * time.Minute

// configuration finds the configuration, nil if there is none.
func (f *flags) configuration(ctx context.Context, s *source, tree string) (*configuration.Configuration, string, error) {
	defaults := configuration.Defaults{Workers: runtime.NumCPU()}
	if f.config != "" {
		config, err := configuration.Load(f.config, defaults)
		return config, f.config, err
	}
	if f.adapter != "" && f.queue == "" {
		return nil, "", nil // somebody wants to see what another adapter sees
	}
	entries, err := s.Tree(ctx, tree)
	if err != nil {
		return nil, "", err
	}
	for _, e := range entries {
		if e.Path != configurationFile || e.Mode != 0o100644 && e.Mode != 0o100755 {
			continue
		}
		text, err := s.Blob(ctx, e.Object, configuration.MaxFileSize)
		if err != nil {
			return nil, "", fmt.Errorf("%s of the tree: %w", configurationFile, err)
		}
		config, err := configuration.Parse(text, configurationFile, defaults)
		if err != nil {
			return nil, "", fmt.Errorf("the tree's own configuration is not valid; name another with --config, or an --adapter: %w", err)
		}
		return config, "the tree's own " + configurationFile, nil
	}
	beside := filepath.Join(f.repo, configurationFile) // as landfall init writes it: in the clone, and not committed
	if _, err := os.Stat(beside); err != nil {
		return nil, "", nil
	}
	config, err := configuration.Load(beside, defaults)
	return config, beside, err
}

// choose is the queue named by --queue, or the only one there is, for this repository or at all.
func (f *flags) choose(ctx context.Context, config *configuration.Configuration, where string) (configuration.Queue, error) {
	if f.queue != "" {
		queue, err := config.Queue(f.queue)
		if err != nil {
			return queue, fmt.Errorf("--queue: %w", err)
		}
		return queue, nil
	}
	names := config.QueueNames()
	here := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !remote.Same(ctx, config.RepositoryOf(config.Queues[name]).URL, f.repo)
	})
	if len(here) == 1 {
		names = here
	}
	if len(names) != 1 {
		return configuration.Queue{}, fmt.Errorf("%s has several queues; name one with --queue: %s", where, strings.Join(names, ", "))
	}
	return config.Queues[names[0]], nil
}
