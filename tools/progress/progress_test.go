package progress

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressIsSilentForASecondAndThenSaysWhatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := New(&out)
		p.Begin("changes analysed", 3)
		time.Sleep(firstAfter - time.Millisecond)
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("%q before a second has passed", out.String())
		}
		p.Step()
		time.Sleep(otherwise)
		synctest.Wait()
		p.End()
		if out.String() != "1 of 3 changes analysed\n" {
			t.Errorf("%q", out.String())
		}
	})
}
