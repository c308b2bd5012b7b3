// Bundles the command line and the library into a few files each. Loading some four hundred modules one by one takes longer than
// a short command does, and the bundled packages need not be installed with brig.
import { execFile } from "node:child_process";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "rolldown";
import { writeCodeCache } from "./bundle/code-cache.js";
import { Licences } from "./bundle/licences.js";
import { compilePage, pages } from "./bundle/page.js";
import { lookThrough, throughDoors } from "./doors.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

/**
 * Replaces the `require` calls of Commander, because setting up `createRequire` takes 1.5 ms. Two of
 * the modules are not loaded at all: `process` is a global anyway, and only commands that are separate
 * programs, which brig does not have, need `child_process`.
 */
const commanderWithoutRequire = {
  name: "commander-without-require",
  load: {
    filter: { id: /\/commander\/lib\/command\.js$/ },
    handler: async (file) =>
      (await readFile(file, "utf8"))
        .replace("const process = require('node:process');", "")
        .replace("const childProcess = require('node:child_process');", "")
        .replace(/require\('(node:[a-z]+)'\)/g, "process.getBuiltinModule('$1')"),
  },
};

/**
 * What the commands need that open a sandbox goes into few files, because each additional file takes half a millisecond to load. A group also takes
 * the files that its files import, so the groups that are loaded first come first. All other code is left to the bundler, which makes a file of what
 * the same commands need: a group of what several commands share would have each of them load what any of them needs.
 */
