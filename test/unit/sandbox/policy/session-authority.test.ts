import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decideAfterDenial,
  decideCommand,
  decideMcpCall,
} from "../../../../src/sandbox/policy/approval-decision.js";
import { APPROVAL_POLICIES, type ApprovalPolicy } from "../../../../src/sandbox/policy/approval-policy.js";
import { SANDBOX_MODES } from "../../../../src/sandbox/policy/modes.js";
import { excessOver, type SessionAuthority } from "../../../../src/sandbox/policy/session-authority.js";
import { runs } from "../../../support/fuzz.js";

const base: SessionAuthority = {
  sandboxMode: "workspace-write",
  approvalPolicy: "on-request",
  network: { kind: "none" },
  workspace: "/work",
  writableRoots: ["/data"],
  protectedNames: [".git", ".brig"],
  tools: ["shell", "read_file", "apply_patch"],
  hasMcpServers: false,
};

function excess(parent: Partial<SessionAuthority>, child: Partial<SessionAuthority>): readonly string[] {
  return excessOver({ ...base, ...parent }, { ...base, ...child });
}

describe("a session started by another", () => {
  it("may have what is no more than its parent has", () => {
    const child = {
      sandboxMode: "read-only",
      tools: ["read_file"],
      workspace: "/work/sub",
      writableRoots: [],
    };
    expect(excess({}, child)).toEqual([]);
  });

  it("may have MCP servers only under a parent that has some, and then no policy that calls them more freely", () => {
    const servers = { hasMcpServers: true };
    expect(excess({}, servers)).toEqual(["MCP servers"]);
    expect(excess(servers, servers)).toEqual([]);
    expect(excess(servers, { approvalPolicy: "never" })).toEqual([]);
    expect(excess(servers, { ...servers, approvalPolicy: "never" })).toEqual(["approval policy"]);
  });

  it("may not have a freer mode, and hears of it", () => {
    expect(excess({}, { sandboxMode: "danger-full-access" })).toEqual(["sandbox mode"]);
  });

  it("cannot have a policy of the user's own that its parent does not have, unless the parent has everything", () => {
    expect(excess({}, { sandboxMode: "./mine.toml" })).toEqual([
      "the policy ./mine.toml cannot be compared with workspace-write",
    ]);
    expect(excess({ sandboxMode: "./mine.toml" }, { sandboxMode: "read-only" })).toEqual([
      "the policy read-only cannot be compared with ./mine.toml",
    ]);
    expect(excess({ sandboxMode: "./mine.toml" }, { sandboxMode: "./mine.toml" })).toEqual([]);
    expect(excess({ sandboxMode: "danger-full-access" }, { sandboxMode: "./mine.toml" })).toEqual([]);
  });

  it.each<[ApprovalPolicy, ApprovalPolicy, isAllowed: boolean]>([
    ["on-request", "never", true],
    ["on-failure", "never", true],
    ["on-failure", "untrusted", true],
    ["on-request", "untrusted", true],
    ["untrusted", "never", false],
    ["untrusted", "on-request", false],
    ["never", "on-request", false],
    ["never", "untrusted", false],
    ["on-request", "on-failure", false],
    ["on-failure", "on-request", false],
    ["never", "never", true],
  ])("under %s that wants %s: %s", (parent, child, isAllowed) => {
    expect(excess({ approvalPolicy: parent }, { approvalPolicy: child })).toEqual(
      isAllowed ? [] : ["approval policy"],
    );
  });

  it("with full access is not let go unasked where its parent is asked", () => {
    const mode = { sandboxMode: "danger-full-access" };
    expect(excess({ ...mode, approvalPolicy: "on-request" }, { ...mode, approvalPolicy: "never" })).toEqual([
      "approval policy",
    ]);
    expect(excess({ ...mode, approvalPolicy: "never" }, { ...mode, approvalPolicy: "on-request" })).toEqual(
      [],
    );
  });

  it("in a sandbox may ask nobody where its parent has full access and asks", () => {
    const parent = { sandboxMode: "danger-full-access", approvalPolicy: "on-request" as const };
    expect(excess(parent, { sandboxMode: "read-only", approvalPolicy: "never" })).toEqual([]);
  });

  it.each<[SessionAuthority["network"], SessionAuthority["network"], isAllowed: boolean]>([
    [{ kind: "none" }, { kind: "full" }, false],
    [{ kind: "full" }, { kind: "allowlist", hosts: ["a.org"] }, true],
    [{ kind: "allowlist", hosts: ["a.org"] }, { kind: "full" }, false],
    [
      { kind: "allowlist", hosts: ["*.a.org", "b.org:443"] },
      { kind: "allowlist", hosts: ["x.a.org:80", "*.y.a.org", "b.org:443"] },
      true,
    ],
    ...["a.org", "b.org", "c.org"].map(
      (host): [SessionAuthority["network"], SessionAuthority["network"], boolean] => [
        { kind: "allowlist", hosts: ["*.a.org", "b.org:443"] },
        { kind: "allowlist", hosts: ["x.a.org", host] },
        false,
      ],
    ),
    [{ kind: "allowlist", hosts: ["a.org"] }, { kind: "allowlist", hosts: ["b.org"] }, false],
  ])("with network %j that wants %j: %s", (parent, child, isAllowed) => {
    expect(excess({ network: parent }, { network: child })).toEqual(isAllowed ? [] : ["network"]);
  });

  it("may write where its parent may", () => {
    expect(excess({}, { writableRoots: ["/data/x", "/work/y"] })).toEqual([]);
  });

  it.each(["/etc", "/database", "/data/../etc", "relative", "/work/.git", "/data/.brig/x"])(
    "may not write in %s, which its parent may not",
    (root) => {
      expect(excess({}, { writableRoots: ["/data/x", root] })).toEqual(["writable directories"]);
    },
  );

  it.each(["/", "/etc", "/workshop", "/work/..", "/work/.git", "/work/.git/hooks", "/data/.brig"])(
    "cannot work in %s, which its parent may not write",
    (workspace) => {
      expect(excess({}, { workspace })).toEqual([
        `the workspace ${workspace} is outside of the directories that the parent session may change`,
      ]);
    },
  );

  it("leaves protected what its parent leaves protected", () => {
    expect(excess({}, { protectedNames: [".git"] })).toEqual(["protected names"]);
    expect(excess({}, { protectedNames: [".git", ".brig", ".hg"] })).toEqual([]);
  });

  it("has no tool that its parent has not", () => {
    expect(excess({}, { tools: ["shell", "js_repl"] })).toEqual(["tools"]);
  });

  it("hears of all that is too much at once", () => {
    const child = {
      sandboxMode: "danger-full-access",
      network: { kind: "full" as const },
      tools: ["js_repl"],
    };
    expect(excess({}, child)).toEqual(["sandbox mode", "network", "tools"]);
  });
});

