package nodegraph

import (
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// TestATestThatGoesThroughPackagesDependsOnAllManifests: they are in every closed workspace, so it would not fail for want of them.
func TestATestThatGoesThroughPackagesDependsOnAllManifests(t *testing.T) {
	for code, want := range map[string]bool{
		`for (const p of fs.readdirSync(path.dirname(__dirname))) JSON.parse(fs.readFileSync(path.join(path.dirname(__dirname), p, "package.json")))`: true,
		"for (const p of globSync('*')) readFileSync(`${root}/${p}/package.json`)":                                                                    true,
		`execSync("npm query .workspace", {encoding: "utf8"})`:                                                                                        true,
		`spawnSync("npm", ["ls", "--json"])`:                                                                                                          true,
		`spawnSync(win ? "pnpm.cmd" : "pnpm", ["ls"])`:                                                                                                true,
		"await $`yarn workspaces list --json`":                                                                                                        true,
		`execa("npx", ["lerna", "ls"])`:                                                                                                               true,
		`execSync("cd ../.. && bun pm ls")`:                                                                                                           true,
		`spawnSync(process.execPath, [process.env.npm_execpath, "query", ".workspace"])`:                                                              true,
		`console.log("run npm install first"); execSync("node x.js")`:                                                                                 false,
		`const managers = ["npm", "yarn"]`:                                                                                                            false,
		`const own = require("./package.json"); fs.readdirSync("data")`:                                                                               false,
		`const own = path.join(__dirname, "package.json")`:                                                                                            false,
	} {
		base := memoryTree{
			"package.json": `{"private":true,"workspaces":["packages/*"]}`, "package-lock.json": `{"lockfileVersion":3,"packages":{}}`,
			"packages/a/package.json": `{"name":"a","version":"1.0.0","scripts":{"test":"node a.test.js"}}`, "packages/a/a.test.js": code,
			"packages/b/package.json": `{"name":"b","version":"1.0.0","license":"MIT","scripts":{"test":"true"}}`,
		}
		head := base.with(memoryTree{"packages/b/package.json": strings.Replace(base["packages/b/package.json"], "MIT", "ISC", 1)})
		d := targets.Delta(load(t, base), load(t, head))
		affected := false
		for _, v := range d.Affected {
			affected = affected || v.Name == "node://packages/a [test]"
		}
		if affected != want {
			t.Errorf("%s: another manifest affects it: %v", code, affected)
		}
	}
}

func TestAScriptThatAsksAPackageManagerDependsOnAllManifests(t *testing.T) {
	for line, want := range map[string]bool{
		"npm ls && node --test": true, "npm query .workspace | node check.js": true, "yarn workspaces list": true, "pnpm -r list --json": true,
		"npm run unit": false, "yarn build && node x.js": false, "npx jest": false,
	} {
		base := sample.with(memoryTree{"packages/tool/package.json": `{"name": "tool", "scripts": {"test": "` + line + `"}}`})
		got := delta(t, base, base.with(base.replaced(t, "packages/util/package.json", `"2.0.0"`, `"2.0.0", "license": "MIT"`)))
		if strings.Contains(got, "packages/tool [test]") != want {
			t.Errorf("%s: an edit of another manifest affects %s", line, got)
		}
	}
}
