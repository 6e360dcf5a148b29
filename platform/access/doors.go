package access

// Door is a way to ask for something. Every route of the gateway, every command that writes, every comment at a code host and every request
// by Kafka is one, and Doors has them all: what is not in the table is not let in.
type Door struct {
	Kind DoorKind
	// Name is the method and the path of a route, the command, or the topic.
	Name string
	// For says whom the door is for; with a verb, whoever may do that.
	For  Audience
	Verb Verb
}

// DoorKind is where a door is.
type DoorKind string

// Kinds of doors.
const (
	// Route is of the gateway's API.
	Route DoorKind = "route"
	// Command writes by the gateway: it can do what its routes allow.
	Command DoorKind = "command"
	// LogCommand writes the log itself, with an account of the broker: what that may do, the broker checks (platform/journal/rights).
	LogCommand DoorKind = "log command"
	// Comment is a line of a comment at a code host: who wrote it has the role that the host's permission stands for.
	Comment DoorKind = "comment"
	// HostRoute is of the hosts service, for the code hosts themselves.
	HostRoute DoorKind = "host route"
	// Topic is written by programs of others.
	Topic DoorKind = "topic"
)

// Audience is whom a door is for.
type Audience string

// Audiences.
const (
	// Everybody needs no proof: nothing of a queue is behind it.
	Everybody Audience = "everybody"
	// Signers have the secret of a host's webhooks: what they send is proven by it, and is no more than news.
	Signers Audience = "signers"
	// Known is whoever has proven who it is.
	Known Audience = "known"
	// Somewhere is who may do the verb in one queue at least, and gets what is of these queues.
	Somewhere Audience = "somewhere"
	// InQueue is who may do the verb in the queue that is named.
	InQueue Audience = "queue"
)

