package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
)

const (
	// maxSessions bounds all sessions, maxOfOne those of one person. Beyond it the one goes that was used least recently.
	maxSessions = 10_000
	maxOfOne    = 20
)

// sessions are of people who have signed in here. They end with the process: see docs/decisions/0084.
type sessions struct {
	configuration.Sessions
	clock func() time.Time

	mu   sync.Mutex
	byID map[[sha256.Size]byte]*session
}

type session struct {
	who         identity.Identity
	begun, used time.Time
}

func newSessions(c configuration.Sessions, clock func() time.Time) *sessions {
	return &sessions{Sessions: c, clock: clock, byID: map[[sha256.Size]byte]*session{}}
}

// begin returns the id of a new session, which nobody can guess.
func (s *sessions) begin(who identity.Identity) string {
	id := rand.Text()
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, one := range s.byID {
		if s.over(one, now) {
			delete(s.byID, key)
		}
	}
	s.makeRoom(maxOfOne, func(one *session) bool { return one.who.Issuer == who.Issuer && one.who.Subject == who.Subject })
	s.makeRoom(maxSessions, func(*session) bool { return true })
	s.byID[keyOf(id)] = &session{who: who, begun: now, used: now}
	return id
}

// makeRoom ends the least recently used of some sessions if there are as many as allowed.
func (s *sessions) makeRoom(most int, of func(*session) bool) {
	var oldest [sha256.Size]byte
	var least *session
	count := 0
	for key, one := range s.byID {
		if !of(one) {
			continue
		}
		if count++; least == nil || one.used.Before(least.used) {
			oldest, least = key, one
		}
	}
	if count >= most {
		delete(s.byID, oldest)
	}
}

func (s *sessions) over(one *session, now time.Time) bool {
	return now.Sub(one.begun) > s.Lifetime || now.Sub(one.used) > s.Idle
}

// get returns whose session an id is, nil for none, and counts as a use.
func (s *sessions) get(id string) *identity.Identity {
	if id == "" {
		return nil
	}
	key, now := keyOf(id), s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byID[key]
	if one == nil {
		return nil
	}
	if s.over(one, now) {
		delete(s.byID, key)
		return nil
	}
	one.used = now
	who := one.who
	return &who
}

// end ends a session, and reports whether there was one.
func (s *sessions) end(id string) bool {
	key := keyOf(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.byID[key]
	delete(s.byID, key)
	return there
}

// endAll ends all sessions of one person, and returns how many.
func (s *sessions) endAll(issuer, subject string) (ended int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, one := range s.byID {
		if one.who.Issuer == issuer && one.who.Subject == subject {
			delete(s.byID, key)
			ended++
		}
	}
	return ended
}
