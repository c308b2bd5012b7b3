#!/usr/bin/env -S node --
"use strict";
// Starts a program of brig: this is dist/cli/main.js and dist/cli/codex.js. Each chunk beside it is a function in
// parentheses. Beside some chunks lies what V8 makes of them (code-cache.js), because compiling takes longer than all
// the rest of a short command. V8 itself refuses code of another version, and then compiles the chunk as usual.
//
// Without the "--" in the first line, Node would obey --env-file wherever it is among brig's arguments, and the
// NODE_OPTIONS in that file: `brig exec node --env-file=.env` would run a program of the workspace on the host. npm's
// shims for Windows take the "--" from that line too.
const { readFileSync } = require("node:fs");
const { Script } = require("node:vm");

const node = process.versions.node;
const [major, minor] = node.split(".").map(Number);
const [leastMajor, leastMinor] = [LEAST_NODE];
if (major < leastMajor || (major === leastMajor && minor < leastMinor))
  refuse(
    `this is Node ${node}, and brig needs Node ${leastMajor}.${leastMinor} or newer`,
    "install it from https://nodejs.org, or with a version manager such as nvm",
  );

// Node 22 and newer obey these even after "--". By now Node has read the file, and it may have changed the arguments:
// nobody knows any more what was asked for.
const settings = /^--experimental-(?:config-file(?==|$)|default-config-file)/;
const [setting] = major < 22 ? [] : process.argv.slice(2).flatMap((word) => settings.exec(word)?.[0] ?? []);
if (setting !== undefined)
  refuse(
    `Node ${node}, which runs brig, obeys ${setting} itself, wherever it is among brig's arguments`,
    `write the command as one text, in which Node does not look for it: brig exec -- sh -c "node ${setting} …"`,
  );

function refuse(message, hint) {
  process.stderr.write(`brig: ${message}\nhint: ${hint}\n`);
  process.exit(125);
}

const loaded = new Map();

function load(name) {
  // A promise, which the chunk awaits; code in a Script cannot import by itself.
  if (name.endsWith(".mjs")) return import(name);
  if (!name.startsWith("./chunk-")) return require(name);
  const earlier = loaded.get(name);
  if (earlier !== undefined) return earlier.exports;
  const module = { exports: {} };
  loaded.set(name, module);
  const file = `${__dirname}${name.slice(1)}`;
  // Node 20 takes the name from the compiled code, so that it must be the same for everybody: no absolute path.
  const filename = `brig/${name.slice(2)}`;
  const script = new Script(readFileSync(file, "utf8"), { filename, cachedData: compiled(file) });
  script.runInThisContext()(module.exports, load, module, file, __dirname);
  return module.exports;
}

/** The version is in the name because V8 does not know of Node's own changes to it. */
function compiled(file) {
  try {
    return readFileSync(`${file}.${process.version}-${process.arch}`);
  } catch {
    return undefined;
  }
}

// A command in a sandbox that is open needs little code, which the whole program would take longer to load than the command to run.
const quick = "QUICK";
const isQuick = quick !== "" && process.argv[2] === "exec" && process.argv.includes("--in");
const begin = () => load("./ENTRY");
if (isQuick) load(`./${quick}`).start(begin);
else begin();
