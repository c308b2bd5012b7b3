import { describe, expect, it } from "vitest";
import { callTitle } from "../../../../src/cli/display/call-text.js";

describe("the title of a call", () => {
  it("is its command, or its arguments", () => {
    expect(callTitle("shell", '{"command":["bash","-lc","ls -la"]}')).toBe("$ ls -la");
    expect(callTitle("ask", '{"of":["a"],"questions":[{"id":"x"}]}')).toBe('ask of=["a"] questions=[…]');
    expect(callTitle("read_file", '{"file_path":"/w/a","limit":3}')).toBe("read_file /w/a limit=3");
  });

  it("is the size of arguments that are nested so deeply that nobody could write them down again", () => {
    const nested = "[".repeat(100_000) + "]".repeat(100_000);
    expect(callTitle("x", `{"a":${nested}}`)).toBe("x (200006 characters)");
    expect(callTitle("x", nested)).toBe("x (200000 characters)");
  });
});
