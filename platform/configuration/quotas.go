package configuration

import (
	"fmt"
	"strings"
	"unicode"

	eventsv1 "landfall.build/events/v1"
)

// Quotas bound how many steps of a queue's changes run at the same time (M33b). Nil is any number.
type Quotas struct {
	// Queue bounds those of all changes.
	Queue *int `yaml:"queue" minimum:"1" maximum:"1000000"`
	// Author bounds those of each author that Authors does not name.
	Author *int `yaml:"author" minimum:"1" maximum:"1000000"`
	// Authors bound those of each author that they name; the first that does counts.
	Authors []AuthorQuota `yaml:"authors" maximum:"1000"`
	// Teams bound those of all the authors together that they name; the first that does counts.
	Teams []TeamQuota `yaml:"teams" maximum:"1000"`
}

// AuthorQuota is for each author by itself that it names.
type AuthorQuota struct {
	// Who lists authors by address, or by name if they have none; * stands for any text.
	Who   []string `yaml:"who" required:"true" minimum:"1" maximum:"1000"`
	Steps int      `yaml:"steps" required:"true" minimum:"1" maximum:"1000000"`
}

// TeamQuota is for the authors of a team together.
type TeamQuota struct {
	Name  string   `yaml:"name" required:"true" pattern:"name"`
	Who   []string `yaml:"who" required:"true" minimum:"1" maximum:"1000"`
	Steps int      `yaml:"steps" required:"true" minimum:"1" maximum:"1000000"`
}

// Empty reports whether nobody is bound.
func (q Quotas) Empty() bool {
	return q.Queue == nil && q.Author == nil && len(q.Authors)+len(q.Teams) == 0
}

// Fact returns what the log has of the quotas, nil if nobody is bound.
func (q Quotas) Fact() *eventsv1.Quotas {
	if q.Empty() {
		return nil
	}
	f := &eventsv1.Quotas{}
	if q.Queue != nil {
		f.Queue = uint32(*q.Queue)
	}
	if q.Author != nil {
		f.Author = uint32(*q.Author)
	}
	for _, a := range q.Authors {
		f.Authors = append(f.Authors, &eventsv1.AuthorQuota{Who: a.Who, Steps: uint32(a.Steps)})
	}
	for _, t := range q.Teams {
		f.Teams = append(f.Teams, &eventsv1.TeamQuota{Name: t.Name, Who: t.Who, Steps: uint32(t.Steps)})
	}
	return f
}

func checkQuotas(quotas Quotas, at *path, f *findings) {
	for i, a := range quotas.Authors {
		checkAuthors(a.Who, at.child("authors").index(i).child("who"), f)
	}
	first := map[string]int{}
	for i, t := range quotas.Teams {
		place := at.child("teams").index(i)
		checkAuthors(t.Who, place.child("who"), f)
		if earlier, twice := first[t.Name]; twice && f.sound(place.child("name")) {
			f.add(place.child("name"), fmt.Sprintf("%s is entry %d as well", quote(t.Name), earlier), "name all its authors in one")
		}
		first[t.Name] = i
	}
}

// checkAuthors checks what is compared with the address of an author, or with the name of one who has none.
func checkAuthors(who []string, at *path, f *findings) {
	const longest = 200
	for i, text := range who {
		place := at.index(i)
		switch {
		case !f.sound(place):
		case strings.TrimSpace(text) == "":
			f.add(place, "is empty, must be the address of an author, or the name of one who has none", "")
		case len(text) > longest:
			f.add(place, fmt.Sprintf("is %d bytes long, must be at most %d", len(text), longest), "")
		case strings.ContainsAny(text, "<>") || strings.ContainsFunc(text, unicode.IsControl):
			f.add(place, fmt.Sprintf("is %s, must be the address of an author, or the name of one who has none", quote(text)), "as in ada@example.com, without the name before it")
		}
	}
}
