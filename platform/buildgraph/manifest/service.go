package manifest

import (
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

func (r *fileReader) readServices(f field) []targets.Service {
	var services []targets.Service
	names, variables := map[string]bool{}, map[string]bool{}
	for _, item := range r.items(f, "a step") {
		service := r.readService(item)
		if service.Name != "" && (names[service.Name] || variables[service.PortVariable]) {
			r.problem(item.line, "two services of a step are named %q or have the port variable %s; rename one", service.Name, service.PortVariable)
		}
		names[service.Name], variables[service.PortVariable] = true, true
		services = append(services, service)
	}
	return services
}

func (r *fileReader) readService(node *node) targets.Service {
	const what = "a service"
	var service targets.Service
	for _, f := range r.fields(node, what) {
		switch f.name {
		case "name":
			service.Name = r.text(f, what)
			if !isName(service.Name) {
				r.problem(f.line, "%s is not a service name; use up to 200 letters, digits and . _ + = @ ~ -", clip(service.Name))
			}
		case "run":
			service.Argv = r.readArgv(f)
		case "dir":
			service.Dir = r.readDir(f)
		case "ready":
			r.readReady(f, &service)
		case "port_variable":
			service.PortVariable = r.text(f, what)
			r.checkPortVariable(f.line, service.PortVariable)
		case "timeout":
			service.Timeout = r.readTimeout(f)
		default:
			r.unknown(f, what, "name", "run", "dir", "ready", "port_variable", "timeout")
		}
	}
	if service.Name == "" {
		r.problem(node.line, "a service has no name; add name: …")
	}
	if len(service.Argv) == 0 {
		r.problem(node.line, "a service has nothing to run; add run: [program, argument, …]")
	}
	if service.PortVariable == "" && service.Name != "" {
		service.PortVariable = portVariable(service.Name)
		r.checkPortVariable(node.line, service.PortVariable)
	}
	return service
}

// portVariable is the default for a service's name: test-db has its port in TEST_DB_PORT.
func portVariable(name string) string {
	word := strings.Map(func(c rune) rune {
		if c < 0x80 && (c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
			return c
		}
		return '_'
	}, name)
	return strings.ToUpper(word) + "_PORT"
}

func (r *fileReader) checkPortVariable(line int, name string) {
	if !variablePattern.MatchString(name) || strings.HasPrefix(name, platformPrefix) || slices.Contains([]string{"PATH", "HOME", "TMPDIR"}, name) {
		r.problem(line, "%s cannot be the variable of a port; name another with port_variable: …", clip(name))
	}
}

// readReady reads tcp, {http: /path} or {command: [program, argument]}.
func (r *fileReader) readReady(f field, service *targets.Service) {
	if f.value.kind == textNode && f.value.text == "tcp" {
		return
	}
	if f.value.kind != mapNode || len(f.value.keys) != 1 {
		r.problem(f.line, "ready is tcp, {http: /path} or {command: [program, argument, …]}; write one of these")
		return
	}
	for _, way := range r.fields(f.value, "ready") {
		switch way.name {
		case "http":
			service.HTTP = r.text(way, "ready")
			if !strings.HasPrefix(service.HTTP, "/") || strings.ContainsFunc(service.HTTP, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
				r.problem(way.line, "%s is not a path that the service answers; write one such as /healthz", clip(service.HTTP))
			}
		case "command":
			if service.Probe = r.readArgv(way); len(service.Probe) == 0 {
				r.problem(way.line, "the command of ready has no program; name one")
			}
		default:
			r.unknown(way, "ready", "http", "command")
		}
	}
}
