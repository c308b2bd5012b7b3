import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { readEnvironment } from "../../../../../src/lib/env.js";
import type { AwsCredentials } from "../../../../../src/sandbox/egress/secrets/aws/aws-keys.js";
import { holdAwsKeys } from "../../../../../src/sandbox/network/egress/read-egress.js";
import type { AwsKeysRule } from "../../../../../src/sandbox/policy/egress-schema.js";
import { failure } from "../../played-sandbox.js";

const ID = "AKIAIOSFODNN7EXAMPLE";
const KEY = "a-secret-access-key-0123456789";
const TOKEN = "a-session-token-0123456789";
const environment = readEnvironment({ HOME: "/home/alice", THE_ID: ID, THE_KEY: KEY, THE_TOKEN: TOKEN });
const written = { access_key_id: { env: "THE_ID" }, secret_access_key: { env: "THE_KEY" } };

afterEach(() => void vi.useRealTimers());

type Options = Omit<Parameters<typeof holdAwsKeys>[2], "environment">;

async function held(rule: Partial<AwsKeysRule>, options: Options = {}) {
  const whole = { hosts: ["*.amazonaws.com"], plain_http: false, ...rule };
  return await holdAwsKeys("AWS", whole, { environment, ...options });
}

/** A program that prints this as JSON. */
const printing = (printed: unknown) => ({ command: ["printf", "%s", JSON.stringify(printed)] });
const printed = { Version: 1, AccessKeyId: ID, SecretAccessKey: KEY };

/** A program that prints what the test has written last. */
async function changing(first: unknown) {
  const folder = await mkdtemp(join(tmpdir(), "brig-keys-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "keys");
  const print = async (next: unknown) => await writeFile(file, JSON.stringify(next));
  await print(first);
  return { rule: { command: ["cat", file] }, print };
}

describe("keys of AWS", () => {
  it("are held with placeholders, and for the hosts, regions and services of their rule", async () => {
    const rule = { ...written, regions: ["eu-central-1"], services: ["s3"], plain_http: true };
    const found = await held(rule);
    expect(found).toMatchObject({
      name: "AWS",
      hosts: ["*.amazonaws.com"],
      regions: ["eu-central-1"],
      services: ["s3"],
      plainHttp: true,
    });
    expect(found.keys.newest).toEqual({ accessKeyId: ID, secretAccessKey: KEY, sessionToken: null });
    expect(found.variables).toEqual({
      AWS_ACCESS_KEY_ID: found.placeholders.accessKeyId,
      AWS_SECRET_ACCESS_KEY: found.placeholders.secretAccessKey,
    });
    expect(JSON.stringify(found.placeholders)).not.toMatch(new RegExp(`${ID}|${KEY}`));
  });

  it("are for any region and service where the rule names none", async () => {
    expect(await held(written)).toMatchObject({ regions: null, services: null, plainHttp: false });
  });

  it("have a session token where the rule has one", async () => {
    const found = await held({ ...written, session_token: { env: "THE_TOKEN" } });
    expect(found.keys.newest.sessionToken).toBe(TOKEN);
    expect(found.placeholders.accessKeyId).toMatch(/^ASIA/);
    expect(found.variables.AWS_SESSION_TOKEN).toBe(found.placeholders.sessionToken);
  });

  it("that were written down are used for ever", async () => {
    const onRenewed = vi.fn();
    const found = await held(written, { onRenewed });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 100 * 365 * 24 * 3_600_000 });
    expect(await found.keys.valid()).toEqual(found.keys.newest);
    expect(onRenewed).not.toHaveBeenCalled();
  });

  it.each<[string, Partial<AwsKeysRule>]>([
    ["access_key_id", { secret_access_key: { env: "THE_KEY" } }],
    ["secret_access_key", { access_key_id: { env: "THE_ID" } }],
    ["session_token", written],
  ])("of which the %s cannot be read are refused, and the error says which part", async (name, rest) => {
    const outcome = failure(held({ ...rest, [name]: { env: "MISSING" } }));
    expect(await outcome).toMatchObject({
      code: "usage.invalid",
      message: `the ${name} of the keys AWS cannot be read: the variable MISSING is not set`,
    });
  });

  it.each([
    ["A".repeat(15), false],
    ["A".repeat(16), true],
    ["9".repeat(128), true],
    ["A".repeat(129), false],
    ["akiaiosfodnn7example", false],
    [`${ID}-`, false],
    [`-${ID}`, false],
  ])("with the id %s are taken: %s", async (value, isTaken) => {
    const outcome = await failure(held({ ...written, access_key_id: { value } }));
    if (isTaken) expect(outcome).toBeNull();
    else
      expect(outcome).toMatchObject({
        code: "usage.invalid",
        message: expect.stringContaining("access_key_id of the secret AWS is not an access key id"),
        hint: expect.stringContaining("16 capitals and digits"),
      });
  });
});

