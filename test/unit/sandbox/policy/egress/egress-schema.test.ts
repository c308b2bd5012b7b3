import { describe, expect, it } from "vitest";
import { egressOptionSchema, egressSchema } from "../../../../../src/sandbox/policy/egress-schema.js";

const secret = { hosts: ["api.test"], env: "KEY" };

describe("the egress settings", () => {
  it("are brought into their normal form", () => {
    const { rules, secrets } = egressSchema.parse({
      rules: [{ host: "API.test:443", methods: ["GET"], path: "/a/*", query: { b: "*" } }],
      secrets: { KEY: { ...secret, headers: ["X-Key"] } },
    });
    expect(rules[0]?.host).toBe("api.test:443");
    expect(secrets.KEY).toEqual({ ...secret, headers: ["x-key"], query: [], plain_http: false });
  });

  it.each([
    [{ rule: [] }, /rule/],
    [{ rules: [{ host: "a.test", method: "GET" }] }, /method/],
    [{ rules: [{ host: "@npm" }] }, /list of hosts/],
    [{ rules: [{ host: "a.test", methods: ["get"] }] }, /capitals/],
    [{ rules: [{ host: "a.test", methods: [] }] }, /methods/],
    [{ rules: [{ host: "a.test", path: "a" }] }, /begins with/],
    [{ rules: [{ host: "a.test", path: "/a/../b" }] }, /must not have/],
    [{ rules: [{ host: "a.test", path: "/a%2f" }] }, /neither %/],
    [{ secrets: { KEY: { hosts: [], env: "KEY" } } }, /hosts/],
    [{ secrets: { KEY: { hosts: ["a.test"] } } }, /exactly one/],
    [{ secrets: { KEY: { ...secret, file: "/k" } } }, /exactly one/],
    [{ aws_keys: { AWS: { hosts: ["a.test"], env: "KEY" } } }, /env/],
    [{ aws_keys: { AWS: { hosts: ["a.test"], command: ["c"], regions: ["*"] } } }, /regions/],
    [{ aws_keys: { "A B": { hosts: ["a.test"], command: ["c"] } } }, /variable/],
    [{ canaries: { a: { form: "token" } } }, /variable, a file or both/],
    [{ canaries: { a: { file: "relative" } } }, /absolute path/],
    [{ canaries: { "a b": { variable: "A" } } }, /canaries/],
    [{ secrets: { "A B": secret } }, /variable/],
    [{ secrets: { KEY: { hosts: ["a.test"], value: "secret-secret" } } }, /value/],
  ])("refuse %j", (written, message) => {
    expect(egressSchema.safeParse(written).error?.message).toMatch(message);
  });

  it("take names, files, programs and values of one character, and none that are empty", () => {
    const takes = (schema: typeof egressSchema | typeof egressOptionSchema, written: object) =>
      schema.safeParse(written).success;
    for (const [one, none] of [
      [{ env: "K" }, { env: "" }],
      [{ file: "k" }, { file: "" }],
      [{ command: ["c"] }, { command: [] }],
    ]) {
      expect(takes(egressSchema, { secrets: { K: { hosts: ["a.test"], ...one } } })).toBe(true);
      expect(takes(egressSchema, { secrets: { K: { hosts: ["a.test"], ...none } } })).toBe(false);
      const keys = (secretKey: object | undefined) => ({
        hosts: ["a.test"],
        access_key_id: { env: "A" },
        secret_access_key: secretKey,
      });
      expect(takes(egressSchema, { aws_keys: { AWS: keys(one) } })).toBe(true);
      expect(takes(egressSchema, { aws_keys: { AWS: keys(none) } })).toBe(false);
    }
    for (const [written, isTaken] of [
      [{ headers: ["x"] }, true],
      [{ headers: [] }, false],
      [{ query: ["q"] }, true],
      [{ query: [""] }, false],
    ] as const)
      expect(takes(egressSchema, { secrets: { K: { ...secret, ...written } } })).toBe(isTaken);
    const printed = { hosts: ["a.test"], command: ["c"] };
    for (const [written, isTaken] of [
      [{ regions: ["e"] }, true],
      [{ regions: [] }, false],
      [{ services: ["s"] }, true],
      [{ services: [] }, false],
      [{ command: [] }, false],
      [{ session_token: { env: "T" } }, false],
    ] as const)
      expect(takes(egressSchema, { aws_keys: { AWS: { ...printed, ...written } } })).toBe(isTaken);
    for (const value of ["v", ""])
      expect(takes(egressOptionSchema, { secrets: { K: { hosts: ["a.test"], value } } })).toBe(value !== "");
  });

  it("take a value from callers of the library only", () => {
    const written = { secrets: { KEY: { hosts: ["a.test"], value: "secret-secret" } } };
    expect(egressOptionSchema.safeParse(written).success).toBe(true);
  });
});
