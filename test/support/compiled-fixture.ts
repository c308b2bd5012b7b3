import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import { afterAll, beforeAll } from "vitest";

const fixtures = fileURLToPath(new URL("../fixtures/", import.meta.url));

/**
 * Compiles a program of `test/fixtures` once for all tests of a file, with what it imports, so that plain Node can run it: a start through tsx
 * compiles the same files again each time, which takes many times as long as most of what such a program does.
 */
export function compiledFixture(name: string): { readonly path: string } {
  const compiled = { path: "" };
  let directory = "";
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "brig-fixture-"));
    await build({
      input: join(fixtures, name),
      platform: "node",
      logLevel: "silent",
      // Node 20 knows no `using`.
      transform: {
        target: "node20",
        // What looks for the package's own files finds them from here.
        define: { "import.meta.dirname": JSON.stringify(fixtures) },
      },
      output: { dir: directory, format: "esm", entryFileNames: "program.mjs" },
    });
    compiled.path = join(directory, "program.mjs");
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));
  return compiled;
}
