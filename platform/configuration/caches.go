package configuration

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Cache is a folder that outlives steps, for what they would fetch or compute again: it goes by content, so that what is in
// it changes no result. Its path is in Variable.
type Cache struct {
	// Variable has the path. Empty for a name that StandardCaches has: the tool's own variable.
	Variable string `yaml:"variable" maximum:"255" pattern:"line"`
	// MaxSize is what it is trimmed to, when no step uses it.
	MaxSize Size `yaml:"max_size" minimum:"1MiB" maximum:"64TiB"`
	// Share says whose code may leave there what a step reads: that of landed changes (mainline), of the builds of the same
	// change (change), or of all changes (queue, and worker, where each worker has a folder of its own).
	Share string `yaml:"share" enum:"mainline,change,queue,worker"`
	// Trim says what goes when it is too large: the files that were not used for the longest time, or all, for tools that
	// take a folder of which files are missing for a whole one.
	Trim string `yaml:"trim" enum:"files,all"`
}

// Values of Cache.Share and Cache.Trim.
const (
	ShareMainline = "mainline"
	ShareChange   = "change"
	ShareQueue    = "queue"
	ShareWorker   = "worker"
	TrimFiles     = "files"
)

// standardCaches are those of tools whose variable is known. Go's build cache removes single files itself; of the others it
// is not said that they may be missing.
var standardCaches = map[string]Cache{
	"go-build": {Variable: "GOCACHE", Trim: TrimFiles},
	"go-mod":   {Variable: "GOMODCACHE"},
	"npm":      {Variable: "npm_config_cache"},
	"cargo":    {Variable: "CARGO_HOME"},
	"pip":      {Variable: "PIP_CACHE_DIR"},
	"uv":       {Variable: "UV_CACHE_DIR"},
	"poetry":   {Variable: "POETRY_CACHE_DIR"},
	"pnpm":     {Variable: "npm_config_store_dir"},
	"yarn":     {Variable: "YARN_CACHE_FOLDER"},
	"bun":      {Variable: "BUN_INSTALL_CACHE_DIR"},
	"maven":    {Variable: "MAVEN_REPO_LOCAL"}, // Maven reads no variable: its command says -Dmaven.repo.local
	"gradle":   {Variable: "GRADLE_USER_HOME"},
}

// NewCache returns a cache with the defaults for its name.
func NewCache(name string) Cache {
	cache := Cache{MaxSize: 10 * GiB, Share: ShareMainline, Trim: "all"}
	if standard, known := standardCaches[name]; known {
		cache.Variable = standard.Variable
		if standard.Trim != "" {
			cache.Trim = standard.Trim
		}
	}
	return cache
}

// StandardCaches returns the names of caches that need no configuration, sorted.
func StandardCaches() []string { return slices.Sorted(maps.Keys(standardCaches)) }

// Cache returns the cache of that name: the configured one, else the standard one.
func (s Steps) Cache(name string) (Cache, bool) {
	if cache, configured := s.Caches[name]; configured {
		return cache, true
	}
	_, standard := standardCaches[name]
	return NewCache(name), standard
}

// SharedCaches returns the names of the caches in which a change can leave what the step of another one takes for its own,
// sorted.
func (s Steps) SharedCaches() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Caches)) {
		if s.Caches[name].Share != ShareMainline {
			names = append(names, name)
		}
	}
	return names
}

// OpenCache is a folder of a tool that a variable of the steps names and every step of the queue can write to: a change can
// leave there what the step of another one takes for its own.
type OpenCache struct {
	Variable, Folder string
	// Name is that of the standard cache with this variable.
	Name string
}

// OpenCaches returns the folders in the place of standard caches, by variable. One that steps only read is none.
func (s Steps) OpenCaches() (list []OpenCache) {
	for _, name := range StandardCaches() {
		variable := standardCaches[name].Variable
		folder := s.Environment.Variables[variable]
		writes := func(open string) bool {
			return folder == open || strings.HasPrefix(folder, open+"/")
		}
		if filepath.IsAbs(folder) && (s.Isolation == IsolationOff || slices.ContainsFunc(s.Write, writes)) {
			list = append(list, OpenCache{variable, folder, name})
		}
	}
	slices.SortFunc(list, func(a, b OpenCache) int { return strings.Compare(a.Variable, b.Variable) })
	return list
}

// Risk says what a folder risks in a queue.
func (c OpenCache) Risk() string {
	return fmt.Sprintf("%s of steps.environment.variables is %s, a folder that every step can write to: a change can leave a forged result there, which the step of another one uses", c.Variable, c.Folder)
}

// Advice says what to write in a folder's place.
func (q Queue) Advice(c OpenCache) string {
	advice := fmt.Sprintf("Remove the line %s, and the folder from steps.write", c.Variable)
	if slices.Contains(q.CachesOf(), c.Name) {
		return advice + fmt.Sprintf(". Steps have the cache %s in its place.", c.Name)
	}
	return advice + fmt.Sprintf("; write caches: [%s] in the steps that use it.", c.Name)
}

// CachesOf returns the names of the caches that each step of a queue is given, asked for or not: those of the tools
// that its adapters call.
func (q Queue) CachesOf() []string {
	var names []string
	for _, of := range []struct {
		adapter Adapter
		caches  []string
	}{{AdapterGo, []string{"go-build", "go-mod"}}, {AdapterNode, []string{"npm", "pnpm", "yarn", "bun"}}, {AdapterCargo, []string{"cargo"}}, {AdapterPython, []string{"pip", "uv", "poetry"}}} {
		if q.Analysis.UsesAny(of.adapter) {
			names = append(names, of.caches...)
		}
	}
	return names
}

func (w fieldHash) caches(caches map[string]Cache) {
	w.integer("steps.caches", int64(len(caches)))
	for _, name := range slices.Sorted(maps.Keys(caches)) {
		c := caches[name]
		w.text("name", name)
		w.text("variable", c.Variable)
		w.integer("max_size", int64(c.MaxSize))
		w.text("share", c.Share)
		w.text("trim", c.Trim)
	}
}

func checkCaches(caches map[string]Cache, at *path, f *findings) {
	first := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(caches)) {
		place := at.child(name).child("variable")
		variable := caches[name].Variable
		if !f.sound(place) {
			continue
		}
		if variable == "" {
			f.add(at.child(name), "has no variable, must name the one that its path is in", "as in variable: CCACHE_DIR")
			continue
		}
		checkVariable(variable, place, f)
		if earlier, twice := first[variable]; twice {
			f.add(place, fmt.Sprintf("%s is the variable of cache %s as well", quote(variable), earlier), "give each cache a variable of its own")
			continue
		}
		first[variable] = name
	}
}

// ownVariables are those that the builder sets for every step.
var ownVariables = []string{"CI", "HOME", "PATH", "TMPDIR"}

// checkVariable checks the name of a variable that the builder sets for a step.
func checkVariable(name string, at *path, f *findings) {
	if !checkPattern(name, "variable", "", at, f) {
		return
	}
	if slices.Contains(ownVariables, name) {
		f.add(at, fmt.Sprintf("is %s, which steps have anyway", quote(name)), "choose another")
	}
}
