package gitlab_test

import (
	"testing"
	"time"

	"landfall.build/tools/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

func TestGitLabIsAHost(t *testing.T) {
	hosttest.SkipUnlessSlow(t)
	s := hosttest.Server{Binary: hosttest.Binary(), New: func(t *testing.T) hosttest.Host { return newFake(t) }, Closes: true, Pipeline: true, Tries: true}
	if hosttest.Breaks() != "" {
		s.Patience = 20 * time.Second
	}
	hosttest.Run(t, s)
}