const groups = [
  // What a command in a sandbox that is open needs. It loads nothing else.
  {
    name: "quick",
    test: /\/src\/(?:cli\/lasting\/quick-exec|services\/lasting\/(?:client\/command-connection|home\/service-socket|wire\/frames))\.ts$/,
    priority: 10,
  },
  // What every command needs, --help too. A module that is missing here only costs time.
  {
    name: "start",
    test: /usingCtx\.js$|\/src\/(?:errors|version|package-root|lib\/(?:env|errno|json\/json-text|terminal\/(?:closed-terminals|control-sequences|terminal)|steps|time\/any-signal|utf8)|command\/(?:error-text|render)|cli\/(?:command-list|interpreted-schemas|conversation\/can-converse|display\/process-warnings|exit-status|host|program|run-in-process|trace))\.ts$/,
    priority: 9,
  },
  { name: "zod", test: /\/node_modules\/zod\//, priority: 7 },
  // What the flags of commands that open a sandbox need.
  {
    name: "options",
    test: /\/src\/(?:sandbox\/(?:policy\/(?:limit-bounds|modes)|process\/timeouts|output\/call-cause)|lib\/(?:bytes|suggest|terminal\/(?:display-width|progress|terminal-guard)|time\/durations)|command\/(?:flags\/(?:limit-options|option-values|sandbox-flags|secret-option|variable-options)|open-sandbox|piped-session|ports\/(?:offer-ports|published-ports|sandbox-ports)|receipt-text|streams|terminal-session)|cli\/display\/exit-remarks)\.ts$/,
    priority: 8,
  },
  // Loaded next, so that the engine can answer while the rest is being loaded.
  {
    name: "engine",
    test: /\/src\/(?:sandbox\/early-engine\.ts|sandbox\/docker\/(?!calls\/tar|diagnosis\/|engine-probe|podman\/|ssh-agent)|lib\/(?:json\/json-shape|json\/parse-json|time\/(?:pause|time-limit))\.ts)/,
    priority: 6,
  },
  // What is looked at before the engine has to answer: the policy, and the directories. A run sends its first request when it has loaded this.
  {
    name: "settings",
    test: /\/src\/(?:known-options|sandbox\/(?:output\/(?:captured-output|cut-text)|plan\/(?:missing-image|unknown-runtime)|policy\/hosts|settings\/(?:chosen-policy|resolve-settings))|lib\/(?!http\/|setting-kinds|tls\/|young-garbage).*)\.ts$/,
    priority: 5,
  },
  // Exactly what a sandbox needs until its container is starting. Whatever else is in here delays the start.
  { name: "sandbox", test: /\/src\/sandbox\/open-sandbox\.ts$/, priority: 4 },
  // What a sandbox needs while its container is starting.
  {
    name: "running",
    test: /\/src\/sandbox\/(?!attack\/|channel\/link-journal|diagnose-runtimes|docker\/|early-engine|egress\/|images\/|lasting\/|network\/(?!egress\/(?!sandbox-egress|plant-canary|policy-egress|read-egress|trust))|open-beside|output\/|policy\/|pool|settings\/checked-limits|sweep)/,
    priority: 3,
  },
  // Only what has an allow-list or publishes ports needs this.
  {
    name: "network",
    test: /\/src\/sandbox\/(?:egress\/(?!addresses|canaries\/|inspection|read-request|secrets\/|tls\/)|network\/(?!egress\/(?!sandbox-egress)))|\/node_modules\/(?:dns-packet|@leichtgewicht)\//,
    priority: 2,
  },
  // Exactly what `brig run` needs until it has sent its first request: the group takes what its file imports.
  { name: "run", test: /\/src\/cli\/commands\/run\.ts$/, priority: 2 },
  // Only rules for requests and secrets need this. Low, so that it takes nothing with it that sandboxes without them need.
  {
    name: "inspection",
    test: /\/src\/sandbox\/(?:egress\/(?:canaries\/|inspection|read-request|secrets\/|tls\/)|lasting\/kept-egress|network\/egress\/(?:plant-canary|policy-egress|read-egress|trust))|\/node_modules\/(?:pkijs|asn1js|bytestreamjs|@peculiar|@noble)\//,
    priority: 0,
  },
  // The queue's storage and secrets of AWS need it, and neither needs the other.
  { name: "aws", test: /\/node_modules\/aws4fetch\//, priority: 0 },
];

/** What `brig exec` loads; it then needs 31 ms less. All chunks would be 16 MB instead of 2, and matter little to who waits for a model. */
const compiledChunks = [
  "rolldown-runtime",
  "exec-in",
  "quick",
  "main",
  "start",
  "options",
  "engine",
  "exec",
  "settings",
  "sandbox",
  "running",
  "run",
  "zod",
];

/** Computes the image tags at build time; otherwise each start of a sandbox would read forty files, which takes 30 ms. */
const compiledTags = {
  name: "compiled-tags",
  load: {
    filter: { id: /\/src\/sandbox\/images\/compiled-tags\.ts$/ },
    handler: async () => {
      const { readBuildContext } = await import("../dist/sandbox/images/build-context.js");
      const { imageDefinitions } = await import("../dist/sandbox/images/definition.js");
      const tags = ["amd64", "arm64"].map(async (arch) => [
        arch,
        (await readBuildContext(imageDefinitions.toolbox, arch)).tag,
      ]);
      return `export const compiledTags = ${JSON.stringify(Object.fromEntries(await Promise.all(tags)))};`;
    },
  },
};

/** Parses the modes at build time; otherwise each start of a sandbox would load the parser and the schema, which takes 60 ms. */
const compiledPolicies = {
  name: "compiled-policies",
  load: {
    filter: { id: /\/src\/sandbox\/policy\/compiled-policies\.ts$/ },
    handler: async () => {
      const { parsePolicy } = await import("../dist/sandbox/policy/parse-policy.js");
      const { SANDBOX_MODES } = await import("../dist/sandbox/policy/modes.js");
      const policies = SANDBOX_MODES.map(async (mode) => {
        const file = join(root, "sandbox-policies", `${mode}.toml`);
        const toml = await readFile(file, "utf8");
        return { toml, json: JSON.stringify(parsePolicy(toml, file)) };
      });
      return `export const compiledPolicies = ${JSON.stringify(await Promise.all(policies))};`;
    },
  },
};

const licences = new Licences();

const common = {
  cwd: root,
  platform: "node",
  // photon-node loads files next to itself.
  external: ["@silvia-odwyer/photon-node"],
  transform: { target: "node20" },
  plugins: [throughDoors(), commanderWithoutRequire, compiledTags, compiledPolicies, licences.plugin()],
  // Some dynamically imported modules are also imported statically elsewhere, which is no problem.
  checks: { ineffectiveDynamicImport: false },
  logLevel: "warn",
};

/** "hidden" leaves out the comments that name the source maps: those of the command line are not in the package. */
const output = { format: "esm", minify: true, sourcemap: "hidden" };

const cli = join(dist, "cli");
await removeChunks(cli);
// CommonJS, because only that can be loaded with the code that V8 made of it.
const { output: chunks } = await build({
  ...common,
  input: {
    main: "src/cli/main.ts",
    codex: "src/cli/codex/codex-main.ts",
    "exec-in": "src/cli/lasting/quick-main.ts",
  },
  output: {
    ...output,
    format: "cjs",
    // Code in a Script cannot import by itself, not even a module of Node.
    dynamicImportInCjs: false,
    dir: cli,
    entryFileNames: "chunk-[name]-[hash].js",
    chunkFileNames: "chunk-[hash].js",
    codeSplitting: { groups },
    // Added last, since a function that nobody calls would be minified away.
    postBanner: "(function(exports,require,module,__filename,__dirname){",
    postFooter: "})",
  },
});
await writeFile(join(cli, "package.json"), '{ "type": "commonjs" }\n');
const { engines, exports: exported } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
const launcher = (await readFile(join(root, "scripts/bundle/launcher.cjs"), "utf8")).replace(
  "LEAST_NODE",
  engines.node.match(/\d+/g).join(", "),
);
const quick = chunks.find(({ name, isEntry }) => isEntry && name === "exec-in");
for (const { name, fileName, isEntry } of chunks) {
  if (!isEntry || name === "exec-in") continue;
  // npm makes it executable when it installs the package; the mode is for starting it by its path in a checkout.
  await writeFile(
    join(cli, `${name}.js`),
    launcher.replace("ENTRY", fileName).replace("QUICK", name === "main" ? quick.fileName : ""),
  );
  await chmod(join(cli, `${name}.js`), 0o755);
}
await writeCodeCache(
  cli,
  chunks.filter(({ name }) => compiledChunks.includes(name)).map(({ fileName }) => fileName),
);

const libraryEntries = Object.values(exported).map(({ default: file }) =>
  file.slice("./dist/".length, -".js".length),
);
// An entry that only exports from a chunk gets no source map, and the compiler's own would not fit.
const outdated = ["library", ...libraryEntries.map((name) => `${name}.js.map`)];
await Promise.all(outdated.map((path) => rm(join(dist, path), { recursive: true, force: true })));
await build({
  ...common,
  // A program that uses OpenTelemetry has this package, and everything it has registered is known to that copy.
  external: [...common.external, "@opentelemetry/api"],
  input: Object.fromEntries(libraryEntries.map((name) => [name, `src/${name}.ts`])),
  output: {
    ...output,
    dir: dist,
    chunkFileNames: "library/chunk-[hash].js",
    // In the package, for stack traces of programs that run with --enable-source-maps. They need the places only, not the sources.
    sourcemap: true,
    sourcemapExcludeSources: true,
  },
});

// A user's compiler would otherwise read the declarations of whole parts, and miss those of packages that only other names of them use.
for (const name of await readdir(dist, { recursive: true })) {
  if (!name.endsWith(".d.ts")) continue;
  const file = join(dist, name);
  const declarations = await readFile(file, "utf8");
  const seen = lookThrough(declarations, file);
  if (seen !== declarations) await writeFile(file, seen);
}

for (const [name, folder] of Object.entries(pages))
  await writeFile(join(dist, `${name}.json`), JSON.stringify(await compilePage(root, folder, licences)));

await writeFile(join(dist, "third-party-licences.txt"), await licences.text());

await mkdir(join(dist, "man"), { recursive: true });
const { stdout: manual } = await promisify(execFile)(process.execPath, [join(cli, "main.js"), "man"]);
await writeFile(join(dist, "man/brig.1"), manual);

/** Chunks of an earlier build have other names and would stay. */
async function removeChunks(dir) {
  const files = await readdir(dir).catch(() => []);
  await Promise.all(files.filter((name) => name.startsWith("chunk-")).map((name) => rm(join(dir, name))));
}
