package github_test

import (
	"testing"
	"time"

	"landfall.build/tools/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// server is the fake as the suite takes it, with an App that answers or with an account.
func server(app bool) hosttest.Server {
	s := hosttest.Server{Binary: hosttest.Binary(), New: func(t *testing.T) hosttest.Host {
		f := newFake(t, app)
		f.lag = 300 * time.Millisecond
		return f
	}, Closes: true, Tries: true}
	if hosttest.Breaks() != "" {
		s.Patience = 20 * time.Second
	}
	return s
}

func TestAnAppOfGitHubIsAHost(t *testing.T) {
	hosttest.SkipUnlessSlow(t)
	hosttest.Run(t, server(true))
}

func TestAnAccountOfGitHubIsAHost(t *testing.T) {
	hosttest.SkipUnlessSlow(t)
	hosttest.Run(t, server(false))
}
