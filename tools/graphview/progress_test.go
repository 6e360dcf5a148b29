package graphview

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressIsSilentForASecondAndThenSaysWhatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := newProgress(&out)
		p.begin("changes analysed", 3)
		time.Sleep(firstAfter - time.Millisecond)
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("%q before a second has passed", out.String())
		}
		p.step()
		time.Sleep(otherwise)
		synctest.Wait()
		p.end()
		if out.String() != "1 of 3 changes analysed\n" {
			t.Errorf("%q", out.String())
		}
	})
}
