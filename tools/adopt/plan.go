package adopt

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/sandbox"
)

// configurationFile is the name of a configuration, as the other commands look for it.
const configurationFile = "landfall.config.yaml"

// plan is what init writes, and what it was made from.
type plan struct {
	place
	machine
	Queue   string
	Data    string
	Workers int
	uses    []configuration.AdapterUse
	parts   []part
	env     environment
	ignore  []string
	whole   []configuration.Step
	written []manifest
	// hubs are targets for which no two changes have to wait for each other.
	hubs []string
	// started are the programs that steps of the mainline's targets start.
	started []string
	// unrun are scripts that no step runs.
	unrun []unrun
	// uninstalled are notes of packages that no step installs.
	uninstalled []string
}

// configuration returns what the plan's text means.
func (p plan) configuration() (*configuration.Configuration, error) {
	c, err := configuration.Parse([]byte(p.text()), configurationFile, configuration.Defaults{Workers: p.Workers})
	if err != nil {
		return nil, fmt.Errorf("the configuration that was made is not valid, which is a defect of this command: %w\n%s", err, p.text())
	}
	return c, nil
}

// text returns landfall.config.yaml.
func (p plan) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# How Landfall builds and lands changes of %s. Made by landfall init; what is left out has its default.", p.Name)
	line("# All settings: schemas/configuration/example.yaml of Landfall. landfall validate checks this file, and landfall init --check")
	line("# whether the repository and this machine have what it needs.")
	line("version: 1")
	line("# Mirrors, checkouts, logs, caches and the queue's history. Not in the repository: tools look for their files in all folders")
	line("# above the one that they work in.")
	line("data: %s", quoted(p.Data))
	line("")
	line("repositories:")
	line("  %s:", quoted(p.Name))
	line("    # What git fetches from and pushes to.")
	line("    url: %s", quoted(p.URL))
	line("")
	line("queues:")
	line("  %s:", quoted(p.Queue))
	line("    repository: %s", quoted(p.Name))
	line("    branch: %s", quoted(p.Branch))
	line("    # Builds at the same time. This machine has %s.", p.size())
	line("    workers: %d", p.Workers)
	p.writeSteps(line)
	p.writeAnalysis(line)
	line("")
	line("builder:")
	line("  # Steps at the same time, of all queues.")
	line("  workers: %d", p.Workers)
	return b.String()
}

// size returns how many cores and how much memory the machine has, in words.
func (p plan) size() string {
	text := counted(p.Cores, "core")
	if p.Memory > 0 {
		text += fmt.Sprintf(" and %.0f GiB of memory", float64(p.Memory)/(1<<30))
	}
	return text
}

func (p plan) writeSteps(line func(string, ...any)) {
	line("    steps:")
	if len(p.uses) > 0 {
		line("      # A step finds only the files that its target depends on. What looks for another one fails, and says which. open: all files;")
		line("      # Go packages are then tested many at once.")
		line("      workspace: closed")
	}
	if read := p.readable(); len(read) > 0 {
		line("      # What steps read besides the system's folders and the tools on their PATH.")
		line("      read: %s", yamlList(read))
	}
	if write := p.writable(); len(write) > 0 {
		line("      # Caches that steps share. A change can leave there what the next one uses.")
		line("      write: %s", yamlList(write))
	}
	line("      environment:")
	line("        # Steps see this PATH, an empty HOME, and the variables below; nothing of who starts the service.")
	line("        path: %s", quoted(p.env.path))
	if len(p.env.settings) == 0 {
		return
	}
	line("        variables:")
	line("          # Registries, certificates and the like, as your own tools have them.")
	for _, v := range p.env.settings {
		line("          %s: %s", v.name, quoted(v.value))
	}
}

// readable returns the folders and files that settings name and that steps would not see.
func (p plan) readable() []string {
	home, _ := os.UserHomeDir()
	var list []string
	tools := sandbox.ToolPaths(p.env.path, home)
	for _, v := range p.env.settings {
		for _, path := range strings.Fields(v.value) {
			seen := sandbox.Spec{Read: slices.Concat(tools, list)}
			if _, err := os.Stat(path); filepath.IsAbs(path) && err == nil && !sandbox.Sees(seen, path) {
				list = append(list, filepath.Clean(path))
			}
		}
	}
	return list
}

// writable returns the folders that steps keep things in.
func (p plan) writable() []string {
	if hasAdapter(p.uses, configuration.AdapterBazel) {
		return bazelFolders(p.Data)
	}
	return nil
}

