import { describe, expect, it } from "vitest";
import { initialContext, localDate, type SessionSetting, userMessage } from "../../../src/agent/prompt.js";
import { messageText } from "../../../src/model/items.js";

const setting: SessionSetting = {
  cwd: "/repo/a&b",
  sandboxMode: "workspace-write",
  network: { kind: "none" },
  writableRoots: ["/data"],
  shell: "/bin/bash",
  timezone: "Europe/Berlin",
};
const now = new Date("2026-11-05T23:30:00Z");

function context(more: Partial<SessionSetting> = {}) {
  return initialContext({ ...setting, ...more }, now).map((message) => [message.role, messageText(message)]);
}

describe("what the model is told first", () => {
  it("is what it may do and where it is", () => {
    const [permissions, environment] = context();
    expect(permissions?.[0]).toBe("developer");
    expect(permissions?.[1]).toMatch(/^<permissions instructions>\n[\s\S]*\n<\/permissions instructions>$/);
    expect(permissions?.[1]).toContain("Network access is restricted.");
    expect(permissions?.[1]).toContain("The writable roots are `/repo/a&b`, `/data`.");
    expect(environment).toEqual([
      "user",
      `<environment_context>
  <cwd>/repo/a&amp;b</cwd>
  <shell>bash</shell>
  <current_date>2026-11-06</current_date>
  <timezone>Europe/Berlin</timezone>
  <network enabled="false" />
</environment_context>`,
    ]);
  });

  it("lists the hosts that may be reached", () => {
    const [, environment] = context({ network: { kind: "allowlist", hosts: ["a.example", "*.b.example"] } });
    expect(environment?.[1]).toContain(
      '  <network enabled="true">\n    <allowed>a.example</allowed>\n    <allowed>*.b.example</allowed>\n  </network>',
    );
  });

  it.each([
    ["read-only", "only temporary directories can be written"],
    ["danger-full-access", "anywhere in the container"],
    ["./mine.toml", "a policy of the user's own"],
  ])("says what %s means", (sandboxMode, meaning) => {
    const [permissions] = context({ sandboxMode });
    expect(permissions?.[1]).toContain(meaning);
    expect(permissions?.[1]).not.toContain("writable roots are");
  });
});

describe("the user's message", () => {
  it("has its images first, each between tags", () => {
    expect(userMessage("what is this?", ["data:image/png;base64,AA"]).content).toEqual([
      { type: "input_text", text: "<image name=[Image #1]>" },
      { type: "input_image", image_url: "data:image/png;base64,AA" },
      { type: "input_text", text: "</image>" },
      { type: "input_text", text: "what is this?" },
    ]);
  });
});

describe("localDate", () => {
  it("is the date where the user is", () => {
    expect(localDate(now, "UTC")).toBe("2026-11-05");
    expect(localDate(now, "Asia/Tokyo")).toBe("2026-11-06");
  });
});
