import { readdirSync, readFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { packageRoot } from "../../src/package-root.js";
import { brig, containersOf } from "../support/cli.js";
import { temporaryDirectory } from "../support/sandbox.js";

it("three agents work on forks, two of their changes are taken over, and the one that collides is refused", async () => {
  await using folder = await temporaryDirectory();
  const cwd = join(folder.path, "project");
  const example = join(packageRoot, "examples/agents");
  await cp(join(example, "project"), cwd, { recursive: true });
  const env = { BRIG_HOME: join(folder.path, "home") };
  const args = ["run", "--workspace", "overlay", "--script", join(example, "script.yaml"), "make it greet"];
  const run = brig(args, { cwd, env });
  const { exitCode, stdout, stderr } = await run;
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toContain("the German one collided");
  expect(stderr).toMatch(/brig: 2 changed paths are not applied yet/);
  expect(await containersOf(run.pid)).toEqual([]);
  expect(readdirSync(cwd)).toEqual(["greet.sh"]);
  expect(readFileSync(join(cwd, "greet.sh"), "utf8")).toBe("echo nothing yet\n");
  expect((await brig(["apply"], { cwd, env })).stdout).toBe("README.txt\ngreet.sh\n");
  expect(readFileSync(join(cwd, "greet.sh"), "utf8")).toBe("echo Hello\n");
});
