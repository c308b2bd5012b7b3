import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BrigError } from "../../../src/errors.js";
import { FrameType, TOKEN_BYTES } from "../../../src/sandbox/channel/protocol.js";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";
import { openSandbox } from "../../../src/sandbox/open-sandbox.js";
import { frame, welcome } from "./channel/fake-runner.js";
import type { PlayedContainer, PlayedEngine } from "./played-engine.js";
import { emptyWorkspace, failure, playedPlace, recordNames } from "./played-sandbox.js";

const report = (name: string, text: string) => (container: PlayedContainer) =>
  void container.sections.set(name, text);

describe("a sandbox that is opened", () => {
  it("goes the same steps each time, and says so", async () => {
    const { engine, open, warnings } = await playedPlace();
    const progress: string[] = [];
    const opened = await open({ onProgress: (text) => progress.push(text) });
    expect(progress).toEqual([
      "looking at the image and the workspace",
      "starting the container",
      "checking the policy inside",
    ]);
    expect(engine.calls).toEqual(["createContainer", "attachContainer", "startContainer"]);
    expect(opened).toMatchObject({
      containerId: engine.container.id,
      egress: null,
      tree: null,
      branch: null,
      isKept: false,
      proof: { policy: "workspace-write", differences: [], notProvable: [], imageId: engine.imageId },
    });
    expect(opened.proof.egress).toBeUndefined();
    const { body } = engine.container;
    expect(body.Cmd.slice(0, 2)).toEqual(["serve", "--token-hash"]);
    expect(body.Cmd[2]).toMatch(/^[0-9a-f]{64}$/);
    // The token itself is what the host greets with, and in no description of the container.
    const [hello = Buffer.alloc(0)] = engine.container.runner.hellos;
    const token = hello.subarray(4, 4 + TOKEN_BYTES);
    expect(token.equals(Buffer.alloc(TOKEN_BYTES))).toBe(false);
    expect(JSON.stringify(body)).not.toContain(token.toString("hex"));
    expect(JSON.stringify(body)).toContain('"Source":"toolbox"');
    await opened.release({ isEnding: false });
    expect(engine.calls.slice(3)).toEqual(["removeContainer"]);
    expect(warnings).toEqual([]);
  });

  it("is removed by the engine where the runner does not end, and asked to end where it does", async () => {
    const { engine, open } = await playedPlace();
    const opened = await open();
    opened.link.end(new BrigError("over", { code: "sandbox.gone", reason: "closed" }));
    await opened.release({ isEnding: true });
    expect(engine.calls.slice(3)).toEqual(["waitRemoved"]);
    expect(engine.container).toMatchObject({ state: "gone", runner: { wasEnded: true } });
  });

  it.for([
    [undefined, "60"],
    [5, "5"],
    [1.4, "1"],
  ] as const)("has a lease of %s seconds", async ([leaseSeconds, given]) => {
    const { engine, open } = await playedPlace();
    const opened = await open({ leaseSeconds });
    const { Cmd } = engine.container.body;
    expect(Cmd[Cmd.indexOf("--lease") + 1]).toBe(given);
    await opened.release({ isEnding: false });
  });

  it("tells once what does not work in it, and a second one with the same settings does not", async () => {
    const { engine, open, warnings } = await playedPlace();
    const workspace = await emptyWorkspace();
    await writeFile(join(workspace, ".git"), "gitdir: ../nowhere\n");
    const sandbox = { workspaceKind: "bind", workspace, mode: "read-only" } as const;
    const opened = await open(sandbox);
    expect(warnings).toMatchObject([
      { code: "workspace.invalid", message: expect.stringMatching(/^git does not work in the sandbox: /) },
    ]);
    expect(opened.plan.notices).toEqual(warnings);
    const onWarning = (warning: Error) => void warnings.push(warning);
    const again = await openSandbox(opened.settings, {
      engine: engine.asEngine as Engine,
      toolboxVolume: "toolbox",
      onWarning,
    });
    expect(warnings).toHaveLength(1);
    for (const one of [opened, again]) await one.release({ isEnding: false });
  });

  it("that is kept has no lease", async () => {
    const { engine, open } = await playedPlace();
    const opened = await open({ keep: true, leaseSeconds: 5 });
    const { Cmd } = engine.container.body;
    expect(Cmd[Cmd.indexOf("--lease") + 1]).toBe("0");
    expect(opened.isKept).toBe(true);
    opened.link.close(new BrigError("over", { code: "sandbox.gone", reason: "closed" }));
  });

  it("is opened by another stream where the first one is broken before it is used", async () => {
    const { engine, open } = await playedPlace();
    const start = engine.startContainer;
    engine.startContainer = async (id) => {
      await start(id);
      engine.container.runner.cut();
    };
    const opened = await open();
    expect(engine.calls).toEqual(["createContainer", "attachContainer", "startContainer", "openExec"]);
    await opened.release({ isEnding: false });
  });
});

