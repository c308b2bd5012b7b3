import { describe, expect } from "vitest";
import { openBeside } from "../../../src/sandbox/open-beside.js";
import { sandboxTest } from "../../support/sandbox.js";
import { openBare } from "../../support/task-attempts.js";

describe("a second runner", () => {
  sandboxTest(
    "runs commands as another user, proved like the first, and leaves the first alone",
    async ({ directory }) => {
      await using first = await openBare(directory);
      const user = { uid: 65_534, gid: 65_534, home: "/tmp" };
      const second = await openBeside(first.sandbox, user);
      const asked = ["sh", "-c", 'echo "$(id -u):$(id -g):$(id -G) $HOME"; grep CapEff /proc/self/status'];
      expect((await second.sandbox.exec(asked)).output).toBe(
        "65534:65534:65534 /tmp\nCapEff:\t0000000000000000\n",
      );
      expect(second.sandbox.proof).toMatchObject({ differences: [], summary: { uid: "65534" } });
      expect((await first.sandbox.exec(["id", "-u"])).output).toBe("0\n");
      second[Symbol.dispose]();
      await expect(second.sandbox.exec(["true"])).rejects.toMatchObject({ code: "sandbox.gone" });
      const left = ["sh", "-c", "! pgrep -u 65534"];
      await expect.poll(async () => (await first.sandbox.exec(left)).exitCode).toBe(0);
    },
  );

  sandboxTest("is gone when a command has killed it, and can be opened again", async ({ directory }) => {
    await using first = await openBare(directory);
    const user = { uid: 65_534, gid: 65_534, home: "/tmp" };
    using killed = await openBeside(first.sandbox, user);
    const killing = killed.sandbox.exec(["bash", "-c", "kill -KILL -1"]);
    await expect(killing).rejects.toMatchObject({ code: "sandbox.gone", reason: "killed" });
    using another = await openBeside(first.sandbox, user);
    expect((await another.sandbox.exec(["id", "-u"])).output).toBe("65534\n");
  });
});
