import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  captured,
  truncateOutput,
  truncateParts,
  truncateText,
  truncateWithLineCount,
} from "../../../../src/sandbox/output/captured-output.js";

const anyText = fc.string({ unit: "binary", maxLength: 200 });
const anyPolicy = fc.record({
  mode: fc.constantFrom("tokens" as const, "bytes" as const),
  limit: fc.integer({ min: 0, max: 60 }),
});
const marker = /…(\d+) (tokens|chars) truncated…/;

describe("truncateText", () => {
  it("leaves a text within the budget as it is", () => {
    expect(truncateText("12345678", { mode: "tokens", limit: 2 })).toBe("12345678");
    expect(truncateText("12345678", { mode: "bytes", limit: 8 })).toBe("12345678");
  });

  it("keeps half the budget from each end and counts tokens over the budget", () => {
    expect(truncateText("abcdefghijklmnopqrst", { mode: "tokens", limit: 2 })).toBe(
      "abcd…3 tokens truncated…qrst",
    );
  });

  it("counts removed characters in byte mode", () => {
    expect(truncateText("äöüabcdefgäöü", { mode: "bytes", limit: 9 })).toBe("äö…9 chars truncated…öü");
  });

  it("gives the odd byte to the end", () => {
    expect(truncateText("abcdefgh", { mode: "bytes", limit: 5 })).toBe("ab…3 chars truncated…fgh");
  });

  it("gives only the marker for a budget of nothing, and nothing for nothing", () => {
    expect(truncateText("abc😀", { mode: "bytes", limit: 0 })).toBe("…4 chars truncated…");
    expect(truncateText("", { mode: "bytes", limit: 0 })).toBe("");
  });

  it("never splits a character, never exceeds the budget and counts exactly", () => {
    fc.assert(
      fc.property(anyText, anyPolicy, (text, policy) => {
        const bytes = Buffer.byteLength(text);
        const budget = policy.mode === "tokens" ? policy.limit * 4 : policy.limit;
        const result = truncateText(text, policy);
        if (bytes <= budget) {
          expect(result).toBe(text);
          return;
        }
        const [found, count, unit] = marker.exec(result) ?? ["", "", ""];
        const at = result.indexOf(found);
        const start = result.slice(0, at);
        const end = result.slice(at + found.length);
        expect(text.startsWith(start)).toBe(true);
        expect(text.endsWith(end)).toBe(true);
        expect(Buffer.byteLength(start)).toBeLessThanOrEqual(Math.floor(budget / 2));
        expect(Buffer.byteLength(end)).toBeLessThanOrEqual(budget - Math.floor(budget / 2));
        expect(start + end).not.toMatch(/\p{Surrogate}/u);
        expect(unit).toBe(policy.mode === "tokens" ? "tokens" : "chars");
        expect(Number(count)).toBe(
          policy.mode === "tokens"
            ? Math.ceil((bytes - budget) / 4)
            : [...text].length - [...start].length - [...end].length,
        );
      }),
    );
  });

  it("keeps as much as fits: one more character at either end would be too much", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 0, max: 60 }), (text, limit) => {
        fc.pre(Buffer.byteLength(text) > limit && !text.includes("…"));
        const [start = "", end = ""] = truncateText(text, { mode: "bytes", limit }).split(
          /…\d+ chars truncated…/,
        );
        const next = String.fromCodePoint(text.codePointAt(start.length) ?? 0);
        const before = [...text.slice(0, text.length - end.length)].at(-1) ?? "";
        expect(Buffer.byteLength(start + next)).toBeGreaterThan(Math.floor(limit / 2));
        expect(Buffer.byteLength(before + end)).toBeGreaterThan(limit - Math.floor(limit / 2));
      }),
    );
  });
});

describe("truncateOutput with a gap", () => {
  const gap = { bytes: 100, chars: 60, lineFeeds: 7 };

  it("announces the gap when all that was kept fits", () => {
    expect(truncateOutput(captured("head", gap, "tail"), { mode: "bytes", limit: 8 })).toBe(
      "head\n... 100 bytes omitted ...\ntail",
    );
  });

  it("counts the gap in what it cuts", () => {
    const output = captured("0123456789", gap, "abcdefghij");
    expect(truncateOutput(output, { mode: "bytes", limit: 6 })).toBe("012…74 chars truncated…hij");
    expect(truncateOutput(output, { mode: "tokens", limit: 1 })).toBe("01…29 tokens truncated…ij");
  });

  it("does not count a gap twice that stays announced", () => {
    const output = captured("ab", gap, "cdefghijklmnopqrstuvwxyz");
    expect(truncateOutput(output, { mode: "tokens", limit: 2 })).toBe(
      "ab\n... 100 bytes omitted ...\ncd…5 tokens truncated…wxyz",
    );
  });
});

