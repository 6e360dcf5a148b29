package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/platform/buildgraph/manifest"
	"landfall.build/platform/configuration"
	"landfall.build/services/gateway/api"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/embedded/stack"
	"landfall.build/tools/remote"
	"landfall.build/tools/shadow"
)

const defaultConfig = "landfall.config.yaml"

// defaults do not have the PATH of this process: what a step finds must not depend on who starts a service.
func defaults() configuration.Defaults {
	return configuration.Defaults{Workers: runtime.NumCPU()}
}

func upCommand() *cobra.Command {
	var file, branch, data, listen, path, metrics string
	var openNetwork, shadowed bool
	var last int
	var logs logging
	c := &cobra.Command{
		Use:   "up [REPOSITORY…]",
		Short: "Run everything here, for one or more repositories",
		Long: "Run the log and all services in this process.\n\nWith REPOSITORY (a path or URL) each one gets a queue named after it, on --branch (by default the\nrepository's own: what HEAD is on in a bare one), with default settings and the adapters for what it holds.\n" +
			"Without, the configuration file says which queues there are.",
		RunE: func(cmd *cobra.Command, args []string) error {
			logger, err := logs.logger()
			if err != nil {
				return err
			}
			var config *configuration.Configuration
			if len(args) > 0 {
				config, err = configurationFor(cmd.Context(), args, branch, path)
			} else if path != "" {
				err = errors.New("--path is for repositories on the command line; a configuration file has steps.environment.path")
			} else {
				config, err = loadConfiguration(file)
			}
			if err != nil {
				return err
			}
			if shadowed {
				for name, q := range config.Queues {
					q.Shadow = configuration.On
					config.Queues[name] = q
				}
			}
			for _, name := range config.QueueNames() {
				q := config.Queues[name]
				// A disk may still be mounted, and a permission changed: it is only a warning.
				url := config.RepositoryOf(q).URL
				path, err := remote.Local(cmd.Context(), url)
				if err == nil && (path != "" || len(args) > 0) {
					err = remote.CheckBranch(cmd.Context(), url, q.Branch)
				}
				if err == nil && path != "" && q.Shadow != configuration.On {
					err = remote.CheckPush(cmd.Context(), path, q.Branch)
				}
				if err != nil && len(args) > 0 {
					return err
				} else if err != nil {
					logger.Warn("nothing will land in this queue", "queue", name, "error", err)
				}
			}
			if data != "" {
				config.Data = data
			}
			if listen != "" {
				config.Gateway.Listen = listen
			}
			if openNetwork {
				config.Access.OpenNetwork = configuration.On
			}
			if err := config.CheckOpen(); err != nil {
				return err
			}
			if config.Data, err = filepath.Abs(config.Data); err != nil {
				return err
			}
			if err := shadow.Check(config); err != nil {
				return err
			}
			followers, err := shadow.Prepare(cmd.Context(), shadow.Options{Configuration: config, Logger: logger, Last: last})
			if err != nil {
				return err
			}
			defer shadow.Close(followers)
			if len(args) > 0 {
				fitAdapters(cmd.Context(), config, logger, os.Stderr)
			}
			for {
				err := runStack(cmd.Context(), stack.Options{Configuration: config, Logger: logger, Version: version, History: true, Metrics: metrics, Program: program()}, followers)
				changed, is := errors.AsType[stack.ToolsChangedError](err)
				if !is {
					return err
				}
				fmt.Fprintf(os.Stderr, "landfall starts again: %v\n", changed)
			}
		},
	}
	c.Flags().StringVar(&file, "config", defaultConfig, "configuration file")
	c.Flags().StringVar(&branch, "branch", "", "mainline of the repositories given (default: the repository's; for a URL, main)")
	c.Flags().StringVar(&path, "path", "", "PATH of steps for the repositories given; \"$PATH\" for yours (default "+configuration.DefaultPath+")")
	c.Flags().BoolVar(&shadowed, "shadow", false, "follow what others land, decide and build as configured, and push nothing (landfall analytics reports)")
	c.Flags().IntVar(&last, "shadow-last", 0, "have a new shadow begin with the newest `COMMITS` of the mainline")
	c.Flags().StringVar(&data, "data", "", "data directory (default: the configuration's)")
	c.Flags().StringVar(&listen, "listen", "", "address of the gateway (default: the configuration's)")
	c.Flags().BoolVar(&openNetwork, "open-network", false, "let whoever reaches --listen from other machines land and steer (access.open_network)")
	logs.flags(c, "warn")
	metricsFlag(c, &metrics)
	return c
}

