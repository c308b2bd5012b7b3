import { describe, expect, it } from "vitest";
import type { ApprovalPolicy } from "../../../../src/sandbox/policy/approval-policy.js";
import { SANDBOX_MODES } from "../../../../src/sandbox/policy/modes.js";
import type { NetworkScope } from "../../../../src/sandbox/policy/network.js";
import {
  compareApprovals,
  compareModes,
  compareNetworks,
  type Strictness,
} from "../../../../src/sandbox/policy/strictness.js";

const signs = { "=": "same", "<": "stricter", ">": "looser", "?": "incomparable" } as const;

/** Each row says how its first word compares with the words above the columns. */
function readTable(text: string): [one: string, other: string, expected: Strictness][] {
  const [head = [], ...rows] = text
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/));
  return rows.flatMap(([one = "", ...cells]) =>
    cells.map((cell, at): [string, string, Strictness] => [
      one,
      head[at] ?? "",
      signs[cell as keyof typeof signs],
    ]),
  );
}

const opposite: Record<Strictness, Strictness> = {
  same: "same",
  stricter: "looser",
  looser: "stricter",
  incomparable: "incomparable",
};

function granular(sandbox_approval: boolean, rules = false, mcp_elicitations = false): ApprovalPolicy {
  return {
    granular: {
      sandbox_approval,
      rules,
      skill_approval: false,
      request_permissions: false,
      mcp_elicitations,
    },
  };
}

const policies: Record<string, ApprovalPolicy> = {
  untrusted: "untrusted",
  "on-failure": "on-failure",
  "on-request": "on-request",
  never: "never",
  asking: granular(true),
  refusing: granular(false),
  "refusing+rules": granular(false, true),
};

const sandboxModes = ["read-only", "workspace-write"] as const;
const inSandbox = `
                 untrusted  on-failure  on-request  never  asking  refusing  refusing+rules
untrusted        =          <           <           ?      <       ?         ?
on-failure       >          =           ?           >      ?       >         ?
on-request       >          ?           =           >      ?       >         ?
never            ?          <           <           =      <       ?         <
asking           >          ?           ?           >      =       >         ?
refusing         ?          <           <           ?      <       =         <
refusing+rules   ?          ?           ?           >      ?       >         =
`;

const withFullAccess = `
                 untrusted  on-failure  on-request  never  asking  refusing  refusing+rules
untrusted        =          <           <           <      <       ?         ?
on-failure       >          =           ?           <      ?       >         ?
on-request       >          ?           =           <      ?       >         ?
never            >          >           >           =      >       >         ?
asking           >          ?           ?           <      =       >         ?
refusing         ?          <           <           <      <       =         <
refusing+rules   ?          ?           ?           ?      ?       >         =
`;

const underEveryMode = `
                 untrusted  on-failure  on-request  never  asking  refusing  refusing+rules
untrusted        =          <           <           ?      <       ?         ?
on-failure       >          =           ?           ?      ?       >         ?
on-request       >          ?           =           ?      ?       >         ?
never            ?          ?           ?           =      ?       >         ?
asking           >          ?           ?           ?      =       >         ?
refusing         ?          <           <           <      <       =         <
refusing+rules   ?          ?           ?           ?      ?       >         =
`;

const inSandboxWithServers = `
                 untrusted  on-failure  on-request  never  asking  refusing  refusing+rules
untrusted        =          <           <           ?      ?       ?         ?
on-failure       >          =           ?           ?      ?       >         ?
on-request       >          ?           =           ?      ?       >         ?
never            ?          ?           ?           =      ?       ?         ?
asking           ?          ?           ?           ?      =       >         ?
refusing         ?          <           <           ?      <       =         <
refusing+rules   ?          ?           ?           ?      ?       >         =
`;

const withFullAccessAndServers = `
                 untrusted  on-failure  on-request  never  asking  refusing  refusing+rules
untrusted        =          <           <           <      ?       ?         ?
on-failure       >          =           ?           <      ?       >         ?
on-request       >          ?           =           <      ?       >         ?
never            >          >           >           =      >       >         ?
asking           ?          ?           ?           <      =       >         ?
refusing         ?          <           <           <      <       =         <
refusing+rules   ?          ?           ?           ?      ?       >         =
`;

const underEveryModeWithServers = `
                 untrusted  on-failure  on-request  never  asking  refusing  refusing+rules
untrusted        =          <           <           ?      ?       ?         ?
on-failure       >          =           ?           ?      ?       >         ?
on-request       >          ?           =           ?      ?       >         ?
never            ?          ?           ?           =      ?       >         ?
asking           ?          ?           ?           ?      =       >         ?
refusing         ?          <           <           <      <       =         <
refusing+rules   ?          ?           ?           ?      ?       >         =
`;

