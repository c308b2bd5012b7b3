import { describe, expect, it } from "vitest";
import { type ReceiptFinding, Receipts, type SessionReceipt } from "../../../src/agent/session/receipts.js";
import { receiptText } from "../../../src/command/receipt-text.js";

const finding = (path: string, obeyedBy?: string): ReceiptFinding => ({
  ...{ path, reasons: ["runs"], obeyedBy, sha256: "ab".repeat(32), isNeutralised: false },
});
const text = (given: Partial<SessionReceipt>) =>
  receiptText({ findings: [], omitted: 0, incomplete: null, ...given })
    .split("\n")
    .slice(1, -1);

describe("the text of a receipt", () => {
  it("says who obeys a file", () => {
    expect(text({ findings: [finding("/w/Makefile", "make"), finding("/w/x")] })).toEqual([
      "  /w/Makefile: can run by itself, or change what runs: make (sha256 abababababab…)",
      "  /w/x: can run by itself, or change what runs (sha256 abababababab…)",
    ]);
  });

  it("has the first of each kind, however many there are of another, and their number", () => {
    const decoys = Array.from({ length: 400 }, (_, at) => finding(`/w/${at}.pth`, "Python"));
    const lines = text({
      findings: [...decoys, finding("/w/Makefile", "make"), finding("/w/pom.xml", "Maven")],
      ...{
        omitted: 300,
        counts: [
          { name: "*.pth", count: 700 },
          { name: "repository", count: 9 },
        ],
      },
    });
    expect(lines).toHaveLength(20 + 2 + 3);
    expect(lines.slice(20)).toEqual([
      expect.stringContaining("/w/Makefile: "),
      expect.stringContaining("/w/pom.xml: "),
      "  and 680 more",
      "  in all 700 of *.pth",
      "  in all 9 of git repositories",
    ]);
  });

  it("is nothing if nothing is to be told", () => {
    expect(receiptText({ findings: [], omitted: 0, incomplete: null })).toBe("");
  });
});

describe("receipts of one session", () => {
  it("are joined with their counts", () => {
    const receipts = new Receipts();
    const counts = [{ name: "*.pth", count: 700 }];
    receipts.add({ findings: [finding("/w/a", "x")], omitted: 200, counts, incomplete: null });
    receipts.add({ findings: [finding("/w/b")], omitted: 100, counts, incomplete: null });
    expect(receipts.all).toMatchObject({ omitted: 300, counts: [{ name: "*.pth", count: 1400 }] });
  });
});
