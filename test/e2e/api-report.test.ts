import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, it } from "vitest";

const script = fileURLToPath(new URL("../../scripts/api-report.mjs", import.meta.url));

it("the public API is what docs/api says; a change is made on purpose, with npm run api", async () => {
  const { exitCode, stderr } = await execa(process.execPath, [script, "--check"], { reject: false });
  expect([exitCode, stderr]).toEqual([0, ""]);
});
