package nodegraph

// sample is a workspace of npm: app needs lib and left-pad, lib needs util and right-pad, tool stands alone.
var sample = memoryTree{
	"package.json":           `{"name": "root", "private": true, "workspaces": ["packages/*"], "scripts": {"build": "turbo run build", "test": "npm test -ws"}, "devDependencies": {"typescript": "^5.0.0"}}`,
	"package-lock.json":      npmLockText,
	"README.md":              "readme\n",
	"tsconfig.base.json":     `{"compilerOptions": {"strict": true, "paths": {"@alias/*": ["./shared/*/src"]}}}`,
	".nvmrc":                 "20\n",
	"scripts/build.js":       "require('./lib/steps')\n",
	"scripts/lib/steps.js":   "module.exports = 1\n",
	"scripts/other.js":       "\n",
	"shared/colors/src/x.ts": "export const x = 1\n",

	"packages/app/package.json":     `{"name": "app", "version": "1.0.0", "scripts": {"build": "node ../../scripts/build.js", "test": "jest"}, "dependencies": {"@s/lib": "^1.0.0", "left-pad": "^1.0.0"}}`,
	"packages/app/tsconfig.json":    `{"extends": "../../tsconfig.base.json", /* comment */ "references": [{"path": "../lib"}],}`,
	"packages/app/src/index.ts":     "import { lib } from '@s/lib'\nimport pad from \"left-pad\"\nexport * from './inner'\n",
	"packages/app/src/inner.ts":     "import { x } from '@alias/colors'\n",
	"packages/app/test/app.test.ts": "const x = require('../src')\n",
	"packages/lib/package.json":     `{"name": "@s/lib", "version": "1.0.0", "scripts": {"build": "tsc", "test": "echo \"Error: no test specified\" && exit 1"}, "dependencies": {"util-x": "*", "right-pad": "1.0.0"}}`,
	"packages/lib/src/lib.ts":       "export const lib = 1\n",
	"packages/util/package.json":    `{"name": "util-x", "version": "2.0.0", "scripts": {"test": "node --test"}}`,
	"packages/util/index.js":        "module.exports = require('../../shared/colors/src/x')\n",
	"packages/tool/package.json":    `{"name": "tool", "scripts": {"build": "node build.js", "typecheck": "tsc --noEmit"}, "devDependencies": {"deep": "^1.0.0"}}`,
	"packages/tool/build.js":        "import('middle')\n",
	"packages/notes.txt":            "notes\n",
}

const npmLockText = `{
  "name": "root", "lockfileVersion": 3, "requires": true,
  "packages": {
    "": {"name": "root", "workspaces": ["packages/*"], "devDependencies": {"typescript": "^5.0.0"}},
    "packages/app": {"version": "1.0.0", "dependencies": {"@s/lib": "^1.0.0", "left-pad": "^1.0.0"}},
    "packages/lib": {"name": "@s/lib", "version": "1.0.0", "dependencies": {"util-x": "*", "right-pad": "1.0.0"}},
    "packages/util": {"name": "util-x", "version": "2.0.0"},
    "packages/tool": {"name": "tool", "devDependencies": {"deep": "^1.0.0"}},
    "node_modules/app": {"resolved": "packages/app", "link": true},
    "node_modules/@s/lib": {"resolved": "packages/lib", "link": true},
    "node_modules/util-x": {"resolved": "packages/util", "link": true},
    "node_modules/tool": {"resolved": "packages/tool", "link": true},
    "node_modules/typescript": {"version": "5.1.0", "integrity": "sha512-ts", "dev": true},
    "node_modules/left-pad": {"version": "1.3.0", "integrity": "sha512-left", "dependencies": {"middle": "^1.0.0"}},
    "node_modules/right-pad": {"version": "1.0.0", "integrity": "sha512-right"},
    "node_modules/middle": {"version": "1.0.0", "integrity": "sha512-m1", "dependencies": {"bottom": "1.0.0"}},
    "node_modules/bottom": {"version": "1.0.0", "integrity": "sha512-b1"},
    "node_modules/deep": {"version": "1.0.0", "integrity": "sha512-deep", "dependencies": {"middle": "^2.0.0"}},
    "node_modules/deep/node_modules/middle": {"version": "2.0.0", "integrity": "sha512-m2"}
  }
}
`
