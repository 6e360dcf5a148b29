package execution

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// TestCaptureEqualsKeepingEverything compares with a twin that keeps all of the
// output and cuts it at the end.
func TestCaptureEqualsKeepingEverything(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		limit := random.Int64N(3 * TailLimit)
		var log, all bytes.Buffer
		output := newCapture(&log, limit, nil)
		for range random.IntN(12) {
			chunk := bytes.Repeat([]byte{byte('a' + random.IntN(26))}, random.IntN(2+random.IntN(2*TailLimit)))
			all.Write(chunk)
			_, _ = output.Write(chunk)
		}
		output.finish()
		whole := all.Bytes()
		if got, want := output.tail(), whole[max(0, len(whole)-TailLimit):]; !bytes.Equal(got, want) {
			t.Fatalf("the tail of %d bytes has %d, want %d", len(whole), len(got), len(want))
		}
		if output.total != int64(len(whole)) || output.truncated() != (int64(len(whole)) > limit) {
			t.Fatalf("counted %d of %d, truncated %v", output.total, len(whole), output.truncated())
		}
		want := slices.Clone(whole)
		if int64(len(whole)) > limit {
			end := whole[max(int(limit), len(whole)-TailLimit):]
			if !bytes.HasPrefix(log.Bytes(), whole[:limit]) || !bytes.HasSuffix(log.Bytes(), end) {
				t.Fatal("the log lacks the start or the end of the output")
			}
			if int(limit)+len(end) < len(whole) {
				continue // a line about the gap stands between
			}
		}
		if !bytes.Equal(log.Bytes(), want) {
			t.Fatalf("the log has %d bytes of %d", log.Len(), len(want))
		}
	}
}

func FuzzTailIsShortValidText(f *testing.F) {
	f.Add([]byte("plain"), 1)
	f.Add([]byte(strings.Repeat("é", TailLimit)), 1)
	f.Add([]byte("a"+strings.Repeat("😀", TailLimit/4)), 3)
	f.Add(bytes.Repeat([]byte{0xff, 'a'}, TailLimit), 7)
	f.Add(bytes.Repeat([]byte{0x80}, TailLimit+5), 1000)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		size = max(1, min(size, 1<<16))
		output := newCapture(nil, 10, nil)
		for chunk := range slices.Chunk(data, size) {
			_, _ = output.Write(chunk)
		}
		tail := output.tail()
		if len(tail) > TailLimit || !utf8.Valid(tail) {
			t.Fatalf("%d bytes, valid %v", len(tail), utf8.Valid(tail))
		}
		if utf8.Valid(data) && !bytes.HasSuffix(data, tail) {
			t.Fatal("valid text was changed")
		}
		if utf8.Valid(data) && len(tail) < min(len(data), TailLimit)-utf8.UTFMax {
			t.Fatalf("only %d of %d bytes were kept", len(tail), len(data))
		}
	})
}

func TestCircumstancesOfTheWorkerSpeakForTheChange(t *testing.T) {
	exit := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	cases := []struct {
		status syscall.WaitStatus
		seen   circumstances
		want   Outcome
	}{
		{exit(0), circumstances{outOfMemory: true, diskFull: "/x"}, Passed},
		{exit(1), circumstances{}, Failed},
		{exit(1), circumstances{outOfMemory: true}, CouldNotRun},
		{exit(1), circumstances{diskFull: "/x"}, CouldNotRun},
		{syscall.WaitStatus(syscall.SIGSEGV), circumstances{}, Failed},
		{syscall.WaitStatus(syscall.SIGKILL), circumstances{}, CouldNotRun},
		{syscall.WaitStatus(syscall.SIGHUP), circumstances{}, CouldNotRun},
	}
	for _, test := range cases {
		if got, what := judgeEnd(test.status, test.seen); got != test.want {
			t.Errorf("%x with %+v: got %v (%s), want %v", test.status, test.seen, got, what, test.want)
		}
	}
	for _, full := range []bool{noRoom(0, minimumRoom, 100, 50), noRoom(1<<30, minimumRoom, 100, 0)} {
		if !full {
			t.Error("a full disk is not seen")
		}
	}
	for _, full := range []bool{noRoom(1<<30, minimumRoom, 100, 50), noRoom(1<<30, minimumRoom, 0, 0)} {
		if full {
			t.Error("a disk with room counts as full")
		}
	}
}

func TestEnvironmentIsSortedAndExtraWins(t *testing.T) {
	got := Environment("/bin", "/h", "/t", map[string]string{"LANG": "C", "GOCACHE": "/c"})
	want := []string{"CI=true", "GOCACHE=/c", "HOME=/h", "LANG=C", "PATH=/bin", "TMPDIR=/t"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}
