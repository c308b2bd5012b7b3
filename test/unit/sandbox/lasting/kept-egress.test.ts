import { randomBytes } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { Inspection } from "../../../../src/sandbox/egress/inspection.js";
import {
  canKeepEgress,
  readKeptEgress,
  writeKeptEgress,
} from "../../../../src/sandbox/lasting/kept-egress.js";
import { readEgress } from "../../../../src/sandbox/network/egress/read-egress.js";
import type { EgressSettings } from "../../../../src/sandbox/policy/egress-schema.js";
import { type TemporaryDirectory, temporaryDirectory } from "../../../support/sandbox.js";

const SECRET = "sk-Xq7-only-outside-of-the-sandbox-0454";
const AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const environment = readEnvironment({ HOME: "/home/me" });
const sealKey = randomBytes(32);
const earlier = { authority: null, trust: { SSL_CERT_FILE: "/dev/shm/bundle" } };

const rules = [{ host: "example.com", methods: ["GET"] }];
const secrets = { KEY: { hosts: ["example.com"], value: SECRET } };
const canaries = { TRAP: { variable: "TRAP" } };

let directory: TemporaryDirectory;

beforeEach(async () => {
  directory = await temporaryDirectory();
});

afterEach(async () => {
  await directory[Symbol.asyncDispose]();
});

async function read(settings: EgressSettings) {
  const inspection = await readEgress([settings], environment);
  if (inspection === null) throw new Error("there is nothing to enforce");
  return inspection;
}

const file = () => join(directory.path, "egress.json");

describe("what is enforced outside of a sandbox", () => {
  it("is kept with its secrets where a key seals it, and is then the same again", async () => {
    const inspection = await read({ rules, secrets, canaries });
    writeKeptEgress(directory.path, { inspection, earlier }, sealKey);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    const written = readFileSync(file(), "latin1");
    for (const text of [SECRET, inspection.secrets[0]?.placeholder ?? "none", "example.com"])
      expect(written).not.toContain(text);
    const again = readKeptEgress(directory.path, { sealKey, environment });
    expect(again?.earlier).toEqual(earlier);
    expect(again?.inspection).toMatchObject({
      rules: inspection.rules,
      secrets: inspection.secrets,
      canaries: inspection.canaries,
    });
    expect(again?.inspection.mask?.text(`it is ${SECRET}`)).toBe(`it is ${"*".repeat(SECRET.length)}`);
  });

  it("is nothing with another key, without one, or once somebody has changed it", async () => {
    const inspection = await read({ secrets });
    writeKeptEgress(directory.path, { inspection, earlier }, sealKey);
    expect(readKeptEgress(directory.path, { sealKey: randomBytes(32), environment })).toBeNull();
    expect(readKeptEgress(directory.path, { sealKey: undefined, environment })).toBeNull();
    const { sealed } = JSON.parse(readFileSync(file(), "utf8"));
    const bytes = Buffer.from(sealed, "base64");
    for (const at of [0, 12, 28, bytes.length - 1]) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      writeFileSync(file(), JSON.stringify({ sealed: changed.toString("base64") }));
      expect(readKeptEgress(directory.path, { sealKey, environment })).toBeNull();
    }
    for (const text of ["", "{}", "null", '{"sealed":""}', '{"sealed":"AAAA"}']) {
      writeFileSync(file(), text);
      expect(readKeptEgress(directory.path, { sealKey, environment })).toBeNull();
    }
  });

  it("is kept without a key only where nothing of it is secret", async () => {
    const open = await read({ rules, canaries });
    expect(canKeepEgress(open, undefined)).toBe(true);
    writeKeptEgress(directory.path, { inspection: open, earlier }, sealKey);
    const again = readKeptEgress(directory.path, { sealKey: undefined, environment });
    expect(again?.inspection).toMatchObject({ rules: open.rules, canaries: open.canaries });
    const [id, key] = ["AKIAIOSFODNN7EXAMPLE", AWS_SECRET].map((value) => ({ value }));
    const aws = { hosts: ["*.amazonaws.com"], access_key_id: id, secret_access_key: key };
    const sentHeaders = [{ host: "example.com", headers: { authorization: SECRET } }];
    const keys = await read({ aws_keys: { AWS: aws } });
    for (const secret of [await read({ secrets }), keys, { ...open, sentHeaders }])
      expect([canKeepEgress(secret, undefined), canKeepEgress(secret, sealKey)]).toEqual([false, true]);
  });

  it("has the placeholders of keys of AWS, and the newest keys that were read", async () => {
    const source = join(directory.path, "keys");
    const printed = (count: number, expires: string) =>
      writeFileSync(
        source,
        JSON.stringify({
          ...{ Version: 1, AccessKeyId: "ASIAIOSFODNN7EXAMPLE", SecretAccessKey: `${AWS_SECRET}${count}` },
          ...{ SessionToken: `session-token-${count}`, Expiration: expires },
        }),
      );
    printed(1, "2001-01-01T00:00:00Z");
    const inspection = await read({
      aws_keys: { AWS: { hosts: ["*.amazonaws.com"], command: ["cat", source] } },
    });
    writeKeptEgress(directory.path, { inspection, earlier }, sealKey);
    const again = readKeptEgress(directory.path, { sealKey, environment });
    const [before, after] = [inspection.awsSecrets?.[0], again?.inspection.awsSecrets?.[0]];
    expect(after).toMatchObject({ placeholders: before?.placeholders, variables: before?.variables });
    expect(after?.keys.newest.secretAccessKey).toBe(`${AWS_SECRET}1`);
    // Those have expired, so that others are read from the same place.
    printed(2, "2999-01-01T00:00:00Z");
    expect((await after?.keys.valid())?.secretAccessKey).toBe(`${AWS_SECRET}2`);
    expect(again?.inspection.mask?.text("session-token-2")).toBe("*".repeat(15));
  });

  it("has the authority that programs trust", async () => {
    const inspection = await read({ rules });
    const authority = await (await Inspection.create(inspection)).authority();
    writeKeptEgress(directory.path, { inspection, earlier: { authority, trust: {} } }, sealKey);
    const again = readKeptEgress(directory.path, { sealKey, environment });
    const next = await Inspection.create(inspection, again?.earlier.authority ?? undefined);
    expect(next.certificate).toBe(authority.certificate);
    expect(await next.authority()).toEqual(authority);
  });
});
