package configuration

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAnAddressThatIsNoneIsSaidToBeNone(t *testing.T) {
	for _, mode := range []string{AccessOpen, AccessRequired} {
		c := New(fourCores)
		c.Gateway.Listen, c.Access.Mode = "7878x", mode
		if err := c.CheckOpen(); err == nil || !strings.HasPrefix(err.Error(), `the address that the gateway is to listen on is "7878x", must be host:port`) {
			t.Errorf("mode %s: %v", mode, err)
		}
	}
}

func TestAPoolWithoutWorkersIsAProblemOfItsWorkersAlone(t *testing.T) {
	for _, text := range []string{"builder: {workers: 0}\n", "builder: {pool: b}\npools: {default: {workers: 0}}\n"} {
		problems := problemsOf(t, smallest+text)
		if len(problems) != 1 || !strings.HasSuffix(problems[0].Path, "workers") {
			t.Errorf("%s%v", text, problems)
		}
	}
}

func TestQuarantinesThatAreOverAreNamed(t *testing.T) {
	c := mustParse(t, strings.Replace(smallest, "{repository: shop", "{repository: shop, flaky: {quarantine: [{target: //a, until: 2024-11-30, why: x}, {target: //b, until: 2026-11-30, why: x}]}", 1))
	day := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	over := func(now time.Time) (targets []string) {
		for _, sentence := range c.Over(now) {
			_, after, _ := strings.Cut(sentence, "the quarantine of ")
			target, _, _ := strings.Cut(after, " ended with ")
			targets = append(targets, target)
		}
		return targets
	}
	if got := over(day.Add(24*time.Hour - 1)); !slices.Equal(got, []string{"//a"}) {
		t.Errorf("on the last day of one, over are %v", got)
	}
	if got := over(day.Add(24 * time.Hour)); !slices.Equal(got, []string{"//a", "//b"}) {
		t.Errorf("after it, over are %v", got)
	}
}
