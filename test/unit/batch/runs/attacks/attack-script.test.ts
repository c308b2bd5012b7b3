import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { attackLibrary } from "../../../../../src/batch/runs/attacks/attack-library.js";
import { attackScript } from "../../../../../src/batch/runs/attacks/plant-attack.js";

/** Reads each script of its arguments, and runs none. One shell starts the others, which takes a tenth of the time. */
const readEach = 'for script; do sh -n -c "$script" || echo "wrong: $script"; done';

it("the scripts of attacks are correct shell", async () => {
  const scripts = attackLibrary.map((attack) => attackScript(attack));
  const read = async (given: string[]) => await promisify(execFile)("sh", ["-c", readEach, "sh", ...given]);
  expect(scripts.length).toBeGreaterThan(0);
  expect(await read(scripts)).toEqual({ stdout: "", stderr: "" });
  expect((await read(["echo fine", "if"])).stdout).toBe("wrong: if\n");
});