// runStack runs everything until the context ends or a part of it fails, and says on standard error where it is.
func runStack(ctx context.Context, o stack.Options, followers []*shadow.Follower) error {
	s, err := stack.Start(ctx, o)
	if err != nil {
		return err
	}
	defer s.Close()
	defer shadow.Follow(ctx, followers, s.Backend())()
	config := o.Configuration
	if err := untilRead(ctx, s); err != nil || ctx.Err() != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "landfall is up: %s, log at %s, data in %s\n", s.URL(), strings.Join(s.Brokers(), ","), config.Data)
	for _, name := range config.QueueNames() {
		q := config.Queues[name]
		if i := slices.IndexFunc(followers, func(f *shadow.Follower) bool { return f.Queue() == name }); i >= 0 {
			fmt.Fprintf(os.Stderr, "  queue %s: a shadow of %s of %s, to which nothing is pushed\n", name, q.Branch, followers[i].Followed())
		} else {
			fmt.Fprintf(os.Stderr, "  queue %s: %s of %s\n", name, q.Branch, config.RepositoryOf(q).URL)
		}
		fmt.Fprintf(os.Stderr, "    PATH of steps: %s\n", q.Steps.Environment.Path)
	}
	fmt.Fprintf(os.Stderr, "  web page: %s/\n", s.URL())
	fmt.Fprintf(os.Stderr, "  %s\n", s.History())
	if config.Access.Mode == configuration.AccessOpen {
		fmt.Fprintf(os.Stderr, "  access is open: whoever reaches %s may land and steer, under any name\n", s.URL())
	} else {
		fmt.Fprintf(os.Stderr, "  access: tokens (landfall token create --direct makes the first one), and people that access.rules name\n")
	}
	if url := s.MetricsURL(); url != "" {
		fmt.Fprintf(os.Stderr, "  metrics and health: %s/metrics, /readyz\n", url)
	}
	if len(followers) < len(config.Queues) {
		fmt.Fprintf(os.Stderr, "land a change with: landfall land --server %s REF\n", s.URL())
	}
	if len(followers) > 0 {
		fmt.Fprintf(os.Stderr, "see what the queue would have done: landfall analytics --server %s\n", s.URL())
	}
	for _, over := range config.Over(time.Now()) {
		fmt.Fprintf(os.Stderr, "  warning: %s\n", over)
	}
	select {
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr, "landfall ends: steps are stopped, and the log is closed, which takes some seconds; Ctrl-C once more ends it at once")
		return nil
	case err := <-s.Failed():
		return err
	}
}

// untilRead waits until the gateway has read the log, and says so on standard error if that takes over a second. It returns what a service
// fails with meanwhile, and nil once the context has ended.
func untilRead(ctx context.Context, s *stack.Stack) error {
	// It asks itself, whatever proxy the environment names and wherever the name of its certificate leads.
	direct := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.Address())
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	defer direct.CloseIdleConnections()
	for began, said := time.Now(), false; ctx.Err() == nil; {
		if read(ctx, direct, s.URL()) {
			return nil
		}
		if !said && time.Since(began) > time.Second {
			said = true
			fmt.Fprintln(os.Stderr, "landfall reads its log ...")
		}
		select {
		case <-ctx.Done():
		case err := <-s.Failed():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// read reports whether the gateway at the URL has read what was in the log when it started.
func read(ctx context.Context, direct *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	answer, err := direct.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return true
	}
	var why api.Failure
	return json.NewDecoder(io.LimitReader(answer.Body, 1<<16)).Decode(&why) == nil && why.Error.Code != "" && why.Error.Code != api.CodeNotReady
}

var notName = regexp.MustCompile(`[^a-z0-9._-]+`)

// configurationFor is a configuration of one queue for each repository, with default settings.
func configurationFor(ctx context.Context, repositories []string, branch, stepPath string) (*configuration.Configuration, error) {
	d := defaults()
	for folder := range strings.SplitSeq(stepPath, ":") {
		if stepPath != "" && !filepath.IsAbs(folder) {
			return nil, fmt.Errorf("--path has %q in it; give absolute folders only, separated by colons", folder)
		}
	}
	d.Path = stepPath
	config := configuration.New(d)
	config.Version = 1
	config.Repositories, config.Queues = map[string]configuration.Repository{}, map[string]configuration.Queue{}
	for _, url := range repositories {
		path, err := remote.Local(ctx, url)
		if err != nil {
			return nil, err
		}
		mainline := branch
		if path != "" {
			url = path
		}
		switch {
		case mainline != "":
		case path != "":
			mainline = remote.Mainline(ctx, path)
		default:
			mainline = remote.FallbackBranch
		}
		name := strings.Trim(notName.ReplaceAllString(strings.ToLower(strings.TrimSuffix(filepath.Base(url), ".git")), "-"), "-._")
		if name == "" {
			name = "main"
		}
		if _, taken := config.Queues[name]; taken {
			return nil, fmt.Errorf("two repositories are named %s; write a configuration file (%s) that names their queues", name, defaultConfig)
		}
		r := configuration.NewRepository(name)
		r.URL = url
		q := configuration.NewQueue(name, d)
		q.Repository, q.Branch = name, mainline
		q.Steps.Workspace = configuration.WorkspaceClosed
		config.Repositories[name], config.Queues[name] = r, q
	}
	return config, nil
}

func loadConfiguration(file string) (*configuration.Configuration, error) {
	config, err := configuration.Load(file, defaults())
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no configuration %s; name a repository (landfall up PATH) or have landfall init write one", file)
	}
	return config, err
}

