package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
	"landfall.build/platform/health"
	"landfall.build/platform/journal/archive"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/kafka/credentials"
	"landfall.build/platform/journal/rights"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/embedded/broker"
)

const (
	// betweenBeats is long enough that a process that lives posts again.
	betweenBeats = 3 * time.Second
	// clocksMayDiffer by as much as a beat may be old, and some more.
	clocksMayDiffer = 10 * time.Second
)

// log checks the broker, the topics, the dead letters, and the clocks of the instances that post there. The embedded broker
// checks its own log when it starts.
func (x *examination) log(ctx context.Context) {
	if len(x.config.Broker.Brokers) == 0 {
		return
	}
	old, err := archive.Open(ctx, x.config.Broker.Archive)
	if err == nil && old != nil {
		_, err = old.Ends(ctx)
	}
	if err != nil {
		x.add("archive_unreadable", "", err.Error(), "")
		return
	}
	o := kafka.Options{Brokers: x.config.Broker.Brokers, ClientID: "landfall-doctor", Log: x.Logger, Partitions: int32(x.config.Broker.Partitions), Wait: x.Wait,
		Client: broker.Access(x.config, x.config.Broker.Brokers, rights.Operator), Archive: old}
	if err := kafka.Check(ctx, o); errors.Is(err, kafka.ErrNoBroker) {
		x.add("broker_unreachable", "", err.Error(), "")
		return
	} else if errors.Is(err, kafka.ErrCut) {
		x.add("log_cut", "", err.Error(), "")
		return
	} else if err != nil {
		x.add("topics_unfit", "", err.Error(), "")
		return
	}
	o.Partitions = 0 // it makes no topics
	log, err := kafka.Open(ctx, o)
	if err != nil {
		x.add("topics_unfit", "", err.Error(), "")
		return
	}
	defer log.Close()
	x.rights(ctx, log.Admin())
	letters := int64(0)
	for p := range log.Partitions() {
		end, err := log.End(ctx, events.TopicDeadLetters, p)
		if err != nil {
			x.add("check_failed", "", "The dead letters cannot be counted: "+err.Error(), "")
			return
		}
		letters += end
	}
	if letters > 0 {
		x.add("dead_letters", "", fmt.Sprintf("There are %d dead letters.", letters), "")
	}
	x.clocks(ctx, health.NewBoard(log.Admin()))
}

// rights asks what each account may do with each topic that is configured here. A broker without ACLs allows everything, and an old one does
// not say.
func (x *examination) rights(ctx context.Context, admin *kadm.Client) {
	topics, err := admin.ListTopics(kadm.WithAuthorizedOps(ctx))
	if err != nil {
		x.add("check_failed", "", "The rights on topics cannot be asked for: "+err.Error(), "")
		return
	}
	if !x.config.Broker.PerService() {
		x.missingRights("this account", topics, append(rights.Services(), rights.Operator, rights.Clients)...)
		return
	}
	x.missingRights("operator", topics, rights.Operator)
	x.needlessRights(rights.Operator, topics)
	for _, service := range rights.Services() {
		client, err := kgo.NewClient(append(credentials.Options(x.config.Broker, service), kgo.SeedBrokers(x.config.Broker.Brokers...))...)
		if err != nil {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, x.Wait)
		topics, err := kadm.NewClient(client).ListTopics(kadm.WithAuthorizedOps(asking))
		cancel()
		client.Close()
		if err != nil {
			continue // the service runs on another machine, which has its secret
		}
		x.missingRights(service, topics, service)
		x.needlessRights(service, topics)
	}
}

// missingRights finds what an account may not do that some of the table's accounts have to.
func (x *examination) missingRights(account string, topics kadm.TopicDetails, of ...string) {
	for _, t := range events.Topics() {
		may := topics[t.Name].AuthorizedOperations
		for _, need := range []struct {
			operation kadm.ACLOperation
			has       func(string, events.Topic) bool
		}{{kadm.OpRead, rights.Reads}, {kadm.OpWrite, rights.Writes}} {
			var needed []string
			for _, o := range of {
				if need.has(o, t) {
					needed = append(needed, o)
				}
			}
			if len(needed) > 0 && len(may) > 0 && !slices.Contains(may, need.operation) {
				x.add("rights_missing", "", fmt.Sprintf("The ACLs do not allow %s to %s %s, as is needed by: %s.", account, strings.ToLower(need.operation.String()), t.Name, strings.Join(needed, ", ")), "")
			}
		}
	}
}

