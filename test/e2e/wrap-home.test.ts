import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { brigHere } from "../support/cli-here.js";
import { temporaryDirectory } from "../support/sandbox.js";

it("a kept home is measured: listed, warned of, and too large a one not started again", async () => {
  await using directory = await temporaryDirectory();
  const workspace = join(directory.path, "work");
  await mkdir(workspace);
  const env = { BRIG_HOME: join(directory.path, "home") };
  const wrap = (...args: string[]) => brigHere(["wrap", ...args], { cwd: workspace, env });
  const fill = ["--", "sh", "-c", "head -c 3000000 /dev/urandom > ~/large; echo ran >> ran"];
  const small = await wrap("--name", "work", ...fill);
  expect([small.exitCode, small.stderr]).toEqual([0, ""]);
  const [listed] = JSON.parse((await wrap("--list", "--json")).stdout);
  expect(listed).toMatchObject({ name: "work", homeFiles: 1, isHomeSizePartial: false });
  expect(listed.homeBytes).toBeGreaterThanOrEqual(3_000_000);
  expect((await wrap("--list")).stdout).toMatch(/^NAME +HOME .*\nwork +2\.9 MiB /);
  const near = await wrap("--resume", "work", "--home-limit", "3.5MB", ...fill);
  expect(near.exitCode).toBe(0);
  expect(near.stderr).toMatch(
    /the home of the session work has 2\.9 MiB in 1 files; with more than 3\.3 MiB/,
  );
  const refused = await wrap(
    "--resume",
    "work",
    "--home-limit",
    "2MB",
    "--",
    "sh",
    "-c",
    "echo again >> ran",
  );
  expect(refused.exitCode).toBe(125);
  expect(refused.stderr).toContain(
    "the home of the session work has over 1.9 MiB, so its agent is not started",
  );
  const kept = await wrap("--resume", "work", "--", "cat", "ran");
  expect([kept.exitCode, kept.stdout]).toEqual([0, "ran\nran\n"]);
  expect((await wrap("--home-limit", "1GB", "--", "true")).stderr).toContain(
    "--home-limit needs --name or --resume",
  );
});
