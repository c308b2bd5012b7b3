import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decideAfterDenial, decideCommand } from "../../../src/policy/approval-decision.js";
import { APPROVAL_POLICIES, type ApprovalPolicy } from "../../../src/policy/approval-policy.js";
import { SANDBOX_MODES } from "../../../src/policy/modes.js";
import { noWeakerThan, type SessionAuthority } from "../../../src/policy/session-authority.js";

const base: SessionAuthority = {
  sandboxMode: "workspace-write",
  approvalPolicy: "on-request",
  network: { kind: "none" },
  workspace: "/work",
  writableRoots: ["/data"],
  protectedNames: [".git", ".brig"],
  tools: ["shell", "read_file", "apply_patch"],
};

function allowed(parent: Partial<SessionAuthority>, child: Partial<SessionAuthority>) {
  const check = noWeakerThan({ ...base, ...parent }, { ...base, ...child });
  if (check.kind === "refused") throw new Error(check.reason);
  return check;
}

describe("a session started by another", () => {
  it("gets what it wants where that is no more than its parent has", () => {
    const child = {
      ...base,
      sandboxMode: "read-only",
      tools: ["read_file"],
      workspace: "/work/sub",
      writableRoots: [],
    };
    expect(noWeakerThan(base, child)).toEqual({ kind: "allowed", authority: child, narrowed: [] });
  });

  it("gets its parent's mode where it wants a freer one, and hears of it", () => {
    const { authority, narrowed } = allowed({}, { sandboxMode: "danger-full-access" });
    expect(authority.sandboxMode).toBe("workspace-write");
    expect(narrowed).toEqual(["sandbox mode"]);
  });

  it("cannot have a policy of the user's own that its parent does not have, unless the parent has everything", () => {
    expect(noWeakerThan(base, { ...base, sandboxMode: "./mine.toml" }).kind).toBe("refused");
    expect(
      noWeakerThan({ ...base, sandboxMode: "./mine.toml" }, { ...base, sandboxMode: "read-only" }).kind,
    ).toBe("refused");
    expect(allowed({ sandboxMode: "./mine.toml" }, { sandboxMode: "./mine.toml" }).narrowed).toEqual([]);
    expect(allowed({ sandboxMode: "danger-full-access" }, { sandboxMode: "./mine.toml" }).narrowed).toEqual(
      [],
    );
  });

  it.each<[ApprovalPolicy, ApprovalPolicy, ApprovalPolicy]>([
    ["on-request", "never", "never"],
    ["on-failure", "never", "never"],
    ["on-failure", "untrusted", "untrusted"],
    ["untrusted", "never", "untrusted"],
    ["untrusted", "on-request", "untrusted"],
    ["never", "on-request", "never"],
    ["never", "untrusted", "never"],
    ["on-request", "on-failure", "on-request"],
    ["on-failure", "on-request", "on-failure"],
  ])("under %s that wants %s gets %s", (parent, child, given) => {
    expect(allowed({ approvalPolicy: parent }, { approvalPolicy: child }).authority.approvalPolicy).toBe(
      given,
    );
  });

  it("with full access is not let go unasked where its parent is asked", () => {
    const mode = { sandboxMode: "danger-full-access" };
    const { authority } = allowed(
      { ...mode, approvalPolicy: "on-request" },
      { ...mode, approvalPolicy: "never" },
    );
    expect(authority.approvalPolicy).toBe("on-request");
  });

  it.each<[SessionAuthority["network"], SessionAuthority["network"], SessionAuthority["network"]]>([
    [{ kind: "none" }, { kind: "full" }, { kind: "none" }],
    [{ kind: "full" }, { kind: "allowlist", hosts: ["a.org"] }, { kind: "allowlist", hosts: ["a.org"] }],
    [{ kind: "allowlist", hosts: ["a.org"] }, { kind: "full" }, { kind: "allowlist", hosts: ["a.org"] }],
    [
      { kind: "allowlist", hosts: ["*.a.org", "b.org:443"] },
      { kind: "allowlist", hosts: ["x.a.org:80", "*.y.a.org", "a.org", "b.org", "b.org:443", "c.org"] },
      { kind: "allowlist", hosts: ["x.a.org:80", "*.y.a.org", "b.org:443"] },
    ],
    [{ kind: "allowlist", hosts: ["a.org"] }, { kind: "allowlist", hosts: ["b.org"] }, { kind: "none" }],
  ])("with network %j that wants %j gets %j", (parent, child, given) => {
    expect(allowed({ network: parent }, { network: child }).authority.network).toEqual(given);
  });

  it("keeps of its directories those that its parent may write", () => {
    const wanted = [
      "/data/x",
      "/work/y",
      "/etc",
      "/database",
      "/data/../etc",
      "relative",
      "/work/.git",
      "/data/.brig/x",
    ];
    expect(allowed({}, { writableRoots: wanted }).authority.writableRoots).toEqual(["/data/x", "/work/y"]);
  });

  it.each(["/", "/etc", "/workshop", "/work/..", "/work/.git", "/work/.git/hooks", "/data/.brig"])(
    "cannot work in %s, which its parent may not write",
    (workspace) => {
      expect(noWeakerThan(base, { ...base, workspace }).kind).toBe("refused");
    },
  );

  it("has no tool that its parent has not", () => {
    const { authority } = allowed({}, { tools: ["shell", "js_repl"] });
    expect(authority.tools).toEqual(["shell"]);
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
});

/** What happens to a command, from 0, never, to 2, without a question. */
function outcomes({ approvalPolicy: policy, sandboxMode }: SessionAuthority): number[] {
  const isRestricted = sandboxMode !== "danger-full-access";
  return (["safe", "dangerous", "other"] as const).flatMap((risk) =>
    [false, true].map((isEscalationAsked) => {
      const situation = { policy, risk, isRestricted, isEscalationAsked, canEscalate: true };
      return { refuse: 0, ask: 1, run: 2 }[decideCommand(situation).kind];
    }),
  );
}

function mayLeave({ approvalPolicy: policy, sandboxMode }: SessionAuthority): boolean {
  const isRestricted = sandboxMode !== "danger-full-access";
  const again = decideAfterDenial("command", { policy, isRestricted, canEscalate: true });
  return !isRestricted || policy === "on-request" || again !== "stands";
}

it("whatever parent and child are, nothing comes out that the parent may not do, nor more than the child wanted", {
  timeout: 30_000,
}, () => {
  fc.assert(
    fc.property(authority, authority, (parent, child) => {
      const check = noWeakerThan(parent, child);
      if (check.kind === "refused") return;
      const given = check.authority;
      const rank = (name: string) => SANDBOX_MODES.map(String).indexOf(name);
      if (parent.sandboxMode !== "danger-full-access" && parent.sandboxMode !== given.sandboxMode)
        expect(rank(given.sandboxMode)).toBeLessThan(rank(parent.sandboxMode));
      const ofParent = outcomes(parent);
      outcomes(given).forEach((outcome, at) => {
        expect(outcome).toBeLessThanOrEqual(ofParent[at] ?? 0);
      });
      if (mayLeave(given)) expect(mayLeave(parent)).toBe(true);
      if (parent.network.kind === "none" || child.network.kind === "none")
        expect(given.network.kind).toBe("none");
      if (given.network.kind === "full")
        expect([parent.network.kind, child.network.kind]).toEqual(["full", "full"]);
      for (const tool of given.tools)
        expect([...parent.tools, ...child.tools].filter((one) => one === tool)).toHaveLength(2);
      for (const name of parent.protectedNames) expect(given.protectedNames).toContain(name);
      for (const root of given.writableRoots) expect(child.writableRoots).toContain(root);
      // A grandchild that wants the same gets the same.
      expect(noWeakerThan(parent, given)).toEqual({ kind: "allowed", authority: given, narrowed: [] });
    }),
    { numRuns: 5000 },
  );
});
