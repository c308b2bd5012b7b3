import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, it } from "vitest";
import { withReason } from "../support/skip-reasons.js";
import { testProgram } from "../support/test-program.js";

const mandoc = await testProgram("mandoc");
const page = fileURLToPath(new URL("../../dist/man/brig.1", import.meta.url));

describe.skipIf(mandoc.missing !== null)(withReason("the manual page", mandoc.missing), () => {
  it("is one that man(1) can show", async () => {
    const { stdout } = await execa(mandoc.path, ["-T", "lint", "-W", "warning", page], { reject: false });
    // It has no date, so that the build can be repeated.
    expect(stdout).not.toMatch(/(?:WARNING|ERROR|UNSUPP)(?!: missing date)/);
  });

  it("has every command with its options", async () => {
    const { stdout } = await execa(mandoc.path, ["-T", "utf8", "-O", "width=200", page]);
    const text = stdout.replaceAll(/.[\b]/gu, "");
    for (const line of [
      /^BRIG\(1\)/,
      /brig - Runs AI agents' tool calls in containers/,
      /^ *brig exec \[options\] -- COMMAND/m,
      /^ *brig sessions fork/m,
      /^ *-s, --sandbox <mode>/m,
      /^ *--env-file <file>/m,
    ])
      expect(text).toMatch(line);
    expect(text).not.toMatch(/brig (?:owner|complete|man)\b/);
  });
});
