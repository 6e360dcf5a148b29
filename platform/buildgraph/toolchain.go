package buildgraph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"landfall.build/platform/configuration"
)

// toolAnswers is how long a tool may take to say its version; the go command may have to fetch what GOTOOLCHAIN names.
const toolAnswers = time.Minute

// versionCommands are what is asked of an adapter's tool, by adapter.
var versionCommands = map[configuration.Adapter][]string{
	configuration.AdapterGo:     {"go", "env", "GOVERSION"},
	configuration.AdapterNode:   {"node", "--version"},
	configuration.AdapterCargo:  {"rustc", "--version"},
	configuration.AdapterPython: {"python3", "--version"},
}

// WithToolchains returns the analysis of a queue in which each adapter says what its code is built with: where the settings do
// not, what the tools say that steps see now. The error names those that say nothing, for whom the setting stays empty.
func WithToolchains(ctx context.Context, queue configuration.Queue) (configuration.Analysis, error) {
	analysis := queue.Analysis
	analysis.Adapters = slices.Clone(analysis.Adapters)
	var failed []error
	ask := func(adapter configuration.Adapter, toolchain *string) {
		if command := versionCommands[adapter]; command != nil && *toolchain == "" {
			version, err := Toolchain(ctx, queue.Steps.Environment, command...)
			if err != nil {
				failed = append(failed, err)
			}
			*toolchain = version
		}
	}
	for i := range analysis.Adapters {
		ask(analysis.Adapters[i].Adapter, &analysis.Adapters[i].Toolchain)
	}
	if len(analysis.Adapters) == 0 {
		ask(analysis.Adapter, &analysis.Toolchain)
	}
	return analysis, errors.Join(failed...)
}

// Toolchain asks a tool that a queue's steps see which version it is. What a go.mod or rust-toolchain asks for besides is in the hashes anyway.
// So it is started in the root folder: rustup and others run what a file names there or above, and above a temporary folder everybody may
// leave one.
func Toolchain(ctx context.Context, environment configuration.Environment, command ...string) (string, error) {
	program := ""
	for folder := range strings.SplitSeq(environment.Path, ":") {
		file := filepath.Join(folder, command[0])
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			program = file
			break
		}
	}
	if program == "" {
		return "", fmt.Errorf("there is no %s on the PATH of steps, %s", command[0], environment.Path)
	}
	home, err := os.MkdirTemp("", "landfall-tool-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	ctx, cancel := context.WithTimeout(ctx, toolAnswers)
	defer cancel()
	asked := exec.CommandContext(ctx, program, command[1:]...)
	asked.Dir = "/"
	asked.Env = environment.List()
	// Steps have an empty HOME of their own; without one go has no place for its cache.
	if !slices.ContainsFunc(asked.Env, func(entry string) bool { return strings.HasPrefix(entry, "HOME=") }) {
		asked.Env = append(asked.Env, "HOME="+home)
	}
	var said, complaint bytes.Buffer
	asked.Stdout, asked.Stderr = &said, &complaint
	asked.WaitDelay = time.Second
	if err := asked.Run(); err != nil {
		return "", fmt.Errorf("%s does not print its version: %w: %s", program, err, strings.ToValidUTF8(strings.TrimSpace(complaint.String()), "\uFFFD"))
	}
	version := strings.TrimSpace(said.String())
	if version == "" || len(version) > 200 || strings.ContainsFunc(version, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", fmt.Errorf("%s prints the version %q, which is none", program, version)
	}
	return version, nil
}
