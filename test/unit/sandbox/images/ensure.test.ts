import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { beforeEach, expect, it, vi } from "vitest";
import type { Engine } from "../../../../src/sandbox/docker/engine-types.js";
import { ensureImages } from "../../../../src/sandbox/images/ensure.js";

/** An npm that fails, for the images that need packages of it, and a place of the test's own for the locks of builds. */
beforeEach(async () => {
  const directory = await mkdtemp(join(tmpdir(), "brig-test-"));
  await writeFile(join(directory, "npm"), "#!/bin/sh\nexit 1\n");
  await chmod(join(directory, "npm"), 0o755);
  vi.stubEnv("PATH", `${directory}${delimiter}${process.env.PATH}`);
  vi.stubEnv("TMPDIR", directory);
  return () => rm(directory, { recursive: true });
});

/** An engine that has nothing but Debian, and whose builds never end by themselves. */
function endlessEngine() {
  const asked: string[] = [];
  const ended: unknown[] = [];
  const engine = {
    info: async () => ({ arch: "amd64" }),
    async inspectImage(tag: string) {
      asked.push(tag);
      return tag === "debian:bookworm-slim" ? { arch: "amd64" } : null;
    },
    async buildImage(_files: unknown, { signal }: { signal?: AbortSignal }) {
      await new Promise((_, reject) => {
        const end = () => {
          ended.push(signal?.reason);
          reject(signal?.reason);
        };
        if (signal?.aborted) end();
        signal?.addEventListener("abort", end);
      });
    },
  } as unknown as Engine;
  return { engine, asked, ended };
}

it("images are built at once on one parent, and no build goes on when another has failed", async () => {
  const { engine, asked, ended } = endlessEngine();
  const error: unknown = await ensureImages(engine, { names: ["engine", "toolbox"] }).catch(
    (reason) => reason,
  );
  expect(error).toMatchObject({
    code: "image.build-failed",
    message: expect.stringContaining("from the npm registry"),
  });
  expect(ended).toEqual([error]);
  expect(asked.filter((tag) => tag.startsWith("debian:"))).toEqual(["debian:bookworm-slim"]);
});

it("a build that is called off ends with the reason of whoever called it off", async () => {
  const { engine, ended } = endlessEngine();
  const reason = new Error("enough");
  const signal = AbortSignal.abort(reason);
  await expect(ensureImages(engine, { names: ["engine"], signal })).rejects.toBe(reason);
  expect(ended.every((one) => one === reason)).toBe(true);
});
