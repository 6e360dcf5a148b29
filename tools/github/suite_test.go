package github_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"landfall.build/services/builder/execution"
	"landfall.build/tools/hosttest"
)

// binary is the command that is tested, in a folder that is removed in the end. It is built for those tests that run it.
var binary = sync.OnceValue(func() string {
	if built := os.Getenv("LANDFALL_TEST_GITHUB_BINARY"); built != "" {
		return built // for the suite on a fake that breaks a rule
	}
	path, err := hosttest.Build(folder)
	if err != nil {
		panic(err)
	}
	return path
})

var folder string

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	var err error
	if folder, err = os.MkdirTemp("", "landfall"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// server is the fake as the suite takes it, with an App that answers or with an account.
func server(app bool) hosttest.Server {
	s := hosttest.Server{Binary: binary(), New: func(t *testing.T) hosttest.Host { return newFake(t, app) }, Strategy: "merge", Closes: []string{"squash", "rebase"}, Tries: true}
	if os.Getenv("LANDFALL_TEST_GITHUB_BREAKS") != "" {
		s.Patience = 20 * time.Second
	}
	return s
}

func TestAnAppOfGitHubIsAHost(t *testing.T) { slow(t); hosttest.Run(t, server(true)) }

func TestAnAccountOfGitHubIsAHost(t *testing.T) { slow(t); hosttest.Run(t, server(false)) }

// slow skips what waits for minutes, but in make test-all.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		t.Skip("LANDFALL_TEST_SLOW is not set: the suite of code hosts takes minutes")
	}
}