describe("truncateWithLineCount", () => {
  it("counts the lines of the whole output, dropped ones too", () => {
    const output = captured("1\n2\n3\n", { bytes: 6, chars: 6, lineFeeds: 3 }, "7\n8\n");
    expect(truncateWithLineCount(output, { mode: "bytes", limit: 4 })).toBe(
      "Warning: truncated output (original token count: 4)\nTotal output lines: 8\n\n1\n…12 chars truncated…8\n",
    );
  });

  it("says nothing about lines when nothing was cut", () => {
    expect(truncateWithLineCount(captured("1\n2\n"), { mode: "bytes", limit: 4 })).toBe("1\n2\n");
  });

  it.each([
    ["", 0],
    ["a", 1],
    ["a\n", 1],
    ["a\nb", 2],
    ["\n\n", 2],
    ["a\rb", 1],
  ])("counts %j as %i lines", (text, lines) => {
    const cut = truncateWithLineCount(captured(text, "x".repeat(50)), { mode: "bytes", limit: 10 });
    const expected = text.endsWith("\n") || text === "" ? lines + 1 : lines;
    expect(cut).toContain(`Total output lines: ${expected}\n\n`);
  });
});

describe("a budget that is spent to the last byte", () => {
  const texts = (...all: string[]) => all.map((text) => ({ type: "input_text" as const, text }));

  it.each([
    ["bytes", 8],
    ["tokens", 2],
  ] as const)("leaves nothing for the next text, which is counted: %s", (mode, limit) => {
    expect(truncateParts(texts("12345678", "next", "last"), { mode, limit })).toEqual(
      texts("12345678", "[omitted 2 text items ...]"),
    );
  });

  it("cuts nothing that fits exactly, and of a budget of nothing all is counted", () => {
    expect(truncateParts(texts("12345678"), { mode: "bytes", limit: 8 })).toEqual(texts("12345678"));
    expect(truncateParts(texts("a", "b"), { mode: "bytes", limit: 0 })).toEqual(
      texts("[omitted 2 text items ...]"),
    );
    expect(truncateWithLineCount(captured(""), { mode: "bytes", limit: 0 })).toBe("");
    expect(truncateWithLineCount(captured("12345678"), { mode: "tokens", limit: 2 })).toBe("12345678");
    expect(truncateOutput(captured("ab"), { mode: "tokens", limit: 0 })).toBe("…1 tokens truncated…");
  });
});

describe("truncateParts", () => {
  const anyPart = fc.oneof(
    anyText.map((text) => ({ type: "input_text" as const, text })),
    fc.constant({ type: "input_image" as const, image_url: "data:image/png;base64,AAAA" }),
  );
  const isImage = ({ type }: { type: string }) => type === "input_image";

  it("keeps every picture, never exceeds the budget, and counts every text it leaves out", () => {
    fc.assert(
      fc.property(fc.array(anyPart, { maxLength: 8 }), anyPolicy, (parts, policy) => {
        const kept = truncateParts(parts, policy);
        expect(kept.filter(isImage)).toEqual(parts.filter(isImage));
        const texts = kept.flatMap((part) => (part.type === "input_text" ? [part.text] : []));
        const omitted = Number(/^\[omitted (\d+) text items \.\.\.\]$/.exec(texts.at(-1) ?? "")?.[1] ?? 0);
        if (omitted > 0) texts.pop();
        expect(texts.length + omitted).toBe(parts.length - parts.filter(isImage).length);
        const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text.replace(marker, "")), 0);
        expect(bytes).toBeLessThanOrEqual(policy.mode === "tokens" ? policy.limit * 4 : policy.limit);
        expect(texts.join("|")).not.toMatch(/\p{Surrogate}/u);
      }),
    );
  });
});

describe("truncateOutput of many pieces", () => {
  const anyGap = fc.record({
    bytes: fc.integer({ min: 1, max: 500 }),
    chars: fc.integer({ min: 1, max: 500 }),
    lineFeeds: fc.constant(0),
  });

  it("never exceeds the budget, and what is announced and what is kept add up to the whole", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(anyText, anyGap), { maxLength: 6 }), anyPolicy, (pieces, policy) => {
        fc.pre(!pieces.some((piece) => typeof piece === "string" && /[…\p{Surrogate}]|bytes/u.test(piece)));
        const result = truncateOutput(captured(...pieces), { ...policy, mode: "bytes" });
        const gapNotice = /\n\.\.\. (\d+) bytes omitted \.\.\.\n/g;
        const notices = [...result.matchAll(gapNotice)];
        const kept = result.replace(marker, "").replaceAll(gapNotice, "");
        expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(
          Math.max(policy.limit, marker.test(result) ? 0 : Buffer.byteLength(kept)),
        );
        const texts = pieces.filter((piece) => typeof piece === "string");
        const gaps = pieces.filter((piece) => typeof piece !== "string");
        const announcedChars = gaps
          .filter(({ bytes }) => notices.some(([, count]) => Number(count) === bytes))
          .reduce((sum, { chars }) => sum + chars, 0);
        const cutChars = Number(marker.exec(result)?.[1] ?? 0);
        const allChars = [...texts.join("")].length + gaps.reduce((sum, { chars }) => sum + chars, 0);
        fc.pre(new Set(gaps.map(({ bytes }) => bytes)).size === gaps.length);
        expect([...kept].length + cutChars + announcedChars).toBe(allChars);
      }),
    );
  });
});
