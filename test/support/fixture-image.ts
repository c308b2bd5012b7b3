import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { isBrigError } from "../../src/errors.js";
import { packTar } from "../../src/sandbox/docker/calls/tar.js";
import { testEngine } from "./engine.js";

/** Builds the image of a folder of `test/fixtures`. Null, with a message, where its packages cannot be had. */
export async function fixtureImage(folder: string): Promise<string | null> {
  const tag = `brig-test/${folder}:latest`;
  const context = fileURLToPath(new URL(`../fixtures/${folder}/`, import.meta.url));
  const engine = await testEngine();
  const files = await Promise.all(
    (await readdir(context)).map(async (path) => ({
      path,
      mode: 0o755,
      content: await readFile(`${context}${path}`),
    })),
  );
  const before = await engine.inspectImage(tag);
  try {
    await engine.buildImage(packTar(files), { tag });
  } catch (error) {
    if (!isBrigError(error, "image.build-failed")) throw error;
    process.stderr.write(`tests with the image ${folder} are skipped: ${error.message}\n`);
    return null;
  }
  const after = await engine.inspectImage(tag);
  if (before !== null && before.id !== after?.id) await engine.removeImage(before.id).catch(() => undefined);
  return tag;
}