func (p plan) writeAnalysis(line func(string, ...any)) {
	line("    analysis:")
	switch {
	case len(p.uses) == 1 && len(p.uses[0].Folders)+len(p.uses[0].Except) == 0:
		line("      # What finds the targets: landfall targets lists them.")
		line("      adapter: %s", p.uses[0].Adapter)
	case len(p.uses) > 0:
		line("      # What finds the targets, each in its part of the repository: landfall targets lists them.")
		line("      adapters:")
		for _, use := range p.uses {
			line("        - adapter: %s", use.Adapter)
			if len(use.Folders) > 0 {
				line("          folders: %s", yamlList(use.Folders))
			}
			if len(use.Except) > 0 {
				line("          # They hold fixtures, or copies of what others made.")
				line("          except: %s", yamlList(use.Except))
			}
		}
	case len(p.whole) > 0:
		line("      # No build system is known: the repository is one target, and every two changes conflict.")
		line("      adapter: whole-repository")
	default:
		line("      # No build system is known, so nothing proves a change, and none lands: name commands here.")
		line("      # whole_repository_steps:")
		line("      #   - {name: test, run: [make, test]}")
	}
	if hasAdapter(p.uses, configuration.AdapterBazel) {
		build, test := bazelCommands(p.Data)
		line("      # The first query of a large workspace takes a while.")
		line("      timeout: 10m")
		line("      bazel:")
		line("        # What verifies a rule, with a cache that outlives steps.")
		line("        build: %s", yamlList(build))
		line("        test: %s", yamlList(test))
	}
	if len(p.hubs) > 0 {
		line("      # No step verifies them, so two changes that share them alone do not wait for each other.")
		line("      hubs: %s", yamlList(p.hubs))
	}
	if len(p.uses) > 0 || len(p.whole) == 0 { // a repository that is one target has no other files
		line("      uncovered:")
		line("        # Files for which nothing has to be built. A change to another one that no target covers conflicts with everything,")
		line("        # and the whole repository is verified: landfall targets --uncovered lists them.")
		line("        ignore: %s", yamlList(p.ignore))
	}
	if len(p.whole) > 0 {
		line("      # What verifies the whole repository, where it is not known which targets a change affects.")
		line("      whole_repository_steps:")
		for _, step := range p.whole {
			line("        - %s", stepLine(step))
		}
		for _, u := range p.unrun {
			line("        # %s Those that write no files can be steps:", u)
			for _, step := range u.steps {
				line("        # - %s", stepLine(step))
			}
		}
	}
}

// stepLine returns a step as a value of YAML, on one line.
func stepLine(step configuration.Step) string {
	more := ""
	if step.Dir != "" {
		more += ", dir: " + quoted(step.Dir)
	}
	if len(step.Caches) > 0 {
		more += ", caches: " + yamlList(step.Caches)
	}
	return fmt.Sprintf("{name: %s, run: %s%s}", quoted(step.Name), yamlList(step.Run), more)
}

// plain are the texts that YAML takes as they are, in lists too.
var plain = regexp.MustCompile(`^(-{0,2}[A-Za-z]|[/_]|\.\.?/|\.[A-Za-z])(?:[A-Za-z0-9_./@+=~-]|:/)*[A-Za-z0-9_./@+=~-]$|^-?[A-Za-z]$`)

// reserved are words that are no texts in YAML.
var reserved = map[string]bool{"true": true, "false": true, "null": true, "yes": true, "no": true, "on": true, "off": true, ".inf": true, ".nan": true}

// quoted returns a text as a scalar of YAML, in quotes if it needs them.
func quoted(text string) string {
	if plain.MatchString(text) && !reserved[strings.ToLower(text)] {
		return text
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text can be encoded
	return strings.TrimSpace(b.String())
}

// yamlList returns texts as a list of YAML, on one line.
func yamlList(texts []string) string {
	words := make([]string, len(texts))
	for i, text := range texts {
		words[i] = quoted(text)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// dataFolder returns where a queue keeps its data by default: the first folder that is not of another repository of that name.
func dataFolder(home, name, url string) string {
	first := filepath.Join(home, ".landfall", name)
	folder := first
	for n := 2; gitrepo.MirrorsAnother(mirrorIn(folder, name), url); n++ {
		folder = fmt.Sprintf("%s-%d", first, n)
	}
	return folder
}

// mirrorIn returns where the services keep the mirror of a repository.
func mirrorIn(data, name string) string { return filepath.Join(data, "mirrors", name+".git") }