const granular = fc.boolean().map(
  (sandbox_approval): ApprovalPolicy => ({
    granular: {
      sandbox_approval,
      rules: false,
      skill_approval: false,
      request_permissions: false,
      mcp_elicitations: false,
    },
  }),
);
const paths = fc.constantFrom(
  "/work",
  "/work/sub",
  "/work/.git",
  "/data",
  "/data/x/y",
  "/etc",
  "/",
  "/work/../data",
);
const hosts = fc.uniqueArray(fc.constantFrom("a.org", "*.a.org", "x.a.org", "a.org:443", "b.org"), {
  minLength: 1,
});
const network = fc.oneof(
  fc.constantFrom({ kind: "none" as const }, { kind: "full" as const }),
  hosts.map((list) => ({ kind: "allowlist" as const, hosts: list })),
);
const authority: fc.Arbitrary<SessionAuthority> = fc.record({
  sandboxMode: fc.constantFrom(...SANDBOX_MODES, "./a.toml", "./b.toml"),
  approvalPolicy: fc.oneof(fc.constantFrom<ApprovalPolicy>(...APPROVAL_POLICIES), granular),
  network,
  workspace: fc.option(paths),
  writableRoots: fc.uniqueArray(paths, { maxLength: 3 }),
  protectedNames: fc.uniqueArray(fc.constantFrom(".git", ".brig")),
  tools: fc.uniqueArray(fc.constantFrom("shell", "read_file", "apply_patch")),
  hasMcpServers: fc.boolean(),
});

