// Prints the files that node loads for the package in a folder, relative to the working folder.
const Module = require('module');
const fs = require('fs');
const path = require('path');

const root = fs.realpathSync(process.cwd());
const loaded = new Set();
const original = Module._load;
Module._load = function (request, parent, isMain) {
  try {
    const file = Module._resolveFilename(request, parent, isMain);
    if (path.isAbsolute(file)) loaded.add(path.relative(root, fs.realpathSync(file)));
  } catch {}
  return original.apply(this, arguments);
};
const folder = path.join(root, process.argv[2]);
try {
  Module.createRequire(path.join(folder, 'landfall.cjs'))(folder);
} catch {}
fs.writeSync(1, JSON.stringify([...loaded].sort()) + '\n');
process.exit(0);
