import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CommandSafety } from "../../../../src/tools/command/command-safety.js";
import { repetitions, runs } from "../../../support/fuzz.js";

const riskOf = (argv: readonly string[]) => new CommandSafety(argv).risk;
const looksDangerous = (argv: readonly string[]) => riskOf(argv) === "dangerous";

describe("looks dangerous", () => {
  it.each([
    // What Codex flags.
    ["rm", "-f", "x"],
    ["rm", "-rf", "/"],
    ["sudo", "rm", "-rf", "/"],
    ["bash", "-lc", "ls && rm -rf build"],
    // What it lets by.
    ["rm", "-fr", "x"],
    ["rm", "-r", "-f", "x"],
    ["rm", "x", "-rf"],
    ["rm", "-Rfv", "x"],
    ["rm", "--force", "x"],
    ["rm", "--recursive", "--forc", "x"],
    ["/bin/rm", "-f", "x"],
    ["../rm", "-f", "x"],
    ["sudo", "-u", "root", "rm", "-f", "x"],
    ["doas", "env", "A=1", "rm", "-rf", "x"],
    ["xargs", "-0", "rm", "-f"],
    ["find", ".", "-name", "x", "-exec", "rm", "-f", "{}", "+"],
    ["timeout", "5", "rm", "-rf", "x"],
    ["setpriv", "--reuid=0", "rm", "-rf", "x"],
    ["taskset", "1", "strace", "rm", "-rf", "x"],
    ["nice", "-n", "5", "bash", "-c", "rm -rf x"],
    ["bash", "-xc", "rm -f x"],
    ["dash", "-c", "rm -f x"],
    ["bash", "-c", "rm -rf x > log 2>&1"],
    ["bash", "-c", "for f in *; do rm -rf $f; done"],
    ["bash", "-c", "if true; then (cd x; rm -f y) fi"],
    ["bash", "-c", "echo $(rm -f x)"],
    ["bash", "-c", 'echo "`rm -f x`"'],
    ["bash", "-c", "cat <(rm -f x)"],
    ["bash", "-c", "f() { rm -rf x; }; f"],
    ["bash", "-c", "X=1 r\\m -'f' x"],
    ["bash", "-c", "bash -c 'bash -c \"rm -rf x\"'"],
    ["bash", "-c", "eval 'rm -rf' x"],
    ["bash", "-c", "trap 'rm -rf build' EXIT"],
    ["bash", "-c", 'trap -- "rm -rf $DIR" EXIT INT; make'],
    ["su", "-c", "rm -rf x", "root"],
    ["bash", "-c", "command rm -rf x &"],
    ["bash", "-c", "rm -rf $HOME"],
    // No shell accepts this.
    ["bash", "-c", "if then rm -rf build"],
  ])("%j", (...argv) => {
    expect(looksDangerous(argv.flat() as string[])).toBe(true);
  });

  it.each([
    ["rm", "x"],
    ["rm", "-r", "x"],
    ["rm", "-i", "x"],
    ["rm", "--", "-f"],
    ["rm", "--verbose", "x"],
    ["echo", "rm", "-rf", "x"],
    ["bash", "-c", "echo rm -rf x"],
    ["bash", "-c", "echo 'rm -rf x'"],
    ["bash", "-c", "# rm -rf x"],
    ["git", "rm", "-f", "x"],
    ["grep", "rm -rf", "x"],
    ["bash", "rm", "-f"],
    ["sudo", "ls"],
    ["sudo"],
    ["eval"],
    ["bash", "-c", "trap - EXIT; trap -p; trap 'rm x' EXIT; trap"],
    ["bash", "-c", "trap 'echo bye' EXIT"],
    [],
  ])("does not: %j", (...argv) => {
    expect(looksDangerous(argv.flat() as string[])).toBe(false);
  });

  it("comes to an end with commands of any length and scripts of any depth", () => {
    const length = repetitions({ short: 15_000, deep: 50_000 });
    looksDangerous(["sudo", ...Array.from({ length }, () => "sudo")]);
    looksDangerous(["xargs", ...Array.from({ length }, () => "rm")]);
    looksDangerous(["bash", "-c", `${"(".repeat(5000)}rm -f x${")".repeat(5000)}`]);
    looksDangerous(["bash", "-c", "$(".repeat(5000)]);
    looksDangerous(["bash", "-c", "ls; ".repeat(length)]);
  });

  it("never fails, whatever a script is made of", () => {
    const soup = fc.array(
      fc.oneof(
        fc.constantFrom(
          "rm",
          " -f ",
          "$(",
          ")",
          "`",
          "'",
          '"',
          "<<E\n",
          "{",
          "}",
          "((",
          "))",
          ";",
          "\\",
          "case x in ",
        ),
        fc.string({ unit: "binary", maxLength: 4 }),
      ),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(soup, (pieces) => {
        expect(typeof looksDangerous(["bash", "-c", pieces.join("")])).toBe("boolean");
      }),
      { numRuns: runs({ short: 1000, deep: 50_000 }) },
    );
  });
});

describe("looking at what a model wrote to exhaust whoever looks", () => {
  const nested = (depth: number, inner: string) => `${"echo $(".repeat(depth)}${inner}${")".repeat(depth)}`;
  const evals = (depth: number, inner: string) => ["bash", "-c", `${"eval ".repeat(depth)}${inner}`];

  it("goes as deep as anybody writes, and takes what is deeper for dangerous", () => {
    expect(looksDangerous(["bash", "-c", nested(20, "rm -f x")])).toBe(true);
    expect(looksDangerous(["bash", "-c", nested(20, "ls")])).toBe(false);
    expect(looksDangerous(["bash", "-c", nested(200, "ls")])).toBe(true);
    expect(looksDangerous(evals(7, "rm -f x"))).toBe(true);
    expect(looksDangerous(evals(7, "ls"))).toBe(false);
    expect(looksDangerous(evals(8, "ls"))).toBe(true);
  });

  it.each([
    "$(",
    '"$(',
    "$((",
    "<(",
    "`",
    "(",
    "{ ",
    "if ",
    "${a:-",
    "<<E\n",
    "f() { ",
    "! ",
    "case x in a) ",
  ])("comes to an end soon: %j, over and over", (piece) => {
    for (const count of [2000, repetitions({ short: 20_000, deep: 200_000 })]) {
      expect(["safe", "dangerous", "other"]).toContain(riskOf(["bash", "-lc", piece.repeat(count)]));
    }
  });

  it("looks at a script once, however many words could begin the command that has it", () => {
    let script = "rm -rf x";
    for (let depth = 0; depth < 6; depth++) {
      const quoted = `'${script.replaceAll("'", "'\\''")}'`;
      script = `env ${"bash ".repeat(200)}-c ${quoted}`;
    }
    expect(looksDangerous(["bash", "-lc", script])).toBe(true);
    expect(looksDangerous(["bash", "-lc", script.replace("rm -rf", "ls -la")])).toBe(false);
    expect(looksDangerous(["env", ...Array.from({ length: 256 }, () => "eval"), "x ".repeat(20_000)])).toBe(
      true,
    );
  });
});
