import { describe, expect, it } from "vitest";
import { parseReceipt } from "../../../../src/sandbox/receipt/end-commands.js";
import { obeyedNames } from "../../../../src/sandbox/receipt/obeyed-names.js";
import { findingRecord, receiptResult } from "./receipt-records.js";

const roots = ["/repo", "/other"];
const parse = (records: readonly Buffer[], result = receiptResult()) =>
  parseReceipt(Buffer.concat(records), result, roots);
const invalid = expect.objectContaining({ code: "protocol.invalid" });

describe("a receipt", () => {
  it("has each finding with its state", () => {
    const records = [
      findingRecord("/repo/ü", {
        reasons: 1 | 2 | 64 | 128,
        mode: 0o104755,
        uid: 7,
        size: 8n,
        sha256: "ab".repeat(32),
      }),
      findingRecord("/other/x", { reasons: 4, sha256: "cd".repeat(32) }),
    ];
    expect(parse(records)).toEqual({
      findings: [
        {
          ...{ path: "/repo/ü", reasons: ["runs", "setuid"], mode: 0o4755, uid: 7, sizeBytes: 8 },
          ...{ sha256: "ab".repeat(32), isNeutralised: true },
        },
        {
          path: "/other/x",
          reasons: ["device"],
          mode: 0,
          uid: 0,
          sizeBytes: 0,
          sha256: null,
          isNeutralised: false,
        },
      ],
      ...{ omitted: 0, incomplete: null },
    });
    expect(parse([])).toEqual({ findings: [], omitted: 0, incomplete: null });
  });

  it("says who obeys a finding, and how many there are where some are left out", () => {
    const counts = [
      [0, 3],
      [1, 4],
      [3, 700],
      [obeyedNames.length + 2, 5],
    ] as const;
    const receipt = parse([findingRecord("/repo/a", { rule: 2 })], receiptResult({ omitted: 9, counts }));
    expect(receipt.findings[0]?.obeyedBy).toBe(obeyedNames[1]?.[1]);
    expect(receipt.counts).toEqual([
      { name: "setuid", count: 3 },
      { name: "repository", count: 4 },
      { name: obeyedNames[1]?.[0], count: 700 },
      { name: "owner", count: 5 },
    ]);
    const unknown = receiptResult({ counts: [[obeyedNames.length + 3, 1]] });
    expect(() => parse([], unknown)).toThrow(invalid);
  });

  it.each([
    [1, ["runs"]],
    [2, ["setuid"]],
    [4, ["device"]],
    [8, ["capabilities"]],
    [16, ["owner"]],
    [32, ["repository"]],
    [63, ["runs", "setuid", "device", "capabilities", "owner", "repository"]],
    [192, []],
  ])("names the reasons in %d", (reasons, expected) => {
    expect(parse([findingRecord("/repo/a", { reasons })]).findings[0]?.reasons).toEqual(expected);
  });

  it.each([
    [0, null],
    [1, "time"],
    [2, "closed"],
    [3, "failed"],
  ])("that ended with %d is incomplete because of %s", (end, incomplete) => {
    expect(parse([], receiptResult({ end, omitted: 9 }))).toEqual({ findings: [], omitted: 9, incomplete });
  });

  it.each([
    ["an unknown end", receiptResult({ end: 4 })],
    ["no end", Buffer.alloc(0)],
    ["a shorter end", receiptResult().subarray(1)],
    ["a longer end", Buffer.concat([receiptResult(), Buffer.alloc(1)])],
  ])("with %s is refused", (_name, result) => {
    expect(() => parse([], result)).toThrow(invalid);
  });

  it.each(["/repo", "/repox/a", "/elsewhere", "repo/a", ""])("is refused if it names %j", (path) => {
    expect(() => parse([findingRecord(path)])).toThrow(invalid);
  });

  it("is refused wherever it is cut off", () => {
    const whole = Buffer.concat([findingRecord("/repo/a"), findingRecord("/repo/b")]);
    for (let length = 1; length < whole.length; length++) {
      const cut = () => parse([whole.subarray(0, length)]).findings.length;
      if (length === whole.length / 2) expect(cut()).toBe(1);
      else expect(cut).toThrow(invalid);
    }
  });

  it("has at most 500 findings", () => {
    const many = Array.from({ length: 500 }, () => findingRecord("/repo/a"));
    expect(parse(many).findings).toHaveLength(500);
    expect(() => parse([...many, findingRecord("/repo/a")])).toThrow(invalid);
  });
});
