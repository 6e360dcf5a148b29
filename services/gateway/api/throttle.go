package api

import (
	"sync"

	"golang.org/x/time/rate"
)

// maxThrottled bounds the callers that are remembered.
const maxThrottled = 10_000

// throttle bounds how often each of many callers may ask.
type throttle struct {
	perSecond rate.Limit
	burst     int

	mu       sync.Mutex
	limiters map[string]*rate.Limiter // by caller
}

func newThrottle(perSecond float64, burst int) *throttle {
	return &throttle{perSecond: rate.Limit(perSecond), burst: burst, limiters: map[string]*rate.Limiter{}}
}

// allow reports whether a caller may ask once more now. Beyond maxThrottled callers it forgets some that have not asked for a while, else
// one that has, which can then ask as if it were new.
func (p *throttle) allow(caller string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.limiters[caller]
	if l == nil {
		if len(p.limiters) >= maxThrottled {
			p.forget()
		}
		l = rate.NewLimiter(p.perSecond, p.burst)
		p.limiters[caller] = l
	}
	return l.Allow()
}

// spent reports whether a caller may not ask now, and counts nothing.
func (p *throttle) spent(caller string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.limiters[caller]
	return l != nil && l.Tokens() < 1
}

// forget looks at a few callers only, so that a flood of new ones costs each the same.
func (p *throttle) forget() {
	looked, dropped := 0, 0
	for caller, l := range p.limiters {
		if looked++; l.Tokens() >= float64(p.burst) || looked > 20 && dropped == 0 {
			delete(p.limiters, caller)
			dropped++
		}
		if looked > 20 && dropped > 0 {
			return
		}
	}
}
