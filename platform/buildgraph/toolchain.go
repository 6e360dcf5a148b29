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

// goAnswers is how long the go command may take to say its version; it may have to fetch what GOTOOLCHAIN names.
const goAnswers = time.Minute

// WithToolchains returns the analysis of a queue in which each adapter says what its code is built with: where the settings do
// not, what the tools say that steps see now. The error names those that say nothing, for whom the setting stays empty.
func WithToolchains(ctx context.Context, queue configuration.Queue) (configuration.Analysis, error) {
	analysis := queue.Analysis
	if len(analysis.Adapters) == 0 {
		if analysis.Adapter != configuration.AdapterGo || analysis.Toolchain != "" {
			return analysis, nil
		}
		var err error
		analysis.Toolchain, err = Toolchain(ctx, queue.Steps.Environment)
		return analysis, err
	}
	analysis.Adapters = slices.Clone(analysis.Adapters)
	var failed []error
	for i, use := range analysis.Adapters {
		if use.Adapter != configuration.AdapterGo || use.Toolchain != "" {
			continue
		}
		version, err := Toolchain(ctx, queue.Steps.Environment)
		if err != nil {
			failed = append(failed, err)
		}
		analysis.Adapters[i].Toolchain = version
	}
	return analysis, errors.Join(failed...)
}

// Toolchain asks the go command that a queue's steps see which version it is, in an empty folder: what a go.mod
// or go.work asks for besides is in the hashes anyway.
func Toolchain(ctx context.Context, environment configuration.Environment) (string, error) {
	program := ""
	for folder := range strings.SplitSeq(environment.Path, ":") {
		file := filepath.Join(folder, "go")
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			program = file
			break
		}
	}
	if program == "" {
		return "", fmt.Errorf("there is no go command on the PATH of steps, %s", environment.Path)
	}
	dir, err := os.MkdirTemp("", "landfall-go-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, goAnswers)
	defer cancel()
	command := exec.CommandContext(ctx, program, "env", "GOVERSION")
	command.Dir = dir
	command.Env = environment.List()
	// Steps have an empty HOME of their own; without one go has no place for its cache.
	if !slices.ContainsFunc(command.Env, func(entry string) bool { return strings.HasPrefix(entry, "HOME=") }) {
		command.Env = append(command.Env, "HOME="+dir)
	}
	var said, complaint bytes.Buffer
	command.Stdout, command.Stderr = &said, &complaint
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s does not print its version: %w: %s", program, err, strings.ToValidUTF8(strings.TrimSpace(complaint.String()), "\uFFFD"))
	}
	version := strings.TrimSpace(said.String())
	if version == "" || len(version) > 200 || strings.ContainsFunc(version, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", fmt.Errorf("%s prints the version %q, which is not one of Go", program, version)
	}
	return version, nil
}
