// Prints what each member of a workspace reaches, as node finds it: for each folder given as an argument a list of
// "name@version" for installed packages, and of folders for members. Packages that are not installed are left out.
const fs = require('fs');
const path = require('path');

const root = fs.realpathSync(process.cwd());

function find(from, name) {
  for (let dir = from; ; dir = path.dirname(dir)) {
    const candidate = path.join(dir, 'node_modules', name);
    if (fs.existsSync(path.join(candidate, 'package.json'))) return fs.realpathSync(candidate);
    if (dir === path.dirname(dir)) return null;
  }
}

function reach(member) {
  const found = new Set();
  const seen = new Set();
  const pending = [path.join(root, member)];
  while (pending.length > 0) {
    const dir = pending.pop();
    if (seen.has(dir)) continue;
    seen.add(dir);
    const manifest = JSON.parse(fs.readFileSync(path.join(dir, 'package.json'), 'utf8'));
    const relative = path.relative(root, dir);
    const installed = relative.split(path.sep).includes('node_modules');
    found.add(installed ? `${manifest.name}@${manifest.version}` : relative);
    const fields = [manifest.dependencies, manifest.optionalDependencies, manifest.peerDependencies];
    if (!installed) fields.push(manifest.devDependencies);
    for (const name of Object.keys(Object.assign({}, ...fields))) {
      const next = find(dir, name);
      if (next !== null) pending.push(next);
    }
  }
  return [...found].sort();
}

console.log(JSON.stringify(Object.fromEntries(process.argv.slice(2).map((member) => [member, reach(member)]))));
