package gitrepo

import (
	"context"
	"fmt"
	"strings"
)

// RefUpdate puts a ref of the mirror, by its full name, from one commit to another. Old is "" for a ref that must not be there, New "" to
// delete it.
type RefUpdate struct{ Ref, Old, New string }

// Refs returns the ref of a name, and all below it, by their full names.
func (r *Repo) Refs(ctx context.Context, name string) (map[string]string, error) {
	return r.refs(ctx, strings.TrimSuffix(name, "/"))
}

// SetRefs carries out all updates or none. ErrMoved: a ref is not where Old says.
func (r *Repo) SetRefs(ctx context.Context, updates ...RefUpdate) error {
	var input strings.Builder
	for _, u := range updates {
		full, err := branchRef(u.Ref)
		if err != nil || full != u.Ref {
			return fmt.Errorf("%w: %q is not a full ref name (refs/…)", ErrInvalid, clip(u.Ref))
		}
		for _, id := range []string{u.Old, u.New} {
			if id == "" {
				continue
			}
			if err := checkID("commit", id); err != nil {
				return err
			}
		}
		switch {
		case u.New == "":
			fmt.Fprintf(&input, "delete %s %s\n", u.Ref, u.Old)
		case u.Old == "":
			fmt.Fprintf(&input, "create %s %s\n", u.Ref, u.New)
		default:
			fmt.Fprintf(&input, "update %s %s %s\n", u.Ref, u.New, u.Old)
		}
	}
	_, err := r.run(ctx, invocation{args: []string{"update-ref", "--stdin"}, stdin: []byte(input.String())})
	if err == nil {
		return nil
	}
	// git's words for a ref that has moved differ by version; where the refs are says it.
	for _, u := range updates {
		at, failure := r.Refs(ctx, u.Ref)
		if failure == nil && at[u.Ref] != u.Old {
			return fmt.Errorf("%w: %s: %w", ErrMoved, u.Ref, err)
		}
	}
	return err
}
