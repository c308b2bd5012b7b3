import { describe, expect, it } from "vitest";
import { readFileStart, readTextFile } from "../../../src/lib/bounded-file.js";

// It says that it is empty, and is far longer than that.
const file = "/proc/self/maps";

describe("a file that does not tell its length", () => {
  it("is read as far as was asked", async () => {
    const start = await readFileStart(file, 100);
    expect(start).toMatchObject({ kind: "read", isLonger: true });
    expect(start.kind === "read" && start.bytes).toHaveLength(100);
  });

  it("is not taken for a text that ends there", async () => {
    expect(await readTextFile(file, 100)).toEqual({ kind: "unreadable", reason: "is longer than 100 B" });
    expect(await readTextFile(file, 10_000_000)).toMatchObject({ kind: "text" });
  });
});
