import { describe, expect, it } from "vitest";
import { type ContextOptions, contextMessages } from "../../../../src/agent/context/context-messages.js";
import type { MessageItem } from "../../../../src/agent/model/items.js";
import { type SessionSetting, sentContext } from "../../../../src/agent/session/setting.js";

const setting: SessionSetting = {
  cwd: "/repo/a&b",
  sandboxMode: "workspace-write",
  network: { kind: "none" },
  writableRoots: ["/data"],
  shell: "/bin/bash",
  timezone: "Europe/Berlin",
};
const now = new Date("2026-11-05T23:30:00Z");

function sections(messages: readonly MessageItem[]): unknown[] {
  return messages.map(({ role, content }) => [
    role,
    ...content.map((part) => (part.type === "input_text" ? part.text : part)),
  ]);
}

function first(more: Partial<SessionSetting> = {}, options: ContextOptions & { docs?: string | null } = {}) {
  return contextMessages(sentContext({ ...setting, ...more }, now), null, options);
}

/** The first message's first section: what may be done. */
function permissions(more: Partial<SessionSetting> = {}): string {
  const part = first(more)[0]?.content[0];
  return part?.type === "input_text" ? part.text : "";
}

describe("what the model is told first", () => {
  it("is what it may do and where it is", () => {
    expect(permissions()).toMatch(/^<permissions instructions>\n[\s\S]*\n<\/permissions instructions>$/);
    expect(permissions()).toContain("Network access is restricted.");
    expect(permissions()).toContain("The writable roots are `/repo/a&b`, `/data`.");
    expect(sections(first())).toEqual([
      ["developer", permissions()],
      [
        "user",
        `<environment_context>
  <cwd>/repo/a&amp;b</cwd>
  <shell>bash</shell>
  <current_date>2026-11-06</current_date>
  <timezone>Europe/Berlin</timezone>
  <sandbox_mode>workspace-write</sandbox_mode>
  <network enabled="false" />
  <writable_roots>
    <root>/repo/a&amp;b</root>
    <root>/data</root>
  </writable_roots>
</environment_context>`,
      ],
    ]);
  });

  it("has one message for the developer's sections and one for the user's, in their order", () => {
    const messages = first({}, { developerInstructions: "Be kind.", docs: "Use tabs." });
    expect(sections(messages)).toEqual([
      ["developer", permissions(), "Be kind."],
      [
        "user",
        "# AGENTS.md instructions for /repo/a&b\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>",
        expect.stringMatching(/^<environment_context>/),
      ],
    ]);
  });

  it("has what the approval policy means", () => {
    expect(permissions()).toContain("\n`approval_policy` is `never`: nobody is asked.");
    expect(permissions({ approvalPolicy: "on-request" })).toContain("`approval_policy` is `on-request`: ");
  });

  it("leaves out what it is not to be told, and messages that would be empty", () => {
    const silent = { includesPermissions: false, includesEnvironment: false };
    expect(first({}, silent)).toEqual([]);
    expect(sections(first({}, { ...silent, developerInstructions: "Be kind." }))).toEqual([
      ["developer", "Be kind."],
    ]);
    expect(first({}, { ...silent, developerInstructions: " \n" })).toEqual([]);
  });

  it("lists the hosts that may be reached", () => {
    const [, user] = sections(first({ network: { kind: "allowlist", hosts: ["a.example", "*.b.example"] } }));
    expect(String(user)).toContain(
      '  <network enabled="true">\n    <allowed>a.example</allowed>\n    <allowed>*.b.example</allowed>\n  </network>',
    );
  });

  it.each([
    ["read-only", "only temporary directories can be written"],
    ["danger-full-access", "anywhere in the container"],
    ["./mine.toml", "a policy of the user's own"],
  ])("says what %s means", (sandboxMode, meaning) => {
    expect(permissions({ sandboxMode })).toContain(meaning);
    expect(permissions({ sandboxMode })).not.toContain("writable roots are");
  });

  it("speaks of no writable roots where there are none", () => {
    const messages = first({ sandboxMode: "read-only", writableRoots: [] });
    expect(String(sections(messages))).not.toContain("writable_roots");
  });
});

describe("what the model is told later", () => {
  const before = sentContext(setting, now);
  const update = (more: Partial<SessionSetting>, options: ContextOptions & { at?: string } = {}) => {
    const { at = "2026-11-05T23:40:00Z" } = options;
    return contextMessages(sentContext({ ...setting, ...more }, new Date(at)), before, options);
  };
  const environment = (...lines: string[]) => [
    "user",
    ["<environment_context>", ...lines.map((line) => `  ${line}`), "</environment_context>"].join("\n"),
  ];

  it("is nothing where nothing is different", () => {
    expect(update({})).toEqual([]);
    expect(update({ writableRoots: [...setting.writableRoots] })).toEqual([]);
  });

  it("is the date alone on another day", () => {
    expect(sections(update({}, { at: "2026-11-07T10:00:00Z" }))).toEqual([
      environment("<current_date>2026-11-07</current_date>"),
    ]);
  });

  it("is the mode with what may be done now, and the roots that are gone", () => {
    const other = { sandboxMode: "read-only", writableRoots: [] };
    expect(sections(update(other))).toEqual([
      ["developer", permissions(other)],
      environment("<sandbox_mode>read-only</sandbox_mode>", "<writable_roots />"),
    ]);
  });

  it("is who is asked, with all that may be done", () => {
    const other = { approvalPolicy: "untrusted" as const };
    expect(sections(update(other))).toEqual([["developer", permissions(other)]]);
  });

  it("is the network, in both places that speak of it", () => {
    const other = { network: { kind: "full" as const } };
    expect(sections(update(other))).toEqual([
      ["developer", permissions(other)],
      environment('<network enabled="true" />'),
    ]);
  });

  it("is the directory, and with it the roots", () => {
    const [, user] = sections(update({ cwd: "/other" }));
    expect(user).toEqual(
      environment(
        "<cwd>/other</cwd>",
        "<writable_roots>",
        "  <root>/other</root>",
        "  <root>/data</root>",
        "</writable_roots>",
      ),
    );
  });

  it("keeps to what the model is to be told at all", () => {
    const other = { sandboxMode: "read-only" };
    expect(sections(update(other, { includesEnvironment: false })).map(String)).toEqual([
      expect.stringMatching(/^developer/),
    ]);
    expect(sections(update(other, { includesPermissions: false })).map(String)).toEqual([
      expect.stringMatching(/^user/),
    ]);
  });
});
