import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readEnvironment } from "../../../../../src/lib/env.js";
import { readEgress } from "../../../../../src/sandbox/network/egress/read-egress.js";
import type { EgressSettings } from "../../../../../src/sandbox/policy/egress-schema.js";

const VALUE = "sk-a-real-one-0123456789";
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "brig-egress-"));
  writeFileSync(join(folder, "key"), `${VALUE}\n`);
  writeFileSync(join(folder, "no-pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  writeFileSync(join(folder, "empty"), "");
  execFileSync("mkfifo", [join(folder, "fifo")]);
});

afterAll(() => rmSync(folder, { recursive: true }));

const certificate = join(import.meta.dirname, "../../../../fixtures/tls/certificate.pem");
const environment = () => readEnvironment({ HOME: folder, THE_KEY: VALUE, EMPTY: "" });

type Secret = NonNullable<EgressSettings["secrets"]>[string];
type AwsKeys = NonNullable<EgressSettings["aws_keys"]>[string];

async function held(source: Omit<Secret, "hosts">, more: EgressSettings = {}) {
  const secrets = { KEY: { hosts: ["api.example"], ...source } as Secret };
  return await readEgress([{ secrets, ...more }], environment());
}

describe("a secret", () => {
  it.each<[string, () => Omit<Secret, "hosts">]>([
    ["a variable of this machine", () => ({ env: "THE_KEY" })],
    ["a file", () => ({ file: join(folder, "key") })],
    ["a file below the home directory", () => ({ file: "~/key" })],
    ["what a program prints", () => ({ command: ["cat", join(folder, "key")] })],
    ["the caller", () => ({ value: VALUE })],
  ])("comes from %s, and has a placeholder without it", async (_, source) => {
    const found = await held(source());
    expect(found?.secrets).toMatchObject([{ name: "KEY", value: VALUE, hosts: ["api.example"] }]);
    expect(found?.secrets[0]?.placeholder).toMatch(/^sk-[A-Za-z0-9]{40}$/);
  });

  it("is read although its program leaves a process behind that keeps the output open", async () => {
    const script = `sleep 600 & echo $! > '${folder}/pid'; echo ${VALUE}`;
    const found = await held({ command: ["sh", "-c", script] });
    expect(found?.secrets[0]?.value).toBe(VALUE);
    process.kill(Number(readFileSync(join(folder, "pid"), "utf8")));
  });

  it.each<[string, () => Omit<Secret, "hosts">, RegExp]>([
    ["a variable that is not set", () => ({ env: "MISSING" }), /variable MISSING is not set/],
    ["an empty variable", () => ({ env: "EMPTY" }), /variable EMPTY is not set/],
    ["a file that is not there", () => ({ file: join(folder, "none") }), /does not exist/],
    ["a FIFO that nobody writes to", () => ({ file: join(folder, "fifo") }), /not a regular file/],
    ["a file without an end", () => ({ file: "/dev/zero" }), /not a regular file/],
    ["a relative path", () => ({ file: "key" }), /not an absolute path/],
    ["an empty file", () => ({ file: join(folder, "empty") }), /8 to 8192 printable/],
    ["a program that fails", () => ({ command: ["sh", "-c", `echo ${VALUE}; exit 1`] }), /"sh" has failed/],
    ["a program that is not there", () => ({ command: ["/proc/none"] }), /has failed/],
    ["output without an end", () => ({ command: ["cat", "/dev/zero"] }), /has failed/],
    ["two sources", () => ({ env: "THE_KEY", file: join(folder, "key") }), /exactly one/],
  ])("is refused from %s, by an error that does not have it", async (_, source, message) => {
    const error = await held(source()).then(
      () => null,
      (reason: Error) => reason,
    );
    expect(error).toMatchObject({ code: "usage.invalid", message: expect.stringMatching(message) });
    expect(JSON.stringify(error, ["message", "hint", "cause", "stdout", "cmd"])).not.toContain(VALUE);
  });
});