describe("keys that a program prints", () => {
  it("are those of a credential_process, whatever else it prints", async () => {
    const found = await held(printing({ ...printed, SessionToken: TOKEN, Other: { x: 1 } }));
    expect(found.keys.newest).toEqual({ accessKeyId: ID, secretAccessKey: KEY, sessionToken: TOKEN });
  });

  it.each([{}, { SessionToken: null, Expiration: null }])(
    "may be without what %j leaves out",
    async (more) => {
      const found = await held(printing({ ...printed, ...more }));
      expect(found.keys.newest.sessionToken).toBeNull();
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 100 * 365 * 24 * 3_600_000 });
      expect(await found.keys.valid()).toEqual(found.keys.newest);
    },
  );

  it.each<[string, unknown]>([
    ["another version", { ...printed, Version: 2 }],
    ["no version", { ...printed, Version: undefined }],
    ["no id", { ...printed, AccessKeyId: undefined }],
    ["a number as key", { ...printed, SecretAccessKey: 12345678 }],
    ["an empty token", { ...printed, SessionToken: "" }],
    ["an end that is no time", { ...printed, Expiration: "soon" }],
    ["an empty end", { ...printed, Expiration: "" }],
    ["a list", [printed]],
    ["null", null],
  ])("are refused with %s, by an error that has nothing of them", async (_, given) => {
    const error = await failure(held(printing(given)));
    expect(error).toMatchObject({
      code: "usage.invalid",
      message: "the command of the keys AWS does not print what a credential_process prints",
      hint: expect.stringContaining('"Version": 1'),
    });
    expect((error as Error).cause).toBeUndefined();
    expect(JSON.stringify(error)).not.toContain(KEY);
  });

  it.each([
    ["AccessKeyId", { AccessKeyId: "short" }],
    ["SecretAccessKey", { SecretAccessKey: "has a space" }],
    ["SessionToken", { SessionToken: "line\nbreak" }],
    ["SessionToken", { SessionToken: "x" }],
  ])("are refused where the %s cannot be sent", async (name, given) => {
    const outcome = failure(held(printing({ ...printed, ...given })));
    expect(await outcome).toMatchObject({
      code: "usage.invalid",
      message: expect.stringMatching(new RegExp(`^the ${name} of the keys AWS does not have 8 to 8192`)),
    });
  });

  it("are refused where the program fails, and the error says where it was named", async () => {
    expect(await failure(held({ command: ["/proc/none/program"] }))).toMatchObject({
      code: "usage.invalid",
      message: 'egress.aws_keys.AWS cannot be read: "/proc/none/program" has failed',
    });
  });
});

describe("keys that expire", () => {
  const hourMs = 3_600_000;
  const until = (atMs: number) => new Date(atMs).toISOString();

  it("are read again before they do, and who hides them is told", async () => {
    const start = Date.now();
    const { rule, print } = await changing({ ...printed, Expiration: until(start + hourMs) });
    const told: AwsCredentials[] = [];
    const found = await held(rule, { onRenewed: (credentials) => void told.push(credentials) });
    const next = { accessKeyId: "ASIA2222222222222222", secretAccessKey: `${KEY}-2`, sessionToken: TOKEN };
    await print({
      ...{ Version: 1, AccessKeyId: next.accessKeyId, SecretAccessKey: next.secretAccessKey },
      ...{ SessionToken: TOKEN, Expiration: until(start + 2 * hourMs) },
    });
    expect((await found.keys.valid())?.accessKeyId).toBe(ID);
    expect(told).toEqual([]);
    vi.useFakeTimers({ toFake: ["Date"], now: start + hourMs + 1 });
    expect(await found.keys.valid()).toEqual(next);
    expect(told).toEqual([next]);
    // What programs have stays the same.
    expect(found.placeholders.sessionToken).toBeNull();
    expect(found.variables).not.toHaveProperty("AWS_SESSION_TOKEN");
  });

  it("are none where those that are read again are none of AWS", async () => {
    const start = Date.now();
    const { rule, print } = await changing({ ...printed, Expiration: until(start + hourMs) });
    const onRenewed = vi.fn();
    const found = await held(rule, { onRenewed });
    await print({ ...printed, AccessKeyId: "not-an-id-of-aws", Expiration: until(start + 2 * hourMs) });
    vi.useFakeTimers({ toFake: ["Date"], now: start + hourMs + 1 });
    expect(await found.keys.valid()).toBeNull();
    expect(onRenewed).not.toHaveBeenCalled();
  });
});
