import { describe, expect, it } from "vitest";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import { openedSandboxOf } from "../../../../src/sandbox/sandbox.js";
import { runSetup, setupFailure } from "../../../../src/sandbox/setup/run-setup.js";
import { asks, egressPlace, execAsking } from "../network/egress/played-egress.js";
import { failure, playedPlace } from "../played-sandbox.js";

describe("the set-up of a sandbox", () => {
  const setup = { command: ["npm", "ci"], network: "allowlist:registry.test", timeoutMs: 5000 };

  it("has its own network, and the sandbox has its own again afterwards", async () => {
    const setting = await egressPlace({ setup });
    const { sandbox, opened, runner, commands, attempts } = setting;
    const pieces: string[] = [];
    const running = runSetup(sandbox, { cwd: "/tmp", onOutput: (data) => void pieces.push(String(data)) });
    await expect.poll(() => commands.length).toBe(1);
    const [{ channel, payload } = { channel: 0, payload: "" }] = commands;
    expect(opened.egress?.hosts).toEqual(["registry.test"]);
    expect(payload).toContain("npm");
    expect(payload).toContain("/tmp");
    await asks(runner, "a.test");
    expect(attempts).toEqual([expect.objectContaining({ host: "a.test", phase: "setup" })]);
    runner.send(FrameType.stdout, channel, Buffer.from("out "));
    runner.send(FrameType.stderr, channel, Buffer.from("err"));
    runner.exit(channel);
    const end = await running;
    expect(end).toMatchObject({ exitCode: 0, timedOut: false, output: expect.stringMatching(/^out err/) });
    expect(pieces.slice(0, 2)).toEqual(["out ", "err"]);
    expect(setupFailure(end)).toBeNull();
    expect(opened.egress?.hosts).toEqual(["a.test"]);
    await execAsking(setting, "b.test");
    expect(attempts.at(-1)).toMatchObject({ host: "b.test", phase: "run" });
    await sandbox.close();
  });

  it("leaves the sandbox its own network also when it is aborted", async () => {
    const { sandbox, opened, runner, commands } = await egressPlace({ setup });
    const controller = new AbortController();
    const running = failure(runSetup(sandbox, { signal: controller.signal }));
    await expect.poll(() => commands.length).toBe(1);
    controller.abort(new Error("enough"));
    runner.exit(commands[0]?.channel ?? 0);
    expect(await running).toBe(controller.signal.reason);
    expect(opened.egress?.hosts).toEqual(["a.test"]);
    await sandbox.close();
  });

  it("may have a list in a sandbox without a network, which then has an empty one", async () => {
    const { sandbox, opened, runner, commands } = await egressPlace({ network: "none", setup });
    expect(opened.egress?.hosts).toEqual([]);
    const running = runSetup(sandbox);
    await expect.poll(() => commands.length).toBe(1);
    expect(opened.egress?.hosts).toEqual(["registry.test"]);
    runner.exit(commands[0]?.channel ?? 0);
    await running;
    expect(opened.egress?.hosts).toEqual([]);
    await sandbox.close();
  });

  it("is not run in a sandbox that has none", async () => {
    const { sandbox } = await playedPlace();
    const opened = await sandbox();
    expect(openedSandboxOf(opened).settings.setup).toBeUndefined();
    expect(await failure(runSetup(opened))).toMatchObject({
      code: "usage.invalid",
      message: expect.stringContaining("workspace-write"),
      hint: expect.stringContaining("another mode"),
    });
    await opened.close();
  });

  const end = { exitCode: 0, timedOut: false, durationMs: 90_000, output: "" };

  it.for([
    [{ exitCode: 3 }, /^the set-up failed with exit status 3$/],
    [{ exitCode: 3, output: "one\ntwo\n\n" }, /^the set-up failed with exit status 3:\none\ntwo$/],
    [{ timedOut: true, exitCode: 124 }, /^the set-up took longer than [^:]+ and was stopped$/],
    [{ timedOut: true }, /was stopped$/],
    [{ exitCode: 1, output: "a\u001b[2Jb" }, /exit status 1:\na.*b$/],
  ] as const)("that ended as %j has failed, and says how", ([given, message]) => {
    const found = setupFailure({ ...end, ...given });
    expect(found?.message).not.toContain("\u001b");
    expect(found).toMatchObject({
      code: "setup.failed",
      message: expect.stringMatching(message),
      hint: expect.stringContaining("nothing was run after it"),
    });
  });

  it("that failed shows the last twenty lines of its output, and of these at most four thousand characters", () => {
    const output = Array.from({ length: 21 }, (_, i) => `line ${i}`).join("\n");
    const shown = setupFailure({ ...end, exitCode: 1, output })
      ?.message.split("\n")
      .slice(1);
    expect(shown).toHaveLength(20);
    expect(shown?.[0]).toBe("line 1");
    const long = setupFailure({ ...end, exitCode: 1, output: `${"x".repeat(4000)}y` })?.message.split(
      ":\n",
    )[1];
    expect(long).toBe(`${"x".repeat(3999)}y`);
  });
});
