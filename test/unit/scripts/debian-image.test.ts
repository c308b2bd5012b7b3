import { chmod, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { beforeEach, expect, it, vi } from "vitest";
// @ts-expect-error -- a plain script without types
import { importDebian } from "../../../scripts/setup/debian-image.js";

const arch = process.arch === "x64" ? "amd64" : process.arch;

let temporary: string;

/** An mmdebstrap that writes its own arguments into its last one, and a place of the test's own for temporary files. */
beforeEach(async () => {
  const programs = await mkdtemp(join(tmpdir(), "brig-test-"));
  temporary = await mkdtemp(join(tmpdir(), "brig-test-"));
  const program =
    '#!/bin/sh\n[ "$1" = --version ] && exit\nfor last; do :; done\necho "$*" >"$last"\necho done\n';
  await writeFile(join(programs, "mmdebstrap"), program);
  await chmod(join(programs, "mmdebstrap"), 0o755);
  vi.stubEnv("PATH", `${programs}${delimiter}${process.env.PATH}`);
  vi.stubEnv("TMPDIR", temporary);
  return async () => {
    for (const directory of [programs, temporary]) await rm(directory, { recursive: true });
  };
});

it("the set-up imports Debian's root file system into the engine, and leaves no file", async () => {
  const imported: string[] = [];
  const engine = {
    importImage: async (tar: Readable, tag: string) => imported.push(tag, await text(tar)),
  };
  const lines: string[] = [];
  await importDebian(engine, "brig/debian:test", { arch, onLine: (line: string) => lines.push(line) });
  expect(imported).toEqual([
    "brig/debian:test",
    expect.stringMatching(`^--variant=minbase --architectures=${arch} .* bookworm /.*/debian\\.tar\n$`),
  ]);
  expect(lines).toEqual(["done"]);
  expect(await readdir(temporary)).toEqual([]);
});

it("the set-up says what to run where the engine's machine is another one", async () => {
  await expect(importDebian({}, "brig/debian:test", { arch: "s390x" })).rejects.toMatchObject({
    message: expect.stringContaining("the engine's architecture is s390x"),
    hint: expect.stringContaining("docker pull debian:bookworm-slim"),
  });
});
