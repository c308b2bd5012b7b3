import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { stringify } from "smol-toml";
import { describe, expect, it } from "vitest";
import { isBrigError } from "../../../../src/errors.js";
import { SANDBOX_MODES } from "../../../../src/sandbox/policy/modes.js";
import { parsePolicy } from "../../../../src/sandbox/policy/parse-policy.js";
import { policyDirectory } from "../../../../src/sandbox/policy/policy-directory.js";
import { nearly, runs } from "../../../support/fuzz.js";

const good = SANDBOX_MODES.map((mode) => readFileSync(join(policyDirectory, `${mode}.toml`)));

/** What was found to be wrong once, and is tried each time. */
const found: [Buffer][] = [
  [Buffer.from('"\\u001b[2J" = 1\n')],
  [Buffer.from("[limits]\nmemoryMb = 1e400\npids = nan\n")],
  [Buffer.from("a = ".padEnd(20_000, "["))],
  [Buffer.from(`${"a.".repeat(5000)}a = 1`)],
];

describe("a policy file of nearly right bytes", () => {
  it("is refused by name, or is a policy that reads the same when it is written again", () => {
    let accepted = 0;
    fc.assert(
      fc.property(nearly(good), (bytes) => {
        try {
          const policy = parsePolicy(bytes.toString(), "policy.toml");
          accepted++;
          expect(parsePolicy(stringify(policy), "policy.toml")).toEqual(policy);
        } catch (error) {
          if (!isBrigError(error)) throw error;
          expect(error.code).toBe("policy.invalid");
          expect(error.message.length).toBeLessThan(20_000);
        }
      }),
      { numRuns: runs({ short: 300, deep: 20_000 }), examples: found },
    );
    // If nothing were right any more, the edits would be too many to reach what comes after the parser.
    expect(accepted).toBeGreaterThan(0);
  });
});
