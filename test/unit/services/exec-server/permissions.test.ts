import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decidePermissions,
  type SandboxNeed,
  sandboxContext,
} from "../../../../src/services/exec-server/permissions.js";

const W = "/home/me/project";

const special = (kind: string, access: string, subpath?: string) => ({
  path: { type: "special", value: { kind, ...(subpath === undefined ? {} : { subpath }) } },
  access,
});
const path = (text: string, access: string) => ({ path: { type: "path", path: text }, access });

const rootRead = special("root", "read");
/** What Codex 0.169 sends for workspace-write. */
const workspaceWrite = [
  rootRead,
  special("project_roots", "write"),
  special("slash_tmp", "write"),
  special("tmpdir", "write"),
  ...[".git", ".agents", ".codex", ".aws"].map((name) => ({
    ...special("project_roots", "read", name),
    missing_path_behavior: "skip",
  })),
];

function decide(
  entries: object[] | null,
  { network = "restricted", roots = [W] }: { network?: string; roots?: string[] } = {},
) {
  const context = sandboxContext.parse({
    permissions: {
      type: "managed",
      file_system: entries === null ? { type: "unrestricted" } : { type: "restricted", entries },
      network,
    },
    cwd: `file://${W}`,
    workspaceRoots: roots.map((root) => `file://${root}`),
    windowsSandboxLevel: "disabled",
  });
  return decidePermissions(context, { workspace: W, otherRoots: roots.slice(1) });
}

function need(more: Partial<SandboxNeed>) {
  const readOnly = {
    base: "read-only",
    workspace: W,
    writableRoots: [],
    protectedNames: [],
    hasWritableHome: false,
    network: "none",
  };
  return { kind: "need", need: { ...readOnly, ...more } };
}

describe("a permission profile becomes the sandbox that enforces it", () => {
  const writes = {
    base: "workspace-write" as const,
    protectedNames: [".agents", ".aws", ".brig", ".codex", ".git"],
    hasWritableHome: true,
  };
  const full = { base: "danger-full-access" as const, hasWritableHome: true };

  it.each<[string, ReturnType<typeof decide>, ReturnType<typeof need>]>([
    ["read-only", decide([rootRead]), need({})],
    ["read-only, without a view of the disk", decide([special("minimal", "read")]), need({})],
    ["nothing at all", decide([]), need({})],
    ["workspace-write", decide(workspaceWrite), need(writes)],
    ["with a network", decide(workspaceWrite, { network: "enabled" }), need({ ...writes, network: "full" })],
    [
      "with another workspace root",
      decide(workspaceWrite, { roots: [W, "/data"] }),
      need({ ...writes, writableRoots: ["/data"] }),
    ],
    [
      "with a writable directory",
      decide([...workspaceWrite, path("/cache", "write")]),
      need({ ...writes, writableRoots: ["/cache"] }),
    ],
    [
      "a writable directory in a read-only workspace",
      decide([rootRead, path(`${W}/out`, "write")]),
      need({ writableRoots: [`${W}/out`], protectedNames: [".brig"] }),
    ],
    [
      "read-only with a writable /tmp",
      decide([rootRead, special("slash_tmp", "write")]),
      need({ hasWritableHome: true }),
    ],
    [
      "workspace-write without a writable /tmp",
      decide([rootRead, special("project_roots", "write"), special("slash_tmp", "read")]),
      need({ base: "workspace-write", protectedNames: [".brig"] }),
    ],
    [
      "brig's own directory, writable",
      decide([...workspaceWrite, path(`${W}/.brig`, "write")]),
      need(writes),
    ],
    ["what is writable twice", decide([...workspaceWrite, path(`${W}/src`, "write")]), need(writes)],
    [
      "readable places that a sandbox does not show",
      decide([...workspaceWrite, path("/opt", "read")]),
      need(writes),
    ],
    [
      "another name that stays read-only",
      decide([...workspaceWrite, path(`${W}/.env`, "read")]),
      need({ ...writes, protectedNames: [".agents", ".aws", ".brig", ".codex", ".env", ".git"] }),
    ],
    ["the whole disk, no network", decide(null), need(full)],
    [
      "the whole disk, by its root",
      decide([special("root", "write"), special("project_roots", "read", ".git")], { network: "enabled" }),
      need({ ...full, protectedNames: [".git"], network: "full" }),
    ],
  ])("%s", (_, decision, expected) => {
    expect(decision).toEqual(expected);
  });

  it("without restrictions it is danger-full-access", () => {
    const context = sandboxContext.parse({ permissions: { type: "disabled" } });
    expect(decidePermissions(context, { workspace: W, otherRoots: [] })).toEqual(
      need({ ...full, network: "full" }),
    );
  });
});

