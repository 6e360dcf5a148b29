// Package replaytest lends tests of whole pipelines the check that the cores, run again, say what they wrote.
package replaytest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"landfall.build/tools/replay"
)

// patience is how long the verification of a test's log may take.
const patience = 2 * time.Minute

// AtEnd verifies, when the test is over and everything that it started is closed, the log at the brokers, or, if
// none are named, the one in the data directory. A log without any record of the cores is nothing to verify, and no
// fault: what the test is about may be that nothing is written.
//
// Call it before anything is started on the log: what is registered first ends last.
func AtEnd(t testing.TB, brokers []string, data string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if _, err := os.Stat(filepath.Join(data, "broker")); len(brokers) == 0 && errors.Is(err, os.ErrNotExist) {
			return // nothing was started
		}
		logger := slog.New(slog.NewTextHandler(t.Output(), nil))
		log, done, err := replay.Source{Brokers: brokers, Data: data}.Open(ctx, logger)
		if err != nil {
			t.Errorf("the log that the test made cannot be read again: %v", err)
			return
		}
		defer done()
		if err := replay.VerifyQuietly(ctx, log, logger); err != nil && !errors.Is(err, replay.ErrNothing) {
			t.Errorf("the log that the test made: %v", err)
		}
	})
}
