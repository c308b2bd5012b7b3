import { describe, expect, it } from "vitest";
import { defaultInstructions, userMessage } from "../../../../src/agent/context/prompt.js";
import { localDate } from "../../../../src/agent/session/setting.js";

const now = new Date("2026-11-05T23:30:00Z");

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

describe("the default instructions", () => {
  it.each([
    ["prefer rg", /with rg\b/],
    [
      "say before a group of calls what is coming",
      /before a group of related calls say in one short sentence/i,
    ],
    ["start narrow", /start narrow/i],
    ["print no files with Python", /do not write Python scripts to print large parts of files/],
    ["test from the specific to the broad", /first the most specific ones[^.]*then\s+broader ones/],
    ["group related calls", /group related calls/i],
    ["do not read again after a patch", /after an edit do not read the file again/i],
  ])("say to %s, and are short", (_, guidance) => {
    expect(defaultInstructions).toMatch(guidance);
    expect(defaultInstructions.length).toBeLessThan(2000);
  });
});

describe("localDate", () => {
  it("is the date where the user is", () => {
    expect(localDate(now, "UTC")).toBe("2026-11-05");
    expect(localDate(now, "Asia/Tokyo")).toBe("2026-11-06");
  });

  it.each([":/etc/localtime", "CET-1CEST", "Nowhere/At_all", ""])("is that of UTC for %j", (timezone) => {
    expect(localDate(now, timezone)).toBe("2026-11-05");
  });
});
