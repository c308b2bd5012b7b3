// Bundles the command line and the library into a few files each. Loading some four hundred modules one by one takes longer than
// a short command does, and the bundled packages need not be installed with brig.
import { chmod, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import { Licences } from "./bundle/licences.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

/** Two thirds of zod are messages in forty languages; brig uses one of them. */
const englishOnly = {
  name: "english-only",
  load: {
    filter: { id: /\/zod\/v4\/locales\/index\.js$/ },
    handler: () => 'export { default as en } from "./en.js";',
  },
};

/**
 * Code that several commands share goes into few files, because each additional file takes half a millisecond to load. Large code that
 * is rarely needed stays separate. A group also takes the files that its files import, so the groups that are loaded first come first.
 */
const groups = [
  // What every command needs, --help too. A module that is missing here only costs time.
  {
    name: "start",
    test: /usingCtx\.js$|\/src\/(?:errors|version|package-root|config\/env|lib\/(?:errno|json-text|terminal\/(?:control-sequences|sgr|terminal)|steps|time\/any-signal|utf8)|cli\/(?:command-list|conversation\/can-converse|display\/error-text|exit-status|host|program|render|run-in-process|trace))\.ts$/,
    priority: 7,
  },
  { name: "zod", test: /\/node_modules\/zod\/|\/src\/cli\/setup\/jitless\.ts$/, priority: 5 },
  // What the flags of commands that open a sandbox need.
  {
    name: "options",
    test: /\/src\/(?:policy\/modes|sandbox\/process\/timeouts|lib\/(?:suggest|terminal\/(?:display-width|progress|terminal-guard)|time\/durations)|cli\/(?:display\/(?:receipt-text|terminal-session)|setup\/(?:open-sandbox|option-values|sandbox-flags)|streams))\.ts$/,
    priority: 6,
  },
  // Loaded next, so that the engine can answer while the rest is being loaded.
  {
    name: "engine",
    test: /\/src\/(?:cli\/setup\/early-engine\.ts|docker\/(?!calls\/tar|diagnosis\/|engine-probe)|lib\/(?:parse-json|time\/(?:pause|time-limit))\.ts)/,
    priority: 4,
  },
  // What a sandbox needs, without what a model needs, because loading it delays `brig exec`.
  {
    name: "sandbox",
    test: /\/src\/(?:sandbox\/(?!channel\/|connect-and-prove|diagnose-runtimes|files\/|process\/|proof\/(?:kernel-report|mountinfo|proof)|receipt\/|sandbox\.ts|sweep)|policy\/(?!approval-|command-safety\/|sandbox-denial|session-authority|strictness)|lib\/(?!file-lock)|images\/(?:build-context|compiled-tags|definition|lock|npm-packages|require-toolbox|toolbox-volume)\.ts)/,
    priority: 3,
  },
  // What a sandbox needs while its container is starting.
  {
    name: "running",
    test: /\/src\/sandbox\/(?!diagnose-runtimes|sweep)/,
    priority: 2,
  },
  { name: "exec-server", test: /\/src\/exec-server\//, priority: 1 },
  {
    name: "shared",
    test: /\/src\/(?!cli\/conversation\/|exec-server\/|sandbox\/|docker\/|images\/)/,
    minShareCount: 2,
    maxModuleSize: 40_000,
    priority: 1,
  },
];

/** Computes the image tags at build time; otherwise each start of a sandbox would read forty files. */
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

const common = {
  cwd: root,
  platform: "node",
  // photon-node loads files next to itself. react-devtools-core is not installed and never loaded.
  external: ["@silvia-odwyer/photon-node", "react-devtools-core"],
  transform: {
    target: "node20",
    // Leaves out the development tools of React and Ink.
    define: { "process.env.NODE_ENV": '"production"', "process.env.DEV": '"false"' },
  },
  plugins: [englishOnly, compiledTags, licences.plugin()],
  // Some dynamically imported modules are also imported statically elsewhere, which is no problem.
  checks: { ineffectiveDynamicImport: false },
  logLevel: "warn",
};

/** "hidden" leaves out the comments that name the source maps, because these are not in the package. */
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

// npm makes them executable when it installs the package; this is for starting them by their paths in a checkout.
await Promise.all(["main.js", "codex.js"].map((name) => chmod(join(dist, "cli", name), 0o755)));

/** Chunks of an earlier build have other names and would stay. */
async function removeChunks(dir) {
  const files = await readdir(dir).catch(() => []);
  await Promise.all(files.filter((name) => name.startsWith("chunk-")).map((name) => rm(join(dir, name))));
}
