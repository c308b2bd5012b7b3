import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withoutOldest } from "../../../src/agent/compaction/compaction-request.js";
import { abortedTurnMessage, userMessage } from "../../../src/agent/context/prompt.js";
import {
  itemTokens,
  type MessageItem,
  messageText,
  type ResponseItem,
  textMessage,
} from "../../../src/agent/model/items.js";
import { compactedItems, handoffMessage } from "../../../src/agent/session/compacted-items.js";
import { normalised } from "../../../src/agent/turn/history.js";
import { anyHistory, callOf, outputOf, saidByAssistant, unpaired } from "../../support/histories.js";

const picture = "data:image/png;base64,AAAA";
const said = (text: string) => textMessage("user", text);
const context = [textMessage("developer", "<permissions instructions>"), said("<environment_context>\n")];

function compacted(items: readonly ResponseItem[], options: { keptTokens?: number } = {}): ResponseItem[] {
  return compactedItems(items, "All is well.", { context: [], keptTokens: 20_000, ...options });
}

function texts(items: readonly ResponseItem[]): string[] {
  return items.map((item) => (item.type === "message" ? messageText(item) : item.type));
}

describe("a compacted conversation", () => {
  it("is what the user said, and the summary", () => {
    const items = [
      ...context,
      said("fix it"),
      callOf("a"),
      outputOf("a"),
      saidByAssistant("fixed"),
      said("again"),
    ];
    expect(compacted(items)).toEqual([said("fix it"), said("again"), handoffMessage("All is well.")]);
  });

  it("hands the summary on with a word about what it is", () => {
    expect(messageText(handoffMessage("All is well."))).toMatch(
      /^This conversation grew too long.*\nAll is well\.$/,
    );
  });

  it("keeps nothing that brig said in the user's name", () => {
    const items: ResponseItem[] = [
      said("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>"),
      ...context,
      abortedTurnMessage(),
      said("<user_shell_command>\n<command>ls</command>"),
      said("Warning: apply_patch was requested via shell. Use the apply_patch tool instead of exec_command."),
      handoffMessage("What was before."),
      said("Warning: do not break it"),
    ];
    expect(compacted(items)).toEqual([said("Warning: do not break it"), handoffMessage("All is well.")]);
  });

  it("has the context right above the last of what the user said", () => {
    const items = [said("one"), said("two")];
    const kept = compactedItems(items, "S", { context, keptTokens: 20_000 });
    expect(kept).toEqual([said("one"), ...context, said("two"), handoffMessage("S")]);
    expect(compactedItems([], "S", { context, keptTokens: 20_000 })).toEqual([
      ...context,
      handoffMessage("S"),
    ]);
  });

  it("keeps the latest messages that fit, the oldest of them cut in its middle", () => {
    const long = `start ${"x".repeat(4000)} end`;
    const kept = compacted([said("forgotten"), said(long), said("last")], { keptTokens: 400 });
    expect(texts(kept)).toEqual([
      expect.stringMatching(/^start x+…\d+ tokens truncated…x+ end$/),
      "last",
      expect.stringContaining("All is well."),
    ]);
  });

  it("keeps pictures with what was said of them, but not of a message that is cut", () => {
    const small = userMessage("what is this?", [picture]);
    expect(compacted([small])[0]).toEqual(small);
    const [cut] = compacted([userMessage("y".repeat(40_000), [picture])], { keptTokens: 3000 });
    expect(JSON.stringify(cut)).not.toContain(picture);
  });

  it("never takes more for what the user said than it may, and whatever was said has no call and no output", () => {
    const budget = fc.integer({ min: 1, max: 200 });
    fc.assert(
      fc.property(anyHistory, budget, (items, keptTokens) => {
        const kept = compacted(items, { keptTokens });
        expect(unpaired(kept)).toEqual([]);
        expect(kept.every(({ type }) => type === "message")).toBe(true);
        const users = kept.slice(0, -1).filter((item): item is MessageItem => item.type === "message");
        const bytes = users.reduce((sum, item) => sum + Buffer.byteLength(messageText(item)), 0);
        // Only what says how much was cut comes on top.
        expect(bytes).toBeLessThanOrEqual(keptTokens * 4 + "…9999 tokens truncated…".length + 4);
      }),
    );
  });
});

describe("leaving out the oldest items", () => {
  it("takes the other half of a call along", () => {
    const items = [callOf("a"), callOf("b"), outputOf("a"), outputOf("b"), said("x")];
    expect(withoutOldest(items, 1)).toEqual([callOf("b"), outputOf("b"), said("x")]);
    expect(withoutOldest(items, 3)).toEqual([said("x")]);
  });

  it("never parts a call from its output, whatever the conversation, and always comes to an end", () => {
    fc.assert(
      fc.property(anyHistory, fc.integer({ min: 1, max: 6 }), (items, count) => {
        let left: ResponseItem[] = normalised(items);
        while (left.length > 0) {
          const fewer = withoutOldest(left, count);
          expect(unpaired(fewer)).toEqual([]);
          expect(fewer.length).toBeLessThanOrEqual(Math.max(0, left.length - count));
          left = fewer;
        }
      }),
    );
  });
});

describe("the estimate of an item", () => {
  it("is a quarter of its bytes", () => {
    const bytes = Buffer.byteLength(JSON.stringify(said("héllo")));
    expect(itemTokens(said("héllo"))).toBe(Math.ceil(bytes / 4));
  });

  it("counts a picture the same whatever its size, in messages and in outputs", () => {
    const huge = `data:image/png;base64,${"A".repeat(1_000_000)}`;
    expect(itemTokens(userMessage("x", [huge]))).toBe(itemTokens(userMessage("x", [picture])));
    const shown = (url: string): ResponseItem => ({
      type: "function_call_output",
      call_id: "a",
      output: [{ type: "input_image", image_url: url }],
    });
    expect(itemTokens(shown(huge))).toBe(itemTokens(shown(picture)));
    expect(itemTokens(shown(huge))).toBeGreaterThan(1000);
  });

  it("takes encrypted reasoning for the text that it hides", () => {
    const reasoning = (size: number): ResponseItem => ({
      type: "reasoning",
      summary: [],
      encrypted_content: "A".repeat(size),
    });
    expect(itemTokens(reasoning(100))).toBeLessThan(3);
    expect(itemTokens(reasoning(10_000))).toBeGreaterThan(1500);
    expect(itemTokens(reasoning(10_000))).toBeLessThan(2000);
  });
});
