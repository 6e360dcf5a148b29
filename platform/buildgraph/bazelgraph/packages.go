package bazelgraph

import (
	"context"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/gitrepo"
)

// addEnvironment defines what holds for every target: the workspace's own files and what they name, and the
// inputs that nothing declares.
func (a *assembler) addEnvironment(ctx context.Context) error {
	m := a.mentions
	a.environment = a.builder.Definition(environmentName, nil)
	for _, file := range slices.Sorted(maps.Keys(m.files)) {
		a.addPath(a.environment, file)
	}
	for _, e := range a.entries {
		// Bazel goes into folders behind links, where packages can be that no path of the tree shows.
		if e.Kind != gitrepo.Symlink {
			continue
		}
		if _, end, ok := a.walk(e.Path); ok && a.find(end) < 0 {
			a.addPath(a.environment, e.Path)
		}
	}
	for _, l := range sortedLabels(m.labels) {
		a.addLabel(a.environment, l)
		if strings.HasSuffix(l.name, ".bzl") || strings.HasSuffix(l.name, ".scl") {
			node, err := a.starlarkFile(ctx, l.path())
			if err != nil {
				return err
			}
			a.edge(a.environment, node)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(m.packages)) {
		a.addAll(a.environment, pkg)
	}
	for _, dir := range slices.Sorted(maps.Keys(m.below)) {
		var names []string
		for _, pkg := range slices.Sorted(maps.Keys(a.packages)) {
			if dir == "" || pkg == dir || strings.HasPrefix(pkg, dir+"/") {
				names = append(names, pkg)
				a.addAll(a.environment, pkg)
			}
		}
		a.edge(a.environment, a.builder.Listing("packages below //"+dir, names))
	}
	inputs := inputsOf(*a.options)
	for i, in := range a.options.Inputs {
		node := a.builder.Definition("inputs "+strings.Join(in.Files, " ")+" of "+strings.Join(in.Folders, " "), nil)
		a.inputs = append(a.inputs, node)
		for j, e := range a.entries {
			if matchesAny(inputs[i].files, e.Path) {
				a.edge(node, a.files[j])
			}
		}
		if len(in.Folders) == 0 {
			a.edge(a.environment, a.inputs[i])
		}
	}
	return a.addStarlark(ctx, a.environment, "tools/build_rules/prelude_bazel")
}

// addAll makes a node depend on all rules of a package, and on which they are.
func (a *assembler) addAll(from targets.Node, pkg string) {
	a.refer(from, targets.KindTarget, packageOf(pkg))
	for _, l := range a.members[pkg] {
		a.refer(from, targets.KindTarget, l.String())
	}
}

func sortedLabels(set map[label]bool) []label {
	return slices.SortedFunc(maps.Keys(set), func(x, y label) int { return strings.Compare(x.String(), y.String()) })
}

// addPackages defines the packages: that they are, what decides about their rules, and what package() says.
func (a *assembler) addPackages(ctx context.Context) error {
	for _, pkg := range slices.Sorted(maps.Keys(a.packages)) {
		a.builder.Definition(presenceOf(pkg), nil)
		build := path.Join(pkg, a.buildFile(pkg))
		node := a.builder.Target(packageOf(pkg), "package", nil)
		a.builder.NeedsNoSteps(node)
		a.edge(node, a.environment)
		a.addPath(node, build)
		a.refer(node, targets.KindListing, listingOf(pkg))
		loads := a.builder.Definition(loadsOf(pkg), nil)
		a.edge(node, loads)
		if err := a.addStarlark(ctx, loads, build); err != nil {
			return err
		}
		if err := a.addDefaults(ctx, pkg, build, loads); err != nil {
			return err
		}
	}
	for i := range a.answer.groups {
		g := &a.answer.groups[i]
		node := a.builder.Definition("group "+g.label.String(), g.digest[:])
		a.addGroups(node, g.includes)
	}
	for _, l := range slices.SortedFunc(maps.Keys(a.outputs), func(x, y label) int { return strings.Compare(x.String(), y.String()) }) {
		node := a.builder.Definition(outputName(l), nil)
		a.refer(node, targets.KindTarget, a.outputs[l].String())
	}
	return nil
}

// buildFile returns the name of a package's BUILD file. Bazel says which it is.
func (a *assembler) buildFile(pkg string) string {
	if a.sources[label{pkg: pkg, name: "BUILD.bazel"}] != nil {
		return "BUILD.bazel"
	}
	return "BUILD"
}

// addDefaults defines what holds for every rule of a package besides what Bazel prints of it.
func (a *assembler) addDefaults(ctx context.Context, pkg, build string, loads targets.Node) error {
	list, _, err := a.text(ctx, build)
	if err != nil {
		return err
	}
	said, plain := packageCalls(list)
	content := []byte(said)
	var visibility []string
	if s := a.sources[label{pkg: pkg, name: path.Base(build)}]; s != nil {
		// Features, licenses and default visibility, as Bazel understood them.
		content = append(content, s.digest[:]...)
		visibility = s.visibility
		for _, text := range s.loads {
			a.checkLoad(build, list, text)
		}
	}
	node := a.builder.Definition(defaultsOf(pkg), content)
	a.addGroups(node, visibility)
	if !plain {
		a.addPath(node, build)
		a.edge(node, loads)
	}
	return nil
}

// checkLoad makes sure that a file that Bazel says is loaded was found here too.
func (a *assembler) checkLoad(build string, list []token, text string) {
	l, ok := parseLabel(text)
	if !ok || l.repository != "" {
		return
	}
	if _, found := a.starlark[l.path()]; !found {
		a.noteIncomplete("%s loads %s, which does not stand in its text", build, l)
	}
}

// addRules defines the rules.
func (a *assembler) addRules(ctx context.Context) error {
	inputs := inputsOf(*a.options)
	for i := range a.answer.rules {
		if i%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := &a.answer.rules[i]
		if a.rules[r.label] != r {
			continue
		}
		name := r.label.String()
		commands := a.options.commands(r)
		node := a.builder.Target(name, r.class, commands)
		if len(commands) == 0 {
			a.builder.NeedsNoSteps(node) // by a tag of its own
		}
		a.edge(node, a.builder.Definition("rule "+name, r.digest[:]))
		a.edge(node, a.environment)
		a.refer(node, targets.KindDefinition, defaultsOf(r.label.pkg))
		for _, text := range r.inputs {
			l, ok := parseLabel(text)
			if !ok {
				a.noteIncomplete("%s depends on %q, which is not a label", name, text)
				continue
			}
			a.addLabel(node, l)
		}
		a.addGroups(node, r.visibility)
		if err := a.addDefinition(ctx, node, r); err != nil {
			return err
		}
		for j, in := range inputs {
			if matchesAny(in.folders, r.label.pkg) {
				a.edge(node, a.inputs[j])
			}
		}
	}
	return nil
}

// addDefinition makes a rule depend on the Starlark that its class is defined by. Where Bazel does not tell,
// that is everything behind the BUILD file.
func (a *assembler) addDefinition(ctx context.Context, node targets.Node, r *rule) error {
	if len(r.definition) == 0 && isNative(r.class) {
		return nil
	}
	known := len(r.definition) > 0
	for _, frame := range r.definition {
		file, ok := framePath(frame)
		switch {
		case !ok:
			known = false
		case filepath.IsAbs(file):
			if below, is := strings.CutPrefix(file, a.root+"/"); is {
				file = below
			} else if !strings.Contains(file, "/external/") && !strings.Contains(file, "builtins") {
				known = false
			} else {
				continue
			}
			fallthrough
		default:
			if strings.HasPrefix(file, "external/") || strings.HasPrefix(file, "@") {
				continue // Pinned by the workspace's files.
			}
			starlark, err := a.starlarkFile(ctx, path.Clean(file))
			if err != nil {
				return err
			}
			a.edge(node, starlark)
		}
	}
	if !known {
		a.refer(node, targets.KindDefinition, loadsOf(r.label.pkg))
	}
	return nil
}

// native are the classes of rules that Bazel has had built in at some time. One of these without a Starlark
// frame is built in; another one is of a Bazel that gives no frames.
var native = strings.Fields(`alias bind cc_binary cc_import cc_libc_top_alias cc_library cc_proto_library cc_shared_library cc_test cc_toolchain
	cc_toolchain_alias cc_toolchain_suite config_feature_flag config_setting constraint_setting constraint_value environment fdo_prefetch_hints
	fdo_profile filegroup genquery genrule java_binary java_import java_library java_lite_proto_library java_package_configuration
	java_plugin java_plugins_flag_alias java_proto_library java_runtime java_test java_toolchain label_flag label_setting objc_import objc_library
	package_group platform propeller_optimize proto_lang_toolchain proto_library py_binary py_library py_runtime py_test sh_binary sh_library sh_test
	starlark_doc_extract test_suite toolchain toolchain_type xcode_config xcode_version action_listener extra_action`)

func isNative(class string) bool { return slices.Contains(native, class) }