// Doors returns the table.
func Doors() []Door {
	return []Door{
		{Route, "GET /healthz", Everybody, ""},
		{Route, "GET /livez", Everybody, ""},
		{Route, "GET /readyz", Everybody, ""},
		{Route, "GET /v1/openapi.yaml", Everybody, ""},
		{Route, "GET /v1/signin", Everybody, ""},
		{Route, "GET /v1/signin/{issuer}/start", Everybody, ""},
		{Route, "GET /v1/signin/{issuer}/callback", Everybody, ""},
		{Route, "POST /v1/signout", Everybody, ""},
		{HostRoute, "POST /v1/hosts/{host}", Signers, ""},
		{HostRoute, "GET /v1/hosts/{host}", Signers, ""},
		{Route, "GET /v1/whoami", Known, ""},
		{Route, "GET /v1/services", Somewhere, Read},
		{Route, "GET /v1/pools/{pool}/timeline", Somewhere, Read},
		{Route, "GET /v1/queues", Somewhere, Read},
		{Route, "GET /v1/watch", Somewhere, Read},
		{Route, "GET /v1/tokens", Somewhere, ManageTokens},
		{Route, "POST /v1/tokens", Somewhere, ManageTokens},
		{Route, "POST /v1/tokens/{token}/revoke", Somewhere, ManageTokens},
		{Route, "GET /v1/dead-letters", Somewhere, Read},
		{Route, "POST /v1/dead-letters/{topic}/{partition}/{offset}/send", Somewhere, Deliveries},
		{Route, "GET /v1/queues/{queue}", InQueue, Read},
		{Route, "GET /v1/queues/{queue}/events", InQueue, Read},
		{Route, "GET /v1/queues/{queue}/access", InQueue, ManageTokens},
		{Route, "GET /v1/queues/{queue}/graph", InQueue, Read},
		{Route, "GET /v1/queues/{queue}/logs", InQueue, ReadLogs},
		{Route, "POST /v1/queues/{queue}/pause", InQueue, Pause},
		{Route, "POST /v1/queues/{queue}/resume", InQueue, Pause},
		{Route, "GET /v1/queues/{queue}/models", InQueue, Read},
		{Route, "POST /v1/queues/{queue}/models/promote", InQueue, Models},
		{Route, "POST /v1/queues/{queue}/models/rollback", InQueue, Models},
		{Route, "GET /v1/queues/{queue}/analytics", InQueue, Read},
		{Route, "GET /v1/queues/{queue}/what-if", InQueue, Read},
		{Route, "POST /v1/queues/{queue}/what-if", InQueue, Simulate},
		{Route, "POST /v1/queues/{queue}/what-if/cancel", InQueue, Simulate},
		{Route, "GET /v1/queues/{queue}/flakes", InQueue, Read},
		{Route, "GET /v1/queues/{queue}/quarantines", InQueue, Read},
		{Route, "POST /v1/queues/{queue}/quarantines", InQueue, Quarantine},
		{Route, "POST /v1/queues/{queue}/quarantines/end", InQueue, Quarantine},
		{Route, "GET /v1/queues/{queue}/changes", InQueue, Read},
		{Route, "POST /v1/queues/{queue}/changes", InQueue, Land},
		{Route, "GET /v1/queues/{queue}/changes/{change}", InQueue, Read},
		{Route, "DELETE /v1/queues/{queue}/changes/{change}", InQueue, Cancel},
		{Route, "GET /v1/queues/{queue}/changes/{change}/explain", InQueue, Read},
		{Route, "GET /v1/queues/{queue}/changes/{change}/difference", InQueue, ReadLogs},
		{Route, "GET /v1/queues/{queue}/changes/{change}/logs", InQueue, ReadLogs},
		{Route, "POST /v1/queues/{queue}/changes/{change}/cancel", InQueue, Cancel},
		{Route, "POST /v1/queues/{queue}/changes/{change}/retry", InQueue, Retry},
		{Route, "POST /v1/queues/{queue}/retry", InQueue, Verify},
		{Route, "POST /v1/queues/{queue}/changes/{change}/priority", InQueue, Move},
		{Route, "POST /v1/queues/{queue}/changes/{change}/hold", InQueue, Hold},
		{Route, "POST /v1/queues/{queue}/changes/{change}/release", InQueue, Hold},

		{Command, "landfall land", InQueue, Land},
		{Command, "landfall cancel", InQueue, Cancel},
		{Command, "landfall retry", InQueue, Retry},
		{Command, "landfall pause", InQueue, Pause},
		{Command, "landfall resume", InQueue, Pause},
		{Command, "landfall priority", InQueue, Move},
		{Command, "landfall hold", InQueue, Hold},
		{Command, "landfall release", InQueue, Hold},
		{Command, "landfall quarantine", InQueue, Quarantine},
		{Command, "landfall what-if", InQueue, Simulate},
		{Command, "landfall token create", Somewhere, ManageTokens},
		{Command, "landfall token revoke", Somewhere, ManageTokens},

		{LogCommand, "landfall models promote", InQueue, Models},
		{LogCommand, "landfall models rollback", InQueue, Models},
		{LogCommand, "landfall train queue", InQueue, Models},
		{LogCommand, "landfall trainer", InQueue, Models},
		{LogCommand, "landfall webhooks send", InQueue, Deliveries},
		{LogCommand, "landfall dead-letters send", InQueue, Deliveries},

		{Comment, "/landfall land", InQueue, Land},
		{Comment, "/landfall cancel", InQueue, Cancel},
		{Comment, "/landfall retry", InQueue, Retry},
		{Comment, "/landfall front", InQueue, Move},
		{Comment, "/landfall hold", InQueue, Hold},
		{Comment, "/landfall release", InQueue, Hold},
		{Comment, "/landfall explain", InQueue, Read},

		{Topic, "landfall.land-requests", InQueue, Land},
	}
}

// RouteOf returns the door of a route.
func RouteOf(method, path string) (Door, bool) {
	for _, d := range Doors() {
		if d.Kind == Route && d.Name == method+" "+path {
			return d, true
		}
	}
	return Door{}, false
}
