package decision

import (
	"fmt"
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// flood has so many changes of one author, and then one of another and one that the queue is not bound for, each of so many steps,
// worth less the later it comes.
func flood(changes, steps int) (d *eventsv1.GraphDelta, best []*eventsv1.RankedBuild) {
	d = &eventsv1.GraphDelta{}
	for i := range changes + 1 {
		n, b := pending(fmt.Sprint("ada", i), int64(i+1), steps, 1-float64(i)/1000)
		if n.Author = "ada"; i == changes {
			n, b = pending("bob", int64(i+1), steps, 0.1)
			n.Author = "bob"
		}
		d.Nodes, best = append(d.Nodes, n), append(best, b)
	}
	return d, best
}

func scheduledWith(quotas *eventsv1.Quotas, d *eventsv1.GraphDelta, best []*eventsv1.RankedBuild) string {
	d.Settings = &eventsv1.QueueSettings{Hash: "s", Best: 100, PoolWorkers: 4, Quotas: quotas, Steps: &eventsv1.StepPolicy{}}
	d.Mainline = &eventsv1.Mainline{Head: "m", Analyzed: true}
	count := map[string]int{}
	for _, i := range player(New("main", joined))(&eventsv1.Priority{Delta: d, Ranking: &eventsv1.Ranking{Best: best}}) {
		if b := i.GetBuildScheduled(); b.GetIdle() {
			count["idle"]++
		} else if b != nil {
			count[strings.TrimRight(b.Change.Change.Change, "0123456789")]++
		}
	}
	return fmt.Sprintf("%d of Ada, %d of Bob, %d idle", count["ada"], count["bob"], count["idle"])
}

func TestM33bAnAuthorOverQuotaLeavesRoomForTheBuildsOfOthers(t *testing.T) {
	team := []*eventsv1.TeamQuota{{Name: "a", Who: []string{"ada"}, Steps: 1}}
	for _, c := range []struct {
		what    string
		quotas  *eventsv1.Quotas
		changes int
		steps   int
		want    string
	}{
		{"without quotas the steps of the better builds are enough for the workers", nil, 20, 10, "5 of Ada, 0 of Bob, 0 idle"},
		{"with one step for each author, twelve of hers are enough", &eventsv1.Quotas{Author: 1}, 20, 10, "2 of Ada, 1 of Bob, 0 idle"},
		{"though one build has them all", &eventsv1.Quotas{Author: 1}, 1, 500, "1 of Ada, 1 of Bob, 0 idle"},
		{"so it is for a team", &eventsv1.Quotas{Teams: team}, 20, 10, "2 of Ada, 1 of Bob, 0 idle"},
		{"and for a named author", &eventsv1.Quotas{Authors: []*eventsv1.AuthorQuota{{Who: []string{"a*"}, Steps: 2}}}, 20, 10, "3 of Ada, 1 of Bob, 0 idle"},
		{"for the queue it is whoever comes first", &eventsv1.Quotas{Queue: 1}, 20, 10, "2 of Ada, 0 of Bob, 0 idle"},
	} {
		d, best := flood(c.changes, c.steps)
		if got := scheduledWith(c.quotas, d, best); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

func TestM33bWorkersThatQuotasLeaveIdleProveTheMainline(t *testing.T) {
	for want, quotas := range map[string]*eventsv1.Quotas{"5 of Ada, 0 of Bob, 0 idle": nil, "2 of Ada, 1 of Bob, 1 idle": {Author: 1}} {
		d, best := flood(20, 10)
		d.Survey = &eventsv1.Survey{Targets: []*eventsv1.TargetVersion{{Target: "old", Hash: "h"}}, Unproven: 1}
		if got := scheduledWith(quotas, d, best); got != want {
			t.Errorf("%v: %s, want %s", quotas, got, want)
		}
	}
}
