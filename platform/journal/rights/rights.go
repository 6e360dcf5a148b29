// Package rights holds what each service may do with the topics and the consumer groups of a Kafka cluster: the table from which ACLs
// are made, against which `landfall doctor` looks, and that the documentation shows. It follows from the table of topics.
package rights

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"landfall.build/events"
)

// Accounts that are no service's.
const (
	// Operator is the account of the commands of people, such as `landfall log`.
	Operator = "operator"
	// Clients is that of programs that ask for landings and read outcomes.
	Clients = "clients"
	// Up is that of `landfall up` on a cluster: every service in one process.
	Up = "up"
	// Archiver is that of `landfall archive`.
	Archiver = "archiver"
	// Admin is that of `landfall access kafka --apply`. It may change ACLs, and the table has no row of it.
	Admin = "admin"
)

// TopicPrefix begins the names of all topics, StatusPrefix those of the groups in which instances post that they work
// (landfall.status.SERVICE.INSTANCE).
const (
	TopicPrefix  = "landfall."
	StatusPrefix = "landfall.status."
)

// Kind is what a right is on.
type Kind string

// Kinds.
const (
	Topic Kind = "topic"
	Group Kind = "group"
)

// Right is what an account may do with a topic or a group, or with all whose names begin with Name.
type Right struct {
	Kind       Kind
	Name       string
	Prefixed   bool
	Operations []kadm.ACLOperation
}

// Services returns the services, in the order of the flow.
func Services() []string {
	return []string{
		events.ServiceGateway, events.ServiceAnalyzer, events.ServiceEnumerator, events.ServiceProfiler, events.ServicePrioritizer, events.ServiceSelector,
		events.ServiceBuilder, events.ServiceLander, events.ServiceOutcomes, events.ServiceWebhooks, events.ServiceHosts, events.ServiceTracer, events.ServiceHistorian, events.ServiceTrainer,
	}
}

// Accounts returns every account of the table.
func Accounts() []string { return append(Services(), Up, Operator, Archiver, Clients) }

// Reads and Writes report whether an account may read a topic, and write it.
func Reads(account string, t events.Topic) bool {
	switch account {
	case Operator, Archiver:
		return true
	case Up:
		return slices.ContainsFunc(Services(), func(s string) bool { return Reads(s, t) })
	case Clients:
		return slices.Contains(t.Readers, Clients)
	}
	// Who claims a partition reads back what it has written there. Every service reads in landfall.changes which log it is.
	return slices.Contains(t.Readers, account) || slices.Contains(t.Claimed, account) || t.Name == events.TopicChanges
}

// Writes reports whether an account may write a topic.
func Writes(account string, t events.Topic) bool {
	switch account {
	case Operator:
		// `landfall models`, `landfall webhooks`, `landfall token --direct`, and `landfall dead-letters`, which asks again and says so.
		return slices.Contains([]string{events.TopicModels, events.TopicDeliveries, events.TopicAccess, events.TopicLandRequests, events.TopicDeadLetters}, t.Name)
	case Up:
		return slices.ContainsFunc(Services(), func(s string) bool { return Writes(s, t) })
	}
	return slices.Contains(t.Writers, account)
}

// Creates reports whether an account makes topics that are missing. One service does, so that the others need no right to.
func Creates(account string) bool { return account == events.ServiceGateway || account == Up }

// Deletes reports whether an account deletes records, which it has put into the archive.
func Deletes(account string) bool { return account == Archiver }

// shares reports whether the partitions are shared out among the processes of a service, by a consumer group.
func shares(service string) bool {
	return service == events.ServiceTracer || service == events.ServiceHistorian || service == events.ServiceTrainer || slices.ContainsFunc(events.Topics(), func(t events.Topic) bool { return slices.Contains(t.Claimed, service) })
}

