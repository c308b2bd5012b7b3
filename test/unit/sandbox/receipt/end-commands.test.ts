import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { readEnvironment } from "../../../../src/lib/env.js";
import type { OpenedSandbox } from "../../../../src/sandbox/open-sandbox.js";
import type { PlannedMount, SandboxPlan } from "../../../../src/sandbox/plan/plan.js";
import { endCommands, makeReceipt } from "../../../../src/sandbox/receipt/end-commands.js";
import { obeyedNames } from "../../../../src/sandbox/receipt/obeyed-names.js";
import { emptyReceipt } from "../../../../src/sandbox/receipt/receipt.js";
import { type PlayedAnswer, playedFiles } from "../channel/played-files.js";
import { findingRecord, receiptResult } from "./receipt-records.js";

const mount = (path: string, given: Partial<PlannedMount> = {}): PlannedMount =>
  ({ kind: "writable-root", path, access: "rw", identity: null, ...given }) as PlannedMount;
const planOf = (mounts: readonly PlannedMount[], capabilities = "none") =>
  ({
    mounts,
    knownDirectories: [{ path: "/repo/.vscode", ino: "7" }],
    capabilities,
    user: { uid: 1234, gid: 5 },
  }) as unknown as SandboxPlan;
const closed = new BrigError("closed", { code: "sandbox.gone", reason: "closed" });
const source = { kind: "volume", volume: "v" } as const;

async function receipt(plan: SandboxPlan, answer: PlayedAnswer = { result: receiptResult() }) {
  const played = await playedFiles(() => answer);
  played.context.link.retire(closed);
  return { receipt: await makeReceipt(played.context, plan), requests: played.requests };
}

describe("a receipt is made", () => {
  it("of what could be written on the host, without what was protected or is not the host's", async () => {
    const plan = planOf([
      mount("/repo", { kind: "workspace" }),
      mount("/repo/.git", { kind: "protected", access: "ro" }),
      mount("/repo/sub"),
      mount("/repos"),
      mount("/ro", { access: "ro" }),
      mount("/volume", { source }),
      mount("/protected", { kind: "protected" }),
    ]);
    const record = findingRecord("/repo/a");
    const made = await receipt(plan, {
      output: [record.subarray(0, 9), record.subarray(9)],
      result: receiptResult(),
    });
    expect(made.receipt).toMatchObject({
      findings: [{ path: "/repo/a", reasons: ["runs"] }],
      incomplete: null,
    });
    expect(made.requests).toMatchObject([
      {
        ...{ operation: "receipt", path: Buffer.from("/repo\n/repos"), flags: 1, mode: 3000, offset: 1234n },
      },
    ]);
    const parts = String(made.requests[0]?.second).split("\n\n");
    expect(parts).toEqual([
      "/repo/.git\n/volume\n/protected",
      obeyedNames.map(([name]) => name).join("\n"),
      "7 /repo/.vscode",
    ]);
  });

  it("with the user of this process as the owner of files where commands have other rights", async () => {
    const { requests } = await receipt(planOf([mount("/repo")], "tree"));
    expect(requests[0]?.offset).toBe(BigInt(process.getuid?.() ?? -1));
  });

  it("of nothing without a request", async () => {
    const made = await receipt(planOf([mount("/ro", { access: "ro" })]));
    expect(made).toEqual({ receipt: emptyReceipt(), requests: [] });
  });

  it.each<[string, PlayedAnswer]>([
    ["fails", { errno: 5 }],
    ["is no receipt", { result: Buffer.alloc(3) }],
    ["is of another directory", { output: [findingRecord("/etc/x")], result: receiptResult() }],
  ])("and says so where the answer %s", async (_name, answer) => {
    expect((await receipt(planOf([mount("/repo")]), answer)).receipt).toEqual(emptyReceipt("failed"));
  });

  it("and says so where the container is gone", async () => {
    const played = await playedFiles(() => ({}));
    played.context.link.close(closed);
    expect(await makeReceipt(played.context, planOf([mount("/repo")]))).toEqual(emptyReceipt("gone"));
  });
});

describe("the end of a sandbox", () => {
  async function end(given: Partial<OpenedSandbox>, { hasRun = true } = {}) {
    const played = await playedFiles(() => ({ result: receiptResult({ omitted: 3 }) }));
    const warnings: unknown[] = [];
    const opened = {
      ...{
        link: played.context.link,
        plan: planOf([mount("/repo")]),
        branch: null,
        tree: null,
        isKept: false,
      },
      ...{
        options: { keepsChanges: true },
        settings: { environment: readEnvironment({ BRIG_HOME: "/dev/null/none" }) },
        warn: (warning: unknown) => void warnings.push(warning),
        ...given,
      },
    } as unknown as OpenedSandbox;
    const made = await endCommands(opened, { context: played.context, hasRun, closed });
    return { made, warnings, asked: played.requests.length, ...played };
  }

  it("makes a receipt, after which no call is taken", async () => {
    const { made, asked, context } = await end({});
    expect([made, asked]).toEqual([{ findings: [], omitted: 3, incomplete: null }, 1]);
    await expect(makeReceipt(context, planOf([mount("/repo")]))).resolves.toMatchObject({ findings: [] });
    expect(() => context.link.openChannel({ type: 0x10, payload: Buffer.alloc(0) }, {} as never)).toThrow(
      closed,
    );
  });

  it("looks at nothing if nothing has run", async () => {
    const { made, asked } = await end({}, { hasRun: false });
    expect([made, asked]).toEqual([emptyReceipt(), 0]);
  });

  it("looks at nothing if the sandbox is kept", async () => {
    const { made, asked } = await end({ isKept: true });
    expect([made, asked]).toEqual([emptyReceipt("kept"), 0]);
  });

  it("brings commits to the host, as they are", async () => {
    const contexts: unknown[] = [];
    const arrival = { kind: "nothing-new", notTaken: ["x"] } as const;
    const branch = {
      arrive: async (context: object) => {
        contexts.push(context);
        return arrival;
      },
    };
    const { made } = await end({ branch } as never);
    expect(made.branch).toEqual(arrival);
    expect(contexts).toMatchObject([{ mask: undefined, cwd: "/" }]);
    const unused = await end({ branch } as never, { hasRun: false });
    expect(unused.made).toEqual({ ...emptyReceipt(), branch: { kind: "nothing-new", notTaken: [] } });
    expect(contexts).toHaveLength(1);
  });

  it.each<[string, object, boolean]>([
    ["the workspace is no copy", { tree: null }, true],
    ["the sandbox is kept", { tree: {}, isKept: true }, true],
    ["nothing has run", { tree: {} }, false],
    ["nobody asked for that", { tree: {}, options: {} }, true],
    ["it was turned off", { tree: {}, options: { keepsChanges: false } }, true],
  ])("keeps no changes if %s", async (_name, given, hasRun) => {
    const { made, warnings } = await end(given as never, { hasRun });
    expect("changes" in made).toBe(false);
    expect(warnings).toEqual([]);
  });

  it("warns if changes could not be kept, and has a receipt all the same", async () => {
    const tree = { id: "tree", workspace: "/repo" };
    const { made, warnings } = await end({ tree } as never);
    expect(made).toEqual({ findings: [], omitted: 3, incomplete: null });
    expect(warnings).toHaveLength(1);
  });
});
