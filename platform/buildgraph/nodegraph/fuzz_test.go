package nodegraph

import (
	"strings"
	"testing"
)

func FuzzParsers(f *testing.F) {
	for _, seed := range []string{npmLockText, classicText, berryText, pnpmText, sample["package.json"], sample["packages/app/tsconfig.json"], sample["packages/app/src/index.ts"], "import(`../${x}`)\n// don't\n'..', 'x'", "'", "`", "\"../", "? a\n: b\n", "{\"a\": /*"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, name := range []string{"package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"} {
			l := parseLock(name, content)
			for key, e := range l.entries {
				for _, dep := range e.deps {
					if l.entries[dep] == nil {
						t.Errorf("%s: %s reaches %s, which is not there", name, key, dep)
					}
				}
			}
			l.find("packages/a", requirement{"x", "^1.0.0"})
		}
		file := parsePackageFile(content)
		for _, text := range file.paths {
			pathsIn(text)
		}
		_, _ = parseMemberPatterns(strings.Fields(string(content)))
		parsePnpmFile(content)
		for _, kind := range []string{"script", "text", "config"} {
			facts := factsOf(kind, content)
			for _, spec := range facts.paths {
				join("a/b", withoutWildcards(spec))
			}
			for _, spec := range facts.names {
				packageOf(spec)
			}
		}
	})
}
