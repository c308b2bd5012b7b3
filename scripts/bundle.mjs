// Puts the command line and the library into few files each: opening and compiling some four hundred modules one by one takes
// longer than what a short command does, and who installs brig does not install what is in them.
import { chmod, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import { Licences } from "./bundle/licences.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

/** The words of its messages are two thirds of zod, in forty languages of which one is used. */
const englishOnly = {
  name: "english-only",
  load: {
    filter: { id: /\/zod\/v4\/locales\/index\.js$/ },
    handler: () => 'export { default as en } from "./en.js";',
  },
};

/**
 * What several commands share lies in few files, since each one more takes half a millisecond; what is large and rare stays apart. A group
 * takes along what its files import, so what is needed first comes first.
 */
const groups = [
  // What every command needs, --help too. One that is missing here costs time, nothing else.
  {
    name: "start",
    test: /usingCtx\.js$|\/src\/(?:errors|version|package-root|config\/env|lib\/(?:errno|json-text|terminal\/(?:control-sequences|sgr|terminal)|steps|time\/any-signal|utf8)|cli\/(?:command-list|conversation\/can-converse|display\/error-text|exit-status|host|program|render|run-in-process|trace))\.ts$/,
    priority: 7,
  },
  { name: "zod", test: /\/node_modules\/zod\/|\/src\/cli\/setup\/jitless\.ts$/, priority: 5 },
  // What the flags of a command need that opens a sandbox.
  {
    name: "options",
    test: /\/src\/(?:policy\/modes|sandbox\/process\/timeouts|lib\/(?:suggest|terminal\/(?:display-width|progress|terminal-guard)|time\/durations)|cli\/(?:display\/(?:receipt-text|terminal-session)|setup\/(?:open-sandbox|option-values|sandbox-flags)|streams))\.ts$/,
    priority: 6,
  },
  // Loaded next, so that the engine answers while the rest is loaded.
  {
    name: "engine",
    test: /\/src\/(?:cli\/setup\/early-engine\.ts|docker\/(?!calls\/tar|diagnosis\/|engine-probe)|lib\/(?:parse-json|time\/(?:pause|time-limit))\.ts)/,
    priority: 4,
  },
  // What a sandbox needs, and nothing of what a model needs: `brig exec` waits for every millisecond of it.
  {
    name: "sandbox",
    test: /\/src\/(?:sandbox\/(?!channel\/|connect-and-prove|diagnose-runtimes|files\/|process\/|proof\/(?:kernel-report|mountinfo|proof)|receipt\/|sandbox\.ts|sweep)|policy\/(?!approval-|command-safety\/|sandbox-denial|session-authority|strictness)|lib\/(?!file-lock)|images\/(?:build-context|compiled-tags|definition|lock|npm-packages|require-toolbox|toolbox-volume)\.ts)/,
    priority: 3,
  },
  // What it needs once its container is being started.
  {
    name: "running",
    test: /\/src\/sandbox\/(?!diagnose-runtimes|sweep)/,
    priority: 2,
  },
  {
    name: "shared",
    test: /\/src\/(?!cli\/conversation\/|sandbox\/|docker\/|images\/)/,
    minShareCount: 2,
    maxModuleSize: 40_000,
    priority: 1,
  },
];

/** What a sandbox's start would else read forty files for. */
const compiledTags = {
  name: "compiled-tags",
  load: {
    filter: { id: /\/src\/images\/compiled-tags\.ts$/ },
    handler: async () => {
      const { readBuildContext } = await import("../dist/images/build-context.js");
      const { imageDefinitions } = await import("../dist/images/definition.js");
      const tags = ["amd64", "arm64"].map(async (arch) => [
        arch,
        (await readBuildContext(imageDefinitions.toolbox, arch)).tag,
      ]);
      return `export const compiledTags = ${JSON.stringify(Object.fromEntries(await Promise.all(tags)))};`;
    },
  },
};

const licences = new Licences();

/** What both builds have in common. */
const common = {
  cwd: root,
  platform: "node",
  // These find files of their own beside themselves; the last one is not there, and nothing asks for it.
  external: ["@silvia-odwyer/photon-node", "react-devtools-core"],
  transform: {
    target: "node20",
    // React's and Ink's aids for their own development stay out.
    define: { "process.env.NODE_ENV": '"production"', "process.env.DEV": '"false"' },
  },
  plugins: [englishOnly, compiledTags, licences.plugin()],
  // Of what is imported when it is needed some is shared with what is always there: it is there anyway, then.
  checks: { ineffectiveDynamicImport: false },
  logLevel: "warn",
};

/** No comment in the code leads to the source maps: they are not in the package. */
const output = { format: "esm", minify: true, sourcemap: "hidden" };

await removeChunks(join(dist, "cli"));
await build({
  ...common,
  input: { main: "src/cli/main.ts", codex: "src/cli/codex/codex-main.ts" },
  output: { ...output, dir: join(dist, "cli"), chunkFileNames: "chunk-[hash].js", codeSplitting: { groups } },
});

await rm(join(dist, "library"), { recursive: true, force: true });
await build({
  ...common,
  input: { index: "src/index.ts" },
  output: { ...output, dir: dist, chunkFileNames: "library/chunk-[hash].js" },
});

await writeFile(join(dist, "third-party-licences.txt"), await licences.text());

// npm does so where it installs the package; in a checkout a program may be started by its path too.
await Promise.all(["main.js", "codex.js"].map((name) => chmod(join(dist, "cli", name), 0o755)));

/** Those of the last time have other names. */
async function removeChunks(dir) {
  const files = await readdir(dir).catch(() => []);
  await Promise.all(files.filter((name) => name.startsWith("chunk-")).map((name) => rm(join(dir, name))));
}
