// The doors of src (src/sandbox/index.ts and so on), and how to look through them: which file is behind each name.
//
// A part of src is imported by its door only. To load the whole part for one name would make each command start later and each test load
// everything, so the bundler and vitest are given the files behind the names, and so is what asks who uses a file.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

const parts = ["sandbox", "tools", "agent", "batch", "command", "services"];

/** A statement that takes names from a door: its keyword, whether it takes types only, the names, and the door. */
const STATIC = /\b(import|export)( type)? \{([^{}]*)\} from "(\.[^"]*\/index\.js)";/g;
const DESTRUCTURED = /const \{([^{}]*)\} = await import\(\s*"(\.[^"]*\/index\.js)",?\s*\)/g;
/** As the compiler writes the types that it has found out. */
const TYPE = /\bimport\("(\.[^"]*\/index\.js)"\)\.(\w+)/g;
const MEMBER = /\(await import\(\s*"(\.[^"]*\/index\.js)",?\s*\)\)\.(\w+)/g;
const TOGETHER = /const \[((?:\s*\{[^{}]*\},?)+\s*)\] = await Promise\.all\(\[([^\][]*)\]\)/g;

const known = new Map();

/** The files behind the names of a door (an absolute path), or null if the file is none. What is compiled has the same doors. */
function namesOf(door) {
  const part = parts.find((one) =>
    ["src", "dist"].some((place) => door === join(root, place, one, "index.ts")),
  );
  if (part === undefined) return null;
  if (!known.has(part)) known.set(part, readDoor(readFileSync(join(root, "src", part, "index.ts"), "utf8")));
  return known.get(part);
}

/** For each name that a door gives, the file that has it, relative to the door ("./pool/pool.js"). */
export function readDoor(text) {
  const names = new Map();
  for (const [, , , list, file] of text.matchAll(/\b(export)( type)? \{([^{}]*)\} from "(\.[^"]+)";/g))
    for (const name of listed(list)) names.set(name, file);
  return names;
}

/** Replaces each import from a door by imports of the files behind its names. `file` is the absolute path of the file with this code. */
export function lookThrough(code, file) {
  if (!code.includes('/index.js"')) return code;
  const from = dirname(file);
  return code
    .replace(STATIC, (statement, keyword, type = "", list, path) => {
      const behind = byFile(from, path, list);
      if (behind === null) return statement;
      const imports = behind.map(([to, names]) => `${keyword}${type} { ${names.join(", ")} } from "${to}";`);
      return sameLines(statement, imports.join(" "));
    })
    .replace(TOGETHER, (statement, left, right) => {
      const taken = [...left.matchAll(/\{([^{}]*)\}/g)].map(([, list]) => list);
      const loads = right.split(/,\s*(?=import\()/).map((one) => one.trim().replace(/,$/, ""));
      if (taken.length !== loads.length) return statement;
      const pairs = loads.flatMap((load, index) => {
        const path = /^import\(\s*"(\.[^"]*\/index\.js)",?\s*\)$/.exec(load)?.[1];
        const behind = path === undefined ? null : byFile(from, path, taken[index]);
        return behind === null
          ? [[load, taken[index]]]
          : behind.map(([to, names]) => [`import("${to}")`, names]);
      });
      const patterns = pairs.map(([, names]) => pattern(names));
      return sameLines(
        statement,
        `const [${patterns.join(", ")}] = await Promise.all([${pairs.map(([load]) => load).join(", ")}])`,
      );
    })
    .replace(DESTRUCTURED, (statement, list, path) => {
      const behind = byFile(from, path, list);
      if (behind === null) return statement;
      const patterns = behind.map(([, names]) => pattern(names));
      const loads = behind.map(([to]) => `import("${to}")`);
      return sameLines(
        statement,
        behind.length === 1
          ? `const ${patterns[0]} = await ${loads[0]}`
          : `const [${patterns.join(", ")}] = await Promise.all([${loads.join(", ")}])`,
      );
    })
    .replace(MEMBER, (expression, path, name) => {
      const behind = byFile(from, path, name);
      return behind === null ? expression : `(await import("${behind[0][0]}")).${name}`;
    })
    .replace(TYPE, (type, path, name) => {
      const behind = byFile(from, path, name);
      return behind === null ? type : `import("${behind[0][0]}").${name}`;
    });
}

/** A plugin of Rolldown and of Vite. */
export function throughDoors() {
  return {
    name: "through-doors",
    enforce: "pre",
    transform: {
      filter: { id: /\/src\/.*\.tsx?$/ },
      handler: (code, id) => {
        const seen = lookThrough(code, id);
        const left = /\bimport\(\s*"(\.[^"]*\/index\.js)"/.exec(seen);
        if (left !== null && namesOf(doorAt(dirname(id), left[1])) !== null)
          throw new Error(
            `${id}: a door is loaded as a whole. Write: const { name } = await import("${left[1]}")`,
          );
        // Lines stay where they are, and brig's source maps only name files.
        return seen === code ? null : { code: seen, map: null };
      },
    },
  };
}

/** Pairs of a file and what is taken from it, or null if the path leads to no door. */
function byFile(from, path, list) {
  const door = doorAt(from, path);
  const names = namesOf(door);
  if (names === null) return null;
  const files = new Map();
  for (const name of listed(list, true)) {
    const original = name
      .replace(/^type /, "")
      .split(/ as |:/)[0]
      .trim();
    const file = names.get(original);
    if (file === undefined) return null;
    const to = path.replace(/index\.js$/, file.slice("./".length));
    files.set(to, [...(files.get(to) ?? []), name.replace(/:\s*/, " as ")]);
  }
  return [...files];
}

function doorAt(from, path) {
  return join(from, path).replace(/\.js$/, ".ts");
}

function listed(list, whole = false) {
  return list
    .replace(/\/\/.*$/gm, "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "")
    .map((name) =>
      whole
        ? name
        : name
            .replace(/^type /, "")
            .split(" as ")
            .at(-1),
    );
}

/** What takes names from a file that is loaded by \`import()\`. */
function pattern(names) {
  return Array.isArray(names)
    ? `{ ${names.map((name) => name.replace(" as ", ": ")).join(", ")} }`
    : `{${names}}`;
}

function sameLines(before, after) {
  const missing = before.split("\n").length - after.split("\n").length;
  return after + "\n".repeat(Math.max(0, missing));
}
