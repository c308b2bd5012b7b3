import { describe, expect, it } from "vitest";
import { callTitle, changedText, endText } from "../../../../src/cli/display/call-text.js";

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

it("the end of a declined call is told to a person in words, and of any other as the model reads it", () => {
  const content = 'exec_command failed for `rm`: CreateProcess { message: "Rejected" }';
  expect(endText(content, { reason: "rejected by user" })).toBe("not run: rejected by user");
  expect(endText(content, null)).toBe(content);
});

describe("what a call has changed", () => {
  const changes = (...paths: string[]) => paths.map((path) => ({ path, change: "added" as const }));

  it("is the first paths, and how many more there are", () => {
    expect(changedText({ count: 2, changes: changes("a", "b/c") })).toBe("a, b/c");
    expect(changedText({ count: 300, changes: changes("1", "2", "3", "4", "5", "6") })).toBe(
      "1, 2, 3, 4, 5 and 295 more",
    );
  });

  it("is one line that cannot act on the terminal, whatever the names are", () => {
    const text = changedText({ count: 2, changes: changes("a\u001b[2J\nb", "c\u202ed") });
    for (const sign of ["\u001b", "\n", "\u202e"]) expect(text).not.toContain(sign);
  });
});