func validateCommand() *cobra.Command {
	var asJSON bool
	var named string
	c := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a configuration file, and say everything that is wrong with it",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := named
			if len(args) > 0 {
				if cmd.Flags().Changed("config") {
					return errors.New("name the file once: either as an argument or with --config")
				}
				file = args[0]
			}
			config, err := loadConfiguration(file)
			if err != nil && filepath.Base(file) == manifest.FileName {
				return fmt.Errorf("%s is by its name a manifest of targets, which `landfall targets` checks; this checks the configuration of a queue, such as %s", file, defaultConfig)
			}
			if asJSON {
				var problems configuration.Problems
				if err != nil && !errors.As(err, &problems) {
					return err
				}
				out := struct {
					Valid    bool                   `json:"valid"`
					Problems configuration.Problems `json:"problems"`
					// Paths is PATH of steps by queue.
					Paths map[string]string `json:"path_of_steps,omitempty"`
					// Warnings are about what is valid, and has a risk.
					Warnings []string `json:"warnings,omitempty"`
				}{err == nil, problems, pathsOf(config), warningsOf(config)}
				if out.Problems == nil {
					out.Problems = configuration.Problems{}
				}
				if werr := json.NewEncoder(cmd.OutOrStdout()).Encode(out); werr != nil {
					return werr
				}
			} else if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is valid\n", file)
				paths := pathsOf(config)
				for _, name := range config.QueueNames() {
					fmt.Fprintf(cmd.OutOrStdout(), "  queue %s: PATH of steps is %s\n", name, paths[name])
				}
				for _, warning := range warningsOf(config) {
					fmt.Fprintf(cmd.OutOrStdout(), "  warning: %s\n", warning)
				}
			}
			return err
		},
	}
	c.Flags().StringVar(&named, "config", defaultConfig, "the file, as in the other commands")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON value")
	return c
}

// pathsOf returns the PATH of steps by queue, nil for a configuration that is not valid.
func pathsOf(config *configuration.Configuration) map[string]string {
	if config == nil {
		return nil
	}
	paths := map[string]string{}
	for name, queue := range config.Queues {
		paths[name] = queue.Steps.Environment.Path
	}
	return paths
}

// warningsOf returns what a valid configuration risks.
func warningsOf(config *configuration.Configuration) (list []string) {
	if config == nil {
		return nil
	}
	if b := config.Broker; b.TLS.Enabled != configuration.On && (b.SASL.Mechanism == configuration.SASLPlain || b.SASL.Mechanism == configuration.SASLOAuth) {
		list = append(list, fmt.Sprintf("broker: sasl.mechanism %s without tls sends the secret readable over the network", b.SASL.Mechanism))
	}
	if err := config.CheckOpen(); err != nil {
		// A warning: other services run with this file, and a flag may name another address.
		list = append(list, fmt.Sprintf("the gateway does not start with this: %v", err))
	}
	for _, name := range config.QueueNames() {
		queue := config.Queues[name]
		steps := queue.Steps
		for _, open := range steps.OpenCaches() {
			list = append(list, fmt.Sprintf("queue %s: %s. %s", name, open.Risk(), queue.Advice(open)))
		}
		for _, cache := range steps.SharedCaches() {
			list = append(list, fmt.Sprintf("queue %s: the share of cache %s is %s: a change can leave a forged result there, which the step of another one uses", name, cache, steps.Caches[cache].Share))
		}
	}
	return append(list, config.Over(time.Now())...)
}

func brokerCommand() *cobra.Command {
	var file, data, listen string
	var logs logging
	c := &cobra.Command{
		Use:   "broker",
		Short: "Run the development broker alone",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := logs.logger()
			if err != nil {
				return err
			}
			if data == "" {
				config, err := loadConfiguration(file)
				if err != nil {
					return err
				}
				data = filepath.Join(config.Data, "broker")
				if len(config.Broker.Brokers) == 1 && listen == "" {
					listen = config.Broker.Brokers[0]
				}
			}
			b, err := broker.Start(cmd.Context(), broker.Options{Dir: data, Listen: listen, Log: logger})
			if err != nil {
				return err
			}
			defer b.Close()
			fmt.Fprintf(os.Stderr, "the log is at %s, its secret in %s\n", b.Addr(), b.SecretFile())
			<-cmd.Context().Done()
			return nil
		},
	}
	c.Flags().StringVar(&file, "config", defaultConfig, "configuration file")
	c.Flags().StringVar(&data, "data", "", "folder of the log (default: broker, in the configuration's data directory)")
	c.Flags().StringVar(&listen, "listen", "", "address, e.g. 127.0.0.1:9092 (default: the configuration's broker, else any free port)")
	logs.flags(c, "warn")
	return c
}