// Of returns the rights of an account.
func Of(account string) []Right {
	var out []Right
	on := func(kind Kind, name string, prefixed bool, operations ...kadm.ACLOperation) {
		out = append(out, Right{kind, name, prefixed, operations})
	}
	if account == Clients {
		for _, t := range events.Topics() {
			if Reads(account, t) {
				on(Topic, t.Name, false, kadm.OpRead, kadm.OpDescribe)
			}
			if Writes(account, t) {
				on(Topic, t.Name, false, kadm.OpWrite, kadm.OpDescribe)
			}
		}
		return out
	}
	// Each looks at all topics when it starts: whether they are there, forget nothing, and have as many partitions.
	every := []kadm.ACLOperation{kadm.OpDescribe, kadm.OpDescribeConfigs}
	if Creates(account) {
		every = append(every, kadm.OpCreate)
	}
	if Deletes(account) {
		every = append(every, kadm.OpDelete)
	}
	on(Topic, TopicPrefix, true, every...)
	for _, t := range events.Topics() {
		var operations []kadm.ACLOperation
		if Reads(account, t) {
			operations = append(operations, kadm.OpRead)
		}
		if Writes(account, t) {
			operations = append(operations, kadm.OpWrite)
		}
		if operations != nil {
			on(Topic, t.Name, false, operations...)
		}
	}
	switch account {
	case Operator:
		on(Group, TopicPrefix, true, kadm.OpDescribe)
		return out
	case Archiver:
		return out
	case Up:
		on(Group, StatusPrefix, true, kadm.OpRead, kadm.OpDescribe)
		return out
	case events.ServiceGateway:
		on(Group, StatusPrefix, true, kadm.OpDescribe)
	}
	on(Group, StatusPrefix+account+".", true, kadm.OpRead)
	if shares(account) {
		on(Group, TopicPrefix+account, false, kadm.OpRead)
	}
	return out
}

// ACL returns the builder of the ACLs of rights, one for each, for a principal such as User:landfall-gateway.
func (r Right) ACL(principal string) *kadm.ACLBuilder {
	b := kadm.NewACLs().Allow(principal).AllowHosts("*").Operations(r.Operations...)
	if r.Prefixed {
		b.ResourcePatternType(kadm.ACLPatternPrefixed)
	} else {
		b.ResourcePatternType(kadm.ACLPatternLiteral)
	}
	if r.Kind == Group {
		return b.Groups(r.Name)
	}
	return b.Topics(r.Name)
}

// OperationNames returns the operations as kafka-acls.sh takes them.
func (r Right) OperationNames() []string {
	names := map[kadm.ACLOperation]string{
		kadm.OpRead: "Read", kadm.OpWrite: "Write", kadm.OpCreate: "Create", kadm.OpDescribe: "Describe", kadm.OpDescribeConfigs: "DescribeConfigs", kadm.OpDelete: "Delete",
	}
	var out []string
	for _, o := range r.Operations {
		out = append(out, names[o])
	}
	return out
}

// Markdown returns the table of topics and accounts.
func Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| account | reads | writes | groups |\n|---|---|---|---|\n")
	for _, account := range Accounts() {
		var reads, writes, groups []string
		for _, t := range events.Topics() {
			name := "`" + strings.TrimPrefix(t.Name, TopicPrefix) + "`"
			if Reads(account, t) {
				reads = append(reads, name)
			}
			if Writes(account, t) {
				writes = append(writes, name)
			}
		}
		if len(reads) == len(events.Topics()) {
			reads = []string{"all"}
		}
		if Creates(account) {
			writes = append(writes, "creates all")
		}
		if Deletes(account) {
			writes = append(writes, "deletes of all")
		}
		for _, r := range Of(account) {
			if r.Kind != Group {
				continue
			}
			name := r.Name
			if r.Prefixed {
				name += "*"
			}
			groups = append(groups, strings.Join(r.OperationNames(), ", ")+" `"+name+"`")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", account, strings.Join(reads, " "), strings.Join(writes, " "), strings.Join(groups, "; "))
	}
	return b.String()
}