/** What happens to a command at most, from 0, never, to 2, without a question: the model chooses whether it asks to leave. */
function outcomes({ approvalPolicy: policy, sandboxMode }: SessionAuthority): number[] {
  const isRestricted = sandboxMode !== "danger-full-access";
  return (["safe", "dangerous", "other"] as const).map((risk) =>
    Math.max(
      ...[false, true].map((isEscalationAsked) => {
        const situation = { policy, risk, isRestricted, isEscalationAsked, canEscalate: true };
        return { refuse: 0, ask: 1, run: 2 }[decideCommand(situation).kind];
      }),
    ),
  );
}

/** The same for a call of an MCP server's tool that needs approval. */
function callOutcome({ approvalPolicy: policy, sandboxMode, hasMcpServers }: SessionAuthority): number {
  if (!hasMcpServers) return 0;
  const isRestricted = sandboxMode !== "danger-full-access";
  const annotations = { readOnly: false, destructive: true, openWorld: true };
  const { kind } = decideMcpCall({ policy, isRestricted, approval: "auto", annotations });
  return { refuse: 0, ask: 1, run: 2 }[kind];
}

function mayLeave({ approvalPolicy: policy, sandboxMode }: SessionAuthority): boolean {
  const isRestricted = sandboxMode !== "danger-full-access";
  const again = decideAfterDenial("command", { policy, isRestricted, canEscalate: true });
  return !isRestricted || policy === "on-request" || again !== "stands";
}

/** A parent, and a child that differs from it in one or two things, so that many are within it. */
const family = fc
  .tuple(authority, authority, fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }))
  .map(([parent, other, differs]): [SessionAuthority, SessionAuthority] => {
    const keys = Object.keys(parent).filter((_, at) => differs[at]) as (keyof SessionAuthority)[];
    return [parent, { ...parent, ...Object.fromEntries(keys.slice(0, 2).map((key) => [key, other[key]])) }];
  });

it("whatever parent and child are, a child without excess may do nothing that the parent may not", () => {
  let within = 0;
  const numRuns = runs({ short: 1000, deep: 50_000 });
  fc.assert(
    fc.property(family, ([parent, child]) => {
      if (excessOver(parent, child).length > 0) return;
      within++;
      const rank = (name: string) => SANDBOX_MODES.map(String).indexOf(name);
      if (parent.sandboxMode !== "danger-full-access" && parent.sandboxMode !== child.sandboxMode)
        expect(rank(child.sandboxMode)).toBeLessThan(rank(parent.sandboxMode));
      const ofParent = outcomes(parent);
      outcomes(child).forEach((outcome, at) => {
        expect(outcome).toBeLessThanOrEqual(ofParent[at] ?? 0);
      });
      expect(callOutcome(child)).toBeLessThanOrEqual(callOutcome(parent));
      if (mayLeave(child)) expect(mayLeave(parent)).toBe(true);
      if (parent.network.kind === "none") expect(child.network.kind).toBe("none");
      if (child.network.kind === "full") expect(parent.network.kind).toBe("full");
      for (const tool of child.tools) expect(parent.tools).toContain(tool);
      for (const name of parent.protectedNames) expect(child.protectedNames).toContain(name);
    }),
    { numRuns },
  );
  expect(within).toBeGreaterThan(numRuns / 10);
});