describe("a permission profile that mounts cannot enforce is refused", () => {
  it.each<[string, object[], RegExp]>([
    ["a path that nothing may read", [rootRead, path(`${W}/secret`, "none")], /access "none"/],
    ["an access of the future", [special("project_roots", "append")], /access "append"/],
    [
      "a pattern",
      [rootRead, { path: { type: "glob_pattern", pattern: "**/*.env" }, access: "read" }],
      /glob_pattern/,
    ],
    ["a special path of the future", [special("attic", "write")], /special path "attic"/],
    ["what programs need, writable", [special("minimal", "write")], /"minimal"/],
    ["a path that is not absolute", [path("src", "write")], /not an absolute path/],
    ["a read-only path deep inside", [...workspaceWrite, path(`${W}/a/b`, "read")], /not at the top/],
    [
      "a read-only path deep inside, by ..",
      [...workspaceWrite, path(`${W}/a/../b/c`, "read")],
      /not at the top/,
    ],
    ["a writable path in a protected one", [...workspaceWrite, path(`${W}/.git/hooks`, "write")], /\.git/],
    ["a path with both", [...workspaceWrite, path(`${W}/.git`, "write")], /read-only, and it/],
    [
      "a workspace with both",
      [special("project_roots", "read"), special("project_roots", "write")],
      /read-only, and it/,
    ],
    ["a directory around the workspace", [rootRead, path("/home/me", "write")], /contains the workspace/],
    ["a read-only place on a writable disk", [special("root", "write"), path("/etc", "read")], /"\/etc"/],
  ])("%s", (_, entries, reason) => {
    expect(decide(entries)).toEqual({ kind: "refused", reason: expect.stringMatching(reason) });
  });

  it.each([
    ["an unknown kind of permissions", { permissions: { type: "external" } }],
    [
      "a network of the future",
      { permissions: { type: "managed", file_system: { type: "unrestricted" }, network: "half" } },
    ],
    ["a path that is no URI", { permissions: { type: "disabled" }, cwd: "/home" }],
    ["a URI of another machine", { permissions: { type: "disabled" }, cwd: "file://host/home" }],
  ])("as a message: %s", (_, context) => {
    expect(sandboxContext.safeParse(context).success).toBe(false);
  });
});

it("no set of entries makes a directory writable that none of them names", () => {
  const directories = fc.constantFrom(W, `${W}/a`, `${W}/a/b`, "/x", "/x/y", "/home", "/etc");
  const access = fc.constantFrom("read", "write", "none");
  const entry = fc.oneof(
    fc.tuple(directories, access).map(([at, how]) => path(at, how)),
    fc
      .tuple(fc.constantFrom("project_roots", "slash_tmp", "tmpdir", "minimal"), access)
      .map(([kind, how]) => special(kind, how)),
  );
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 6 }), (entries) => {
      const decision = decide(entries);
      if (decision.kind === "refused") return;
      const named = (at: string) => (one: object) =>
        "path" in one && JSON.stringify(one) === JSON.stringify(path(at, "write"));
      const { base, writableRoots, protectedNames, hasWritableHome } = decision.need;
      const isTmpNamed = ["slash_tmp", "tmpdir"].some((kind) =>
        entries.some((one) => JSON.stringify(one) === JSON.stringify(special(kind, "write"))),
      );
      expect(hasWritableHome).toBe(isTmpNamed);
      if (base === "workspace-write" || writableRoots.length > 0) expect(protectedNames).toContain(".brig");
      for (const root of writableRoots) expect(entries.some(named(root)), root).toBe(true);
      const isWorkspaceNamed =
        entries.some(named(W)) ||
        entries.some((one) => JSON.stringify(one) === JSON.stringify(special("project_roots", "write")));
      expect(base).toBe(isWorkspaceNamed ? "workspace-write" : "read-only");
    }),
  );
});
