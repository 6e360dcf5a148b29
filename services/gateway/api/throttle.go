package api

import (
	"sync"

	"golang.org/x/time/rate"
)

// maxThrottled is of how many callers it is known how often they have asked.
const maxThrottled = 10_000

// throttle bounds how often each of many callers may ask.
type throttle struct {
	perSecond rate.Limit
	burst     int

	mu    sync.Mutex
	since map[string]*rate.Limiter
}

func newThrottle(perSecond float64, burst int) *throttle {
	return &throttle{perSecond: rate.Limit(perSecond), burst: burst, since: map[string]*rate.Limiter{}}
}

// allow reports whether a caller may ask once more now. If too many callers are known, those are forgotten who have not asked for a
// while, and if there are none, one of the others: it can ask as if it were new.
func (p *throttle) allow(caller string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.since[caller]
	if l == nil {
		if len(p.since) >= maxThrottled {
			p.forget()
		}
		l = rate.NewLimiter(p.perSecond, p.burst)
		p.since[caller] = l
	}
	return l.Allow()
}

// forget looks at a few callers only, so that a flood of new ones costs each the same.
func (p *throttle) forget() {
	looked, dropped := 0, 0
	for caller, l := range p.since {
		if looked++; l.Tokens() >= float64(p.burst) || looked > 20 && dropped == 0 {
			delete(p.since, caller)
			dropped++
		}
		if looked > 20 && dropped > 0 {
			return
		}
	}
}
