import { describe, expect, it, vi } from "vitest";
import { FrameType } from "../../../../../src/sandbox/channel/protocol.js";
import type { EgressAttempt } from "../../../../../src/sandbox/egress/attempt.js";
import type { SentFrame } from "../../channel/fake-runner.js";
import type { PlayedContainer } from "../../played-engine.js";
import { failure, playedPlace } from "../../played-sandbox.js";
import { egressPlace, execAsking, socketExit } from "./played-egress.js";

const EACCES = 13;

describe("a sandbox with an allow-list", () => {
  it("has no network but brig's proxy, of which its commands know", async () => {
    const { engine, sandbox, opened, runner, commands } = await egressPlace();
    expect(engine.container.body.HostConfig.NetworkMode).toBe("none");
    expect(opened.egress?.hosts).toEqual(["a.test"]);
    expect(runner.frames.filter(({ type }) => type === FrameType.listen)).toHaveLength(3);
    const call = sandbox.exec(["true"]);
    await expect.poll(() => commands.length).toBe(1);
    expect(commands[0]?.payload).toContain("HTTPS_PROXY=http://127.83.0.1:3128");
    runner.exit(commands[0]?.channel ?? 0);
    expect(await call).toMatchObject({ exitCode: 0, stderr: "" });
    await sandbox.close();
  });

  it("refuses other hosts, and says so to the caller, to the command and to its listener", async () => {
    const setting = await egressPlace();
    const { attempts, sandbox } = setting;
    const { line, result } = await execAsking(setting, "evil.test", { callId: "call-1" });
    expect(line).toMatch(/^HTTP\/1\.1 403/);
    expect(result).toMatchObject({
      exitCode: 7,
      stderr: expect.stringContaining("evil.test:443"),
      causes: [{ kind: "network-rule", host: "evil.test", port: 443, denial: "no-rule" }],
    });
    expect(attempts).toEqual([
      expect.objectContaining({
        host: "evil.test",
        phase: "run",
        outcome: { kind: "denied", denial: { kind: "no-rule" } },
        owner: expect.objectContaining({ program: "curl", callId: "call-1" }),
      }),
    ]);
    await sandbox.close();
  });

  it("gives no cause to a command that succeeded all the same", async () => {
    const setting = await egressPlace();
    const { result } = await execAsking(setting, "evil.test", { exitCode: 0 });
    expect(result).toMatchObject({ exitCode: 0, causes: [], stderr: expect.stringContaining("evil.test") });
    await setting.sandbox.close();
  });

  it("gets another list while it runs, and further listeners", async () => {
    const setting = await egressPlace();
    const { sandbox, opened, attempts } = setting;
    const watched: EgressAttempt[] = [];
    sandbox.watchEgress((attempt) => void watched.push(attempt));
    sandbox.setNetwork("allowlist:b.test");
    expect(opened.egress?.hosts).toEqual(["b.test"]);
    await execAsking(setting, "a.test");
    expect(watched).toEqual(attempts);
    expect(watched).toEqual([expect.objectContaining({ host: "a.test" })]);
    sandbox.setNetwork("none");
    expect(opened.egress?.hosts).toEqual([]);
    expect(() => sandbox.setNetwork("full")).toThrow(
      expect.objectContaining({ code: "policy.not-enforced", hint: expect.stringContaining("@public") }),
    );
    await sandbox.close();
  });

  it("asks the user about a host that nothing allows, where the policy lets the user allow it", async () => {
    const setting = await egressPlace();
    const ask = vi.fn(async () => ({ kind: "declined", reason: "not today" }) as never);
    setting.sandbox.watchEgress(() => undefined, { ask });
    await execAsking(setting, "evil.test");
    expect(ask).toHaveBeenCalled();
    await setting.sandbox.close();
  });

  it("goes on when a listener throws, which is a warning of the process", async () => {
    const setting = await egressPlace();
    const warned = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
    setting.sandbox.watchEgress(() => {
      throw new Error("the listener's");
    });
    const { line } = await execAsking(setting, "evil.test");
    expect(line).toContain("403");
    await expect
      .poll(() => warned.mock.calls)
      .toEqual([[expect.objectContaining({ message: "the listener's" })]]);
    expect(setting.attempts).toHaveLength(1);
    await setting.sandbox.close();
  });

  it.for<[string, (sent: SentFrame, container: PlayedContainer) => void, object]>([
    [
      "brig cannot listen in it",
      ({ type, channel }, { runner }) => {
        if (type === FrameType.listen) runner.send(FrameType.exit, channel, socketExit(EACCES));
      },
      {
        code: "policy.not-enforced",
        hint: expect.stringContaining("--network none"),
        cause: expect.objectContaining({ code: "sandbox.port-failed", errno: "EACCES" }),
      },
    ],
  ])("is not opened where %s", async ([, answer, expected]) => {
    const { engine, open } = await playedPlace();
    engine.onFrame = (container, sent) => answer(sent, container);
    expect(await failure(open({ network: "allowlist:a.test" }))).toMatchObject(expected);
    expect(engine.running).toEqual([]);
  });

  it("whose container ends while it is opened says that", async () => {
    const { engine, open } = await playedPlace();
    engine.onFrame = (container, { type }) => {
      if (type === FrameType.listen) engine.end(container);
    };
    expect(await failure(open({ network: "allowlist:a.test" }))).toMatchObject({
      code: "sandbox.gone",
      reason: "killed",
    });
  });

  it("whose start is aborted while it is opened has the signal's reason", async () => {
    const { engine, open } = await playedPlace();
    const controller = new AbortController();
    engine.onFrame = ({ runner }, { type, channel }) => {
      if (type !== FrameType.listen) return;
      controller.abort(new Error("enough"));
      runner.send(FrameType.exit, channel, socketExit(EACCES));
    };
    expect(await failure(open({ network: "allowlist:a.test", signal: controller.signal }))).toBe(
      controller.signal.reason,
    );
  });
});
