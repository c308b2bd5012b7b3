// Puts the command line into few files: opening and compiling some four hundred modules one by one takes longer than what a
// short command does.
import { chmod, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));
const dir = join(root, "dist", "cli");

/** The words of its messages are two thirds of zod, in forty languages of which one is used. */
const englishOnly = {
  name: "english-only",
  load: {
    filter: { id: /\/zod\/v4\/locales\/index\.js$/ },
    handler: () => 'export { default as en } from "./en.js";',
  },
};

/** What several commands share lies in few files, since each one more takes half a millisecond; what is large and rare stays apart. */
const groups = [
  // What every command needs, --help too. One that is missing here costs time, nothing else.
  {
    name: "start",
    test: /\/src\/(?:errors|version|package-root|config\/env|lib\/(?:control-sequences|json-text|sgr|shared-signal|terminal|utf8)|cli\/(?:commands|conversation\/can-converse|errors|exit-status|host|program|render))\.ts$/,
    priority: 3,
  },
  { name: "zod", test: /\/node_modules\/zod\//, priority: 2 },
  {
    name: "shared",
    test: /\/src\/(?!cli\/conversation\/|sandbox\/|docker\/|images\/)/,
    minShareCount: 2,
    maxModuleSize: 40_000,
    priority: 1,
  },
];

await removeChunks();
await build({
  cwd: root,
  input: { main: "src/cli/main.ts", codex: "src/cli/codex/main.ts" },
  platform: "node",
  // These find files of their own beside themselves, or are native in part.
  external: ["@vscode/ripgrep", "@silvia-odwyer/photon-node", "ink", "react", /^react\//],
  transform: { target: "node20" },
  plugins: [englishOnly],
  // Of what is imported when it is needed some is shared with what is always there: it is there anyway, then.
  checks: { ineffectiveDynamicImport: false },
  output: {
    dir,
    format: "esm",
    minify: true,
    sourcemap: true,
    chunkFileNames: "chunk-[hash].js",
    codeSplitting: { groups },
  },
  logLevel: "warn",
});

// npm does so where it installs the package; in a checkout a program may be started by its path too.
await Promise.all(["main.js", "codex.js"].map((name) => chmod(join(dir, name), 0o755)));

/** Those of the last time have other names. */
async function removeChunks() {
  const files = await readdir(dir).catch(() => []);
  await Promise.all(files.filter((name) => name.startsWith("chunk-")).map((name) => rm(join(dir, name))));
}
