import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { shellQuote } from "../../../src/lib/shell-quote.js";

describe("shellQuote", () => {
  it.each([
    [["bash", "-lc", "ls -la"], "bash -lc 'ls -la'"],
    [["echo", "it's"], 'echo "it\'s"'],
    [["echo", ""], "echo ''"],
    [["a/b.c:d@e+f_g-h"], "a/b.c:d@e+f_g-h"],
    [["echo", `'"$x"'`], `echo "'\\""'$x"'"'"`],
    [["sh", "-c", "tr '\\0' 'a'"], String.raw`sh -c "tr '\\0' 'a'"`],
    [["awk", "{print $1}"], "awk '{print $1}'"],
    [["sh", "-c", "ls | awk '{print $1}' # it's"], `sh -c "ls | awk '{print "'$1}'"' # it's"`],
    [["don't!"], `"don't"'!'`],
    [["a^b", "^HEAD"], "a'^b' '^HEAD'"],
  ])("writes %j as %s", (argv, line) => {
    expect(shellQuote(argv)).toBe(line);
  });

  it("is read back by a real shell as the same arguments", () => {
    const word = fc.string({ unit: fc.constantFrom(..."ab '\"$`\\!^*?~#&;|<>(){}[]=%,\n\té😀") });
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 4 }), (argv) => {
        const script = `printf '%s\\0' ${shellQuote(argv)}`;
        expect(execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" })).toBe(`${argv.join("\0")}\0`);
      }),
      { numRuns: 60 },
    );
  });
});
