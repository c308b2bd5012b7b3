import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageRoot } from "../../src/package-root.js";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

let folder: TemporaryDirectory;

beforeAll(async () => {
  folder = await temporaryDirectory();
});

afterAll(() => folder[Symbol.asyncDispose]());

const batch = (...args: string[]) =>
  brigHere(["batch", ...args], { cwd: folder.path, env: { BRIG_HOME: join(folder.path, "home") } });

describe("what an agent has left", () => {
  it("is graded again by whoever has the sealed run, and by other tests", async () => {
    await cp(join(packageRoot, "examples/tasks/python-bug"), join(folder.path, "task"), { recursive: true });
    expect(await batch("task", "--agent", "oracle", "-o", "run")).toMatchObject({ exitCode: 0 });
    expect(await batch("seal", "run", "--new-key", "key.pem")).toMatchObject({ exitCode: 0 });
    const same = await batch("verify", "run", "task", "--key", "key.pem.pub");
    expect(same).toMatchObject({ exitCode: 0 });
    expect(same.stdout).toContain("1 of 1 attempts got the same rewards again");

    // A signer whose reward is not what the tests give.
    for (const file of ["run/results.jsonl", "run/attempts/brig__python-bug/1/result.json"]) {
      const path = join(folder.path, file);
      await writeFile(path, (await readFile(path, "utf8")).replaceAll(/"reward": ?1/g, '"reward":0'));
    }
    const changed = await batch("verify", "run", "task", "--json");
    expect(changed.exitCode).toBe(1);
    expect(JSON.parse(changed.stdout)).toMatchObject({ graded: null });
    expect(await batch("seal", "run", "--key", "key.pem")).toMatchObject({ exitCode: 0 });
    const lied = await batch("verify", "run", "task", "--key", "key.pem.pub");
    expect(lied.exitCode).toBe(1);
    expect(lied.stderr).toContain("brig/python-bug #1: reward 0 → 1");

    await writeFile(
      join(folder.path, "task/tests/test.sh"),
      "#!/bin/sh\necho 2 > /logs/verifier/reward.txt\n",
    );
    const other = await batch("verify", "run", "task", "--key", "key.pem.pub");
    expect(other.stderr).toContain("not graded: its checksum was");
    const regraded = await batch("regrade", "run", "task");
    expect(regraded).toMatchObject({ exitCode: 0 });
    expect(regraded.stdout).toContain("1 gained, 0 lost of 1 task with a score in both runs");
    const compared = await batch("diff", "--json", "run/superseded/1", "run");
    expect(JSON.parse(compared.stdout)).toMatchObject({
      settings: [{ field: "tasks.brig/python-bug.tests" }],
      counts: { gained: 1 },
    });
  });
});
