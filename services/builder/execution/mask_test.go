package execution

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

// masked is what becomes of a text that is written in chunks.
func masked(needles []needle, chunks ...[]byte) string {
	var out bytes.Buffer
	m := newMasker(needles, func(text []byte) { out.Write(text) })
	for _, c := range chunks {
		m.write(c)
		if len(m.held) > SecretLimit*2 {
			panic("the masker holds too much")
		}
	}
	m.flush()
	return out.String()
}

// naivelyMasked looks at the whole text at once.
func naivelyMasked(needles []needle, text []byte) string {
	var out bytes.Buffer
	for len(text) > 0 {
		best := needle{}
		for _, n := range needles {
			if bytes.HasPrefix(text, n.text) && len(n.text) > len(best.text) {
				best = n
			}
		}
		if len(best.text) == 0 {
			out.WriteByte(text[0])
			text = text[1:]
			continue
		}
		out.Write(best.mask)
		text = text[len(best.text):]
	}
	return out.String()
}

func TestMaskingInChunksEqualsMaskingTheWhole(t *testing.T) {
	r := seedtest.Random(t)
	for range 3000 {
		// Few letters, so that needles overlap, repeat and are prefixes of each other.
		letters := func(n int) []byte {
			text := make([]byte, n)
			for i := range text {
				text[i] = "ab\n"[r.IntN(3)]
			}
			return text
		}
		var needles []needle
		for i := range 1 + r.IntN(4) {
			needles = append(needles, needle{letters(1 + r.IntN(6)), []byte(fmt.Sprintf("<%d>", i))})
		}
		text := letters(r.IntN(60))
		var chunks [][]byte
		for rest := text; len(rest) > 0; {
			n := 1 + r.IntN(min(len(rest), 1+r.IntN(9)))
			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}
		// The production order: the longest first; of equals, the first.
		sorted := sortedNeedles(needles)
		if got, want := masked(sorted, chunks...), naivelyMasked(sorted, text); got != want {
			t.Fatalf("needles %q, chunks %q: %q, want %q", needles, chunks, got, want)
		}
	}
}

func sortedNeedles(needles []needle) []needle {
	out := append([]needle(nil), needles...)
	for i := range out {
		for j := i; j > 0 && len(out[j].text) > len(out[j-1].text); j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

func TestASecretIsMaskedInEveryFormAtEveryPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(seedtest.Of(t), 1))
	key := "-----BEGIN KEY-----\n" + strings.Repeat("c2VjcmV0IGtleSBtYXRlcmlhbA", 5) + "\nsecond line of it\n-----END KEY-----\n"
	for _, value := range []string{"hunter2!", "päss \"wörd\"/+?&=x", key, strings.Repeat("0123456789", 30)} {
		needles := needlesOf([]Secret{{Name: "TOKEN", Value: []byte(value)}})
		trimmed := strings.TrimRight(value, "\n")
		for before := range 7 {
			around := bytes.Repeat([]byte("~"), before)
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
				for _, text := range []string{value, encoding.EncodeToString([]byte(string(around) + trimmed + "tail"))} {
					text = string(around) + text + "\n"
					cut := r.IntN(len(text))
					got := masked(needles, []byte(text[:cut]), []byte(text[cut:]))
					if !strings.Contains(got, "[secret TOKEN]") {
						t.Fatalf("nothing is masked in %q", text)
					}
					if plain, err := encoding.DecodeString(strings.Trim(got, "~\n")); err == nil && strings.Contains(string(plain), trimmed) {
						t.Fatalf("%q is left of %q", got, text)
					}
					for line := range strings.Lines(trimmed) {
						if line = strings.TrimSpace(line); len(line) >= SecretMinimum && strings.Contains(got, line) {
							t.Fatalf("%q is left of %q", line, text)
						}
					}
				}
			}
		}
		whole := base64.StdEncoding.EncodeToString([]byte(trimmed))
		for _, width := range []int{64, 76} {
			var wrapped strings.Builder
			for i := 0; i < len(whole); i += width {
				wrapped.WriteString(whole[i:min(len(whole), i+width)] + "\n")
			}
			if left := strings.NewReplacer("[secret TOKEN]", "", "\n", "").Replace(masked(needles, []byte(wrapped.String()))); len(left) >= SecretMinimum {
				t.Errorf("of base64 in lines of %d there is left %q", width, left)
			}
		}
	}
}

func TestASecretIsMaskedInAFileOfTheStep(t *testing.T) {
	secrets := []Secret{{Name: "TOKEN", Value: []byte("a<b>&\"password\"")}}
	text := "<failure message=\"a&lt;b&gt;&amp;&#34;password&#34;\">a<b>&\"password\"</failure>"
	if got, want := string(Mask([]byte(text), secrets)), "<failure message=\"[secret TOKEN]\">[secret TOKEN]</failure>"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := string(Mask([]byte(text), nil)); got != text {
		t.Errorf("without secrets: %s", got)
	}
}
