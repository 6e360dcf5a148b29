package cargograph

import (
	"maps"
	"slices"
)

// configNames are where cargo's configuration can stand in a folder.
var configNames = []string{".cargo/config.toml", ".cargo/config"}

// configFile is what one configuration file of cargo says.
type configFile struct {
	found   []problem
	patches []patch
	// directories are folders that hold external packages; registries those that hold archives of them.
	directories, registries []string
	// relatives are the values of variables that are paths from where the configuration is.
	relatives []string
	// texts are all strings in it: any can be the path of a file.
	texts []string
	// unknown is why what it says cannot be followed, or empty.
	unknown string
}

// parseConfig reads a configuration file.
func parseConfig(content []byte) *configFile {
	d := parseTOML(content)
	c := &configFile{patches: d.readPatches(d.root)}
	for _, key := range []string{"paths", "include"} {
		if _, set := d.root[key]; set {
			c.unknown = "it sets " + key
		}
	}
	sources := d.table(d.root, "source")
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		table := d.table(sources, name)
		if folder := d.text(table, "directory"); folder != "" {
			c.directories = append(c.directories, folder)
		}
		if folder := d.text(table, "local-registry"); folder != "" {
			c.registries = append(c.registries, folder)
		}
	}
	variables := d.table(d.root, "env")
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		table, _ := variables[name].(map[string]any)
		if relative, _ := table["relative"].(bool); relative {
			c.relatives = append(c.relatives, d.text(table, "value"))
		}
	}
	eachText(d.root, func(text string) { c.texts = append(c.texts, text) })
	c.found = d.found
	return c
}

// placedConfig is a configuration file where it stands. What it names is relative to the folder that has the .cargo.
type placedConfig struct {
	*configFile
	path, base string
}

// useConfigs takes what configuration files say about a workspace.
func (s *survey) useConfigs(w *workspace, read func(path string) *configFile) {
	for dir := range around(w.path) {
		for _, name := range configNames {
			path := below(dir, name)
			file := read(path)
			if file == nil {
				continue
			}
			w.configs = append(w.configs, placedConfig{file, path, dir})
			s.problems.add(path, file.found)
			if file.unknown != "" {
				s.noteIncomplete("%s: %s", path, file.unknown)
			}
			for _, p := range file.patches {
				w.patches = append(w.patches, s.refer(path, dir, dependency{name: p.name, path: p.path}))
			}
			for _, folder := range file.directories {
				w.directories = s.appendFolder(w.directories, path, dir, folder)
			}
			for _, folder := range file.registries {
				w.registries = s.appendFolder(w.registries, path, dir, folder)
			}
		}
	}
}

func (s *survey) appendFolder(to []string, file, base, folder string) []string {
	at, ok := join(base, folder)
	if !ok {
		s.noteIncomplete("%s: the folder %s is outside the repository", file, folder)
		return to
	}
	return append(to, at)
}