// needlessRights finds what the ACLs allow an account that the table does not give it. Without ACLs there are no rights to take away.
func (x *examination) needlessRights(account string, topics kadm.TopicDetails) {
	var needless []string
	for _, t := range events.Topics() {
		may := topics[t.Name].AuthorizedOperations
		if slices.Contains(may, kadm.OpRead) && !rights.Reads(account, t) {
			needless = append(needless, "read "+t.Name)
		}
		if slices.Contains(may, kadm.OpWrite) && !rights.Writes(account, t) {
			needless = append(needless, "write "+t.Name)
		}
	}
	if len(needless) > 0 {
		x.add("rights_needless", "", fmt.Sprintf("The account of %s may %s.", account, strings.Join(needless, ", ")), "")
	}
}

// clocks compares this clock with those of the instances that post while it looks.
func (x *examination) clocks(ctx context.Context, board health.Board) {
	before, err := board.Read(ctx)
	if err == nil && len(before) == 0 {
		return
	}
	var after []health.Beat
	if err == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(betweenBeats):
		}
		after, err = board.Read(ctx)
	}
	if err != nil {
		x.add("check_failed", "", "The clocks cannot be compared: "+err.Error(), "")
		return
	}
	now := time.Now()
	for _, b := range after {
		lives := slices.ContainsFunc(before, func(o health.Beat) bool {
			return o.Service == b.Service && o.Instance == b.Instance && !o.At.Equal(b.At)
		})
		if ahead := b.At.Sub(now); lives && ahead.Abs() > clocksMayDiffer {
			word := "ahead of"
			if ahead < 0 {
				word = "behind"
			}
			x.add("clock_differs", "", fmt.Sprintf("The clock of the %s %s is %s %s this machine's.", b.Service, b.Instance, ahead.Abs().Round(time.Second), word), "")
		}
	}
}

// redText says in which targets the mainline of a queue is red, and why.
func redText(q view.Overview) string {
	return "The mainline is red in " + strings.Join(q.MainlineRed, ", ") + "." + causes(q, true)
}

// causes lists the runs that made targets of the mainline red, or those without a result.
func causes(q view.Overview, red bool) (text string) {
	for _, f := range q.MainlineFailures {
		if (f.State == view.StepFailed) == red {
			text += "\n  " + client.Plain(f.Cause())
		}
	}
	return text
}

// running asks the gateway what is at work.
func (x *examination) running(ctx context.Context) {
	c, err := client.New(x.Server, "doctor")
	if err == nil {
		err = c.Prove()
	}
	if err != nil {
		x.add("gateway_unreachable", "", err.Error(), "")
		return
	}
	report, err := c.Services(ctx)
	if err != nil {
		x.add("gateway_unreachable", "", err.Error(), "")
		return
	}
	versions := map[string]bool{}
	for _, m := range report.Missing {
		x.add("service_missing", strings.Join(m.Queues, ", "), m.Sentence, "")
	}
	for _, i := range report.Instances {
		if !i.Alive {
			continue
		}
		if versions[i.Version] = true; i.Trouble != "" {
			x.add("service_troubled", "", fmt.Sprintf("The %s %s: %s.", i.Service, i.Instance, i.Trouble), "")
		}
	}
	if len(versions) > 1 {
		x.add("versions_differ", "", "The services that run are of several versions: "+strings.Join(slices.Sorted(maps.Keys(versions)), ", ")+".", "")
	}
	queues, err := c.Queues(ctx)
	if err != nil {
		x.add("gateway_unreachable", "", err.Error(), "")
		return
	}
	for _, q := range queues {
		if q.Unreachable != nil {
			x.add(troubleCode(q.Unreachable), q.Queue, q.Unreachable.Sentence, "")
		}
		if q.PausedByRemote != nil {
			x.add("landings_paused", q.Queue, q.PausedByRemote.Sentence, "")
		}
		if q.Paused != nil {
			x.add("queue_paused", q.Queue, fmt.Sprintf("It is paused by %s: %s.", q.Paused.Who, q.Paused.Why), "")
		}
		if len(q.MainlineRed) > 0 {
			x.add("mainline_red", q.Queue, redText(q), "")
		}
		if n := q.NeedRetry; len(n) > 0 {
			x.add("retry_needed", q.Queue, "Changes wait until they are retried: "+client.Plain(strings.Join(n, ", "))+"."+causes(q, false), "See why with landfall explain "+client.Plain(n[0])+", then landfall retry "+client.Plain(n[0])+".")
		}
		for _, m := range q.Models {
			if m.Trouble != "" {
				x.add("model_unused", q.Queue, fmt.Sprintf("The model of %s, %s, is not used: %s", m.Kind, m.Version, m.Trouble), "")
			}
		}
	}
}

// troubleCode returns what is found where the lander has that trouble. A remote that refuses a push was reached.
func troubleCode(t *view.Trouble) string {
	if t.Kind == view.ReasonPushRefused {
		return "change_refused"
	}
	return "mainline_unreachable"
}
