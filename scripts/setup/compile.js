import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root, run } from "./run.js";

const stampFile = join(root, "dist", ".brig-built");

/**
 * Compiles src to dist, unless nothing has changed since the last time. The version of Node counts, because the bundles hold code that only
 * the same version can use. Returns once the engine and the images can be prepared with what is compiled; `bundled` is for the rest.
 */
export async function compile({ progress, signal }) {
  const hasSameNode = (await readFile(stampFile, "utf8").catch(() => "")) === process.version;
  if (hasSameNode && (await newestChange()) < (await mtime(stampFile))) return { bundled: null };
  await progress.step("compiling", (onLine) =>
    run([process.execPath, "node_modules/typescript/bin/tsc", "-p", "tsconfig.json"], { onLine, signal }),
  );
  return { bundled: bundle(signal) };
}

async function bundle(signal) {
  await run([process.execPath, "scripts/bundle.mjs"], { onLine: () => undefined, signal });
  await writeFile(stampFile, process.version);
}

/** Includes folders, because the time of a folder changes when a file in it is removed. */
async function newestChange() {
  const src = join(root, "src");
  const entries = await readdir(src, { recursive: true });
  const paths = [
    src,
    ...entries.map((path) => join(src, path)),
    join(root, "tsconfig.json"),
    join(root, "package.json"),
    join(root, "scripts", "bundle.mjs"),
    ...["code-cache.js", "launcher.cjs", "licences.js", "page.js"].map((name) =>
      join(root, "scripts", "bundle", name),
    ),
  ];
  return Math.max(...(await Promise.all(paths.map(mtime))));
}

async function mtime(path) {
  return (await stat(path).catch(() => null))?.mtimeMs ?? 0;
}
