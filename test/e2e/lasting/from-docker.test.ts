import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { firstOutput, lastingPlace } from "../../support/lasting.js";

/** The calls in the second column of the table, in order. */
async function calls(): Promise<string[][]> {
  const page = await readFile(join(import.meta.dirname, "../../../docs/from-docker.md"), "utf8");
  const rows = page.split("\n").filter((line) => line.startsWith("| `docker "));
  return rows.map((row) => {
    const call = /\| `brig ([^`]+)` \|[^|]*\|$/.exec(row)?.[1];
    if (call === undefined) throw new Error(`there is no call of brig in ${row}`);
    return call.split(" ");
  });
}

it("everything that docs/from-docker.md says is typed here works, in the order of the table", async () => {
  const place = await lastingPlace();
  await writeFile(join(place.workspace, "notes.txt"), "of the host\n");
  const done: string[] = [];
  for (const words of await calls()) {
    const call = words.join(" ");
    done.push(call);
    if (/^(?:shell|attach) /.test(call)) {
      const terminal = await place.terminal(words);
      await terminal.waitFor(/[#$] $/);
      terminal.type(call.startsWith("shell") ? "exit\r" : "\u0010\u0011");
      expect((await terminal.end()).exitStatus, call).toBe(0);
    } else if (call.startsWith("logs -f")) {
      const following = place.start(words);
      await firstOutput(following);
      following.kill("SIGINT");
      expect((await following).exitCode, call).toBe(130);
    } else if (call.includes(" -it ")) {
      const terminal = await place.terminal(words);
      await terminal.waitFor(/30 100/);
      expect((await terminal.end()).exitStatus, call).toBe(0);
    } else {
      const { exitCode, stderr } = await place.start(words, { input: "" });
      expect([exitCode, exitCode === 0 ? "" : stderr], call).toEqual([0, ""]);
    }
  }
  expect(done.length).toBeGreaterThan(20);
  expect(await readFile(join(place.workspace, "copy.txt"), "utf8")).toBe("of the host\n");
  expect(JSON.parse((await place.run("ps", "--all", "--json")).stdout)).toEqual([]);
}, 600_000);
