import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, it } from "vitest";
import { temporaryDirectory } from "../../../support/sandbox.js";

const program = fileURLToPath(new URL("../../../fixtures/close-gone-terminals.ts", import.meta.url));

/** The exit status of the program after its terminal has been closed. */
async function statusAfterClosing(way: "in order" | "plainly"): Promise<number> {
  await using folder = await temporaryDirectory();
  const status = join(folder.path, "status");
  const run = `"${process.execPath}" --import tsx "${program}" "${way}" 2>/dev/null`;
  // The shell that leads the session ends with the terminal; this one notes how the program ended.
  const noting = `trap "" HUP; ${run}; echo $? >"${status}.new"; mv "${status}.new" "${status}"`;
  const call = `sh -c '${noting}'; :`;
  const script = execa("script", ["--quiet", "--flush", "--command", call, "/dev/null"], {
    ...{ env: { SHELL: "/bin/sh" }, stdin: "pipe", buffer: false, reject: false },
  });
  await once(script.stdout, "data");
  script.kill("SIGKILL");
  await expect.poll(async () => await readFile(status, "utf8").catch(() => "")).not.toBe("");
  return Number(await readFile(status, "utf8"));
}

it("leaves a program its own exit status when its terminal is closed", async () => {
  expect(await statusAfterClosing("in order")).toBe(7);
});

it.runIf(process.version.startsWith("v20."))("without it Node 20 aborts [needs Node 20]", async () => {
  expect([134, 139]).toContain(await statusAfterClosing("plainly"));
});