const tables: [modes: readonly string[], servers: "with" | "without", table: string][] = [
  ...sandboxModes.map((mode): [string[], "without", string] => [[mode], "without", inSandbox]),
  [["./mine.toml"], "without", inSandbox],
  [["danger-full-access"], "without", withFullAccess],
  [SANDBOX_MODES, "without", underEveryMode],
  [["workspace-write"], "with", inSandboxWithServers],
  [["danger-full-access"], "with", withFullAccessAndServers],
  [SANDBOX_MODES, "with", underEveryModeWithServers],
];

describe.each(tables)("of two approval policies under %j, %s MCP servers", (modes, servers, table) => {
  const approvals = (name: string) => ({ policy: policies[name] ?? "never", modes });
  const compare = (one: string, other: string) =>
    compareApprovals(approvals(one), approvals(other), { hasMcpServers: servers === "with" });

  it.each(readTable(table))("%s beside %s is %s", (one, other, expected) => {
    expect(compare(one, other)).toBe(expected);
  });

  it("there are no two that are each stricter, and what is stricter than a stricter one is stricter", () => {
    const names = Object.keys(policies);
    for (const one of names)
      for (const other of names) {
        expect(compare(other, one)).toBe(opposite[compare(one, other)]);
        for (const third of names)
          if (compare(one, other) === "stricter" && compare(other, third) === "stricter")
            expect(compare(one, third), `${one} ${other} ${third}`).toBe("stricter");
      }
  });
});

it("the same approval policy is stricter in a sandbox than with full access", () => {
  for (const policy of Object.values(policies))
    expect(
      compareApprovals(
        { policy, modes: ["read-only"] },
        { policy, modes: ["danger-full-access"] },
        { hasMcpServers: false },
      ),
    ).toBe("stricter");
});

describe("of two granular policies that differ in mcp_elicitations", () => {
  const compare = (hasMcpServers: boolean) =>
    compareApprovals(
      { policy: granular(true, false, false), modes: SANDBOX_MODES },
      { policy: granular(true, false, true), modes: SANDBOX_MODES },
      { hasMcpServers },
    );

  it("the one that refuses the questions is stricter", () => {
    expect(compare(true)).toBe("stricter");
  });

  it("neither is stricter where there is no server", () => {
    expect(compare(false)).toBe("same");
  });
});

describe("of two modes", () => {
  const table = `
                     read-only  workspace-write  ./mine.toml  ./other.toml  danger-full-access
read-only            =          <                ?            ?             <
workspace-write      >          =                ?            ?             <
./mine.toml          ?          ?                =            ?             <
./other.toml         ?          ?                ?            =             <
danger-full-access   >          >                >            >             =
`;

  it.each(readTable(table))("%s beside %s is %s", (one, other, expected) => {
    expect(compareModes(one, other)).toBe(expected);
  });
});

describe("of two networks", () => {
  const networks: Record<string, NetworkScope> = {
    none: { kind: "none" },
    full: { kind: "full" },
    a: { kind: "allowlist", hosts: ["a.org"] },
    "a:443": { kind: "allowlist", hosts: ["a.org:443"] },
    "b,a": { kind: "allowlist", hosts: ["b.org", "a.org"] },
    "a,b": { kind: "allowlist", hosts: ["a.org", "b.org"] },
    b: { kind: "allowlist", hosts: ["b.org"] },
    "*.b": { kind: "allowlist", hosts: ["*.b.org"] },
    "x.b": { kind: "allowlist", hosts: ["x.b.org"] },
  };
  const table = `
         none  full  a  a:443  b,a  a,b  b  *.b  x.b
none     =     <     <  <      <    <    <  <    <
full     >     =     >  >      >    >    >  >    >
a        >     <     =  >      <    <    ?  ?    ?
a:443    >     <     <  =      <    <    ?  ?    ?
a,b      >     <     >  >      =    =    >  ?    ?
b        >     <     ?  ?      <    <    =  ?    ?
*.b      >     <     ?  ?      ?    ?    ?  =    >
x.b      >     <     ?  ?      ?    ?    ?  <    =
`;

  it.each(readTable(table))("%s beside %s is %s", (one, other, expected) => {
    const scope = (name: string): NetworkScope => networks[name] ?? { kind: "full" };
    expect(compareNetworks(scope(one), scope(other))).toBe(expected);
  });
});
