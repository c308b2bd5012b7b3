import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { rootUser } from "../../../../../src/batch/runs/place/image-user.js";
import { prepareStep } from "../../../../../src/batch/runs/place/prepare-environment.js";
import type { Sandbox } from "../../../../../src/sandbox/sandbox.js";
import { stepOf } from "../../../../support/task-attempts.js";

const made: string[] = [];
afterEach(async () => {
  for (const directory of made.splice(0)) await rm(directory, { recursive: true });
});

it("refuses a script that prepares a step and has the line ends of Windows, before anything is done", async () => {
  const files = await mkdtemp(join(tmpdir(), "brig-test-"));
  made.push(files);
  await writeFile(join(files, "setup.sh"), "#!/bin/bash\r\ntouch /app/ready\r\n");
  const step = await stepOf(files, { step: { files, setupScript: "setup.sh" } });
  const untouched = {} as Sandbox;
  await expect(prepareStep(untouched, { step, cwd: "/app", user: rootUser })).rejects.toMatchObject({
    code: "usage.invalid",
    message: `${join(files, "setup.sh")} cannot be run: its lines end with carriage returns, as on Windows`,
  });
});
