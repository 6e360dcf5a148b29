package execution

import "time"

// Service is a program that runs beside a command: it is started before, on a
// port of its own, and ended after. Both have its port in a variable. What it prints is kept aside, and shown if the
// command does not pass. Linux only.
type Service struct {
	Name string
	// Argv and Dir are as in Command.
	Argv []string
	Dir  string
	// Environment is as in Command; nil means the command's.
	Environment []string
	// PortVariable has the port on 127.0.0.1 that it is to listen on.
	PortVariable string
	// HTTP is the path that answers with a status below 400 once the service is
	// ready, Probe the command that then ends with exit code 0. Without either it
	// is ready when its port takes a connection.
	HTTP  string
	Probe []string
	// Timeout is how long it may take to be ready; 0 means a minute.
	Timeout time.Duration
}

// Bounds of services.
const (
	maximumServices     = 32
	defaultReadyTimeout = time.Minute
	// probeInterval is waited between two looks whether a service is ready.
	probeInterval = 50 * time.Millisecond
	probeTimeout  = 2 * time.Second
	// serviceTail bounds what is kept of a service's output.
	serviceTail = 16 << 10
)