describe("keys of AWS", () => {
  const ID = "AKIAIOSFODNN7EXAMPLE";
  const source = { hosts: ["*.amazonaws.com"] };

  async function heldKeys(keys: Partial<AwsKeys>) {
    const found = await readEgress([{ aws_keys: { AWS: { ...source, ...keys } } }], environment());
    return found?.awsSecrets?.[0];
  }

  it("come from one source each, and have placeholders of the same form without them", async () => {
    const held = await heldKeys({
      access_key_id: { value: ID },
      secret_access_key: { file: join(folder, "key") },
    });
    expect(held?.keys.newest).toEqual({ accessKeyId: ID, secretAccessKey: VALUE, sessionToken: null });
    expect(held?.variables).toEqual({
      AWS_ACCESS_KEY_ID: expect.stringMatching(/^AKIA[A-Z2-7]{16}$/),
      AWS_SECRET_ACCESS_KEY: expect.stringMatching(/^[\w-]{40}$/),
    });
    expect(JSON.stringify(held?.variables)).not.toContain(ID);
  });

  it("come from a program that prints them as a credential_process does", async () => {
    const printed = {
      Version: 1,
      AccessKeyId: ID,
      SecretAccessKey: VALUE,
      SessionToken: "the-session-token",
    };
    const held = await heldKeys({ command: ["echo", JSON.stringify(printed)] });
    expect(held?.keys.newest.sessionToken).toBe("the-session-token");
    expect(held?.variables).toEqual(
      expect.objectContaining({ AWS_ACCESS_KEY_ID: expect.stringMatching(/^ASIA/) }),
    );
    expect(Object.keys(held?.variables ?? {})).toContain("AWS_SESSION_TOKEN");
  });

  it.each<[string, Partial<AwsKeys>, RegExp]>([
    ["without an id", { secret_access_key: { env: "THE_KEY" } }, /access_key_id and secret_access_key/],
    [
      "from a program and a variable",
      { command: ["true"], access_key_id: { env: "THE_KEY" } },
      /either command/,
    ],
    ["from no source", { access_key_id: {}, secret_access_key: { env: "THE_KEY" } }, /exactly one/],
    [
      "with an id that is none",
      { access_key_id: { env: "THE_KEY" }, secret_access_key: { env: "THE_KEY" } },
      /not an access key id/,
    ],
    [
      "from a program that prints something else",
      { command: ["echo", `{"AccessKeyId": "${VALUE}"}`] },
      /credential_process/,
    ],
    ["from a program that prints no JSON", { command: ["echo", VALUE] }, /credential_process/],
  ])("are refused %s, by an error that does not have them", async (_, keys, message) => {
    const error = await heldKeys(keys).then(
      () => null,
      (reason: Error) => reason,
    );
    expect(error).toMatchObject({ code: "usage.invalid", message: expect.stringMatching(message) });
    expect(JSON.stringify(error, ["message", "hint", "cause"])).not.toContain(VALUE);
  });

  it("are refused if another secret has the same variable", async () => {
    const keys = { ...source, access_key_id: { value: ID }, secret_access_key: { env: "THE_KEY" } };
    const secrets = { AWS_ACCESS_KEY_ID: { hosts: ["a.test"], env: "THE_KEY" } };
    await expect(readEgress([{ secrets, aws_keys: { AWS: keys } }], environment())).rejects.toThrow(
      /variable, AWS_ACCESS_KEY_ID/,
    );
  });
});

describe("certificate authorities", () => {
  it("are read from files", async () => {
    const found = await held({ env: "THE_KEY" }, { ca_files: [certificate] });
    expect(found?.authorities).toEqual([readFileSync(certificate, "utf8")]);
  });

  it.each(["no-pem", "empty"])("are refused before anything starts if the file is %s", async (name) => {
    await expect(held({ env: "THE_KEY" }, { ca_files: [join(folder, name)] })).rejects.toMatchObject({
      code: "usage.invalid",
      message: expect.stringContaining("no certificates in PEM"),
    });
  });
});