describe("a sandbox cannot be opened", () => {
  it.for<[string, (engine: PlayedEngine) => void, object]>([
    [
      "whose image there is not",
      (engine) => (engine.inspectImage = async () => null),
      { code: "image.missing", message: expect.stringContaining("brig/base") },
    ],
    [
      "whose image has a volume that the policy does not allow",
      (engine) => {
        const inspect = engine.inspectImage;
        engine.inspectImage = async (ref) => {
          const image = await inspect(ref);
          return image && { ...image, volumes: ["/etc/data"] };
        };
      },
      { code: "policy.not-enforced", message: expect.stringContaining("/etc/data") },
    ],
    [
      "on an engine that does not say what it is",
      (engine) => {
        engine.info = async () => {
          throw new BrigError("no", { code: "engine.failed" });
        };
      },
      { code: "engine.failed", message: "no" },
    ],
  ])("%s, and then no container is created", async ([, change, expected]) => {
    const { engine, brigHome, open } = await playedPlace();
    change(engine);
    expect(await failure(open())).toMatchObject(expected);
    expect(engine.calls).toEqual([]);
    expect(await recordNames(brigHome)).toEqual([]);
  });

  it.for<[string, (container: PlayedContainer) => void, object]>([
    [
      "whose kernel does not enforce the policy",
      report("/proc/sys/kernel/hostname", "elsewhere\n"),
      {
        code: "policy.not-enforced",
        message:
          "the engine did not enforce the policy workspace-write:\n  A9-hostname: promised brig, the kernel says elsewhere",
        hint: expect.stringContaining("nothing was run"),
      },
    ],
    [
      "whose kernel answers statx as no program expects",
      report("probe/statx", "1"),
      { code: "engine.too-old", message: expect.stringContaining("statx with errno 1") },
    ],
    [
      "whose runner does not speak its protocol",
      ({ runner }) => {
        runner.answer = () => frame(FrameType.exit, 1);
      },
      { code: "protocol.invalid", message: expect.stringContaining("no WELCOME after HELLO") },
    ],
    [
      "whose runner cannot be reached",
      ({ runner }) => {
        runner.answer = () => {
          runner.cut();
          return null;
        };
      },
      {
        code: "engine.failed",
        message: expect.stringContaining("its runner cannot be reached: the stream to the runner ended"),
        hint: expect.stringContaining("brig doctor"),
      },
    ],
    [
      "whose runner speaks another version of it",
      ({ runner }) => {
        runner.answer = () => welcome({ version: 2 });
      },
      { code: "protocol.invalid", hint: expect.stringContaining("brig image build") },
    ],
  ])("%s, and its container is removed", async ([, spoil, expected]) => {
    const { engine, brigHome, open, warnings } = await playedPlace();
    engine.onCreated = spoil;
    expect(await failure(open())).toMatchObject(expected);
    expect(engine.running).toEqual([]);
    expect(await recordNames(brigHome)).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it("whose start is aborted while the policy is checked", async () => {
    const { engine, open } = await playedPlace();
    const controller = new AbortController();
    const reason = new Error("enough");
    const opening = failure(
      open({
        signal: controller.signal,
        onProgress: (text) => {
          if (text === "checking the policy inside") controller.abort(reason);
        },
      }),
    );
    expect(await opening).toBe(reason);
    expect(engine.running).toEqual([]);
  });

  it.for([0, 0.5, 604_801, Number.NaN, Number.POSITIVE_INFINITY])(
    "with a lease of %s",
    async (leaseSeconds) => {
      const { engine, open } = await playedPlace();
      expect(await failure(open({ leaseSeconds }))).toMatchObject({
        code: "usage.invalid",
        message: `a lease of ${leaseSeconds} seconds is not possible`,
        hint: expect.stringContaining("between 1 and 604800"),
      });
      expect(engine.calls).toEqual([]);
    },
  );

  it.for([
    [{ workspaceKind: "copy" }, "copy", "none, bind, overlay"],
    [{ git: "all" }, "all", "protected, branch"],
    [{ git: "branch" }, "no repository", "leave out --git branch"],
  ] as const)("with the options %j", async ([options, words, hint]) => {
    const { open } = await playedPlace();
    expect(await failure(open(options as never))).toMatchObject({
      code: "usage.invalid",
      message: expect.stringContaining(words),
      hint: expect.stringContaining(hint.split(", ")[0] ?? ""),
    });
  });
});

describe("the kernel of a container", () => {
  /** What every release of gVisor reports. */
  const gvisor = "4.4.0\n#1 SMP Sun Jan 10 15:06:54 PST 2016\n";

  it("that turns out to be gVisor's is given another container, with gVisor's runner", async () => {
    const { engine, open } = await playedPlace();
    engine.onCreated = report("uname", gvisor);
    const outcome = await failure(open());
    expect(engine.containers.map(({ body }) => body.Entrypoint)).toEqual([
      ["/.brig/runner"],
      ["/.brig/runner-gvisor"],
    ]);
    // The played kernel of the second one is not gVisor's in everything else.
    if (outcome !== null) expect(outcome).toMatchObject({ code: "policy.not-enforced" });
    expect(engine.containers[0]?.state).toBe("gone");
  });

  it("that cannot load the runner is taken for gVisor's", async () => {
    const { engine, open } = await playedPlace();
    const start = engine.startContainer;
    engine.startContainer = async (id) => {
      if (engine.containers.length > 1) return await start(id);
      throw new BrigError("failed to load /.brig/runner: permission denied", { code: "engine.failed" });
    };
    await failure(open());
    expect(engine.containers.map(({ body }) => body.Entrypoint[0])).toEqual([
      "/.brig/runner",
      "/.brig/runner-gvisor",
    ]);
    expect(engine.containers[0]?.state).toBe("gone");
  });
});
