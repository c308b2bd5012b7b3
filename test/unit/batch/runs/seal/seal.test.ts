import { generateKeyPairSync } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hashRun } from "../../../../../src/batch/runs/seal/described-run.js";
import { newKey, publicPem, readPrivateKey, readPublicKey } from "../../../../../src/batch/runs/seal/keys.js";
import { sealRun } from "../../../../../src/batch/runs/seal/seal-run.js";
import { signed } from "../../../../../src/batch/runs/seal/statement.js";
import { verifySeal } from "../../../../../src/batch/runs/seal/verify-seal.js";
import { temporaryFolder } from "../../../../support/batch-runs.js";
import { runs } from "../../../../support/fuzz.js";
import { playedRun } from "../../../../support/played-runs.js";

const now = () => new Date("2026-11-23T08:00:00Z");

/** A sealed run of two tasks, one of which has a `/` in its name, and its key. */
async function sealedRun() {
  const root = await temporaryFolder();
  const folder = join(root, "run");
  await playedRun(folder, { "org/first": 1, second: 0 });
  const key = await newKey(join(root, "key.pem"));
  const sealed = await sealRun(folder, { key, now });
  const check = async (given = folder) => await verifySeal(given, { key: key.publicKey });
  /** Replaces the payload of the seal by what the signer of another key says. */
  const forge = async (change: (text: string) => string, other = key) => {
    const file = join(folder, "seal.json");
    const { payload } = JSON.parse(await readFile(file, "utf8"));
    const text = change(Buffer.from(payload, "base64").toString("utf8"));
    await writeFile(file, JSON.stringify(signed(text, other.privateKey, other.publicKey)));
  };
  return { root, folder, key, sealed, check, forge };
}

const fieldsOf = (differences: readonly { field: string }[]) => differences.map(({ field }) => field);

describe("a sealed run", () => {
  it("is as it was signed, also elsewhere and after it was looked at", async () => {
    const { root, folder, check, sealed } = await sealedRun();
    expect(sealed).toMatchObject({ attempts: 2, files: 6 });
    await cp(folder, join(root, "copy"), { recursive: true });
    await mkdir(join(root, "copy/superseded/1"), { recursive: true });
    expect(await check(join(root, "copy"))).toMatchObject({ signedBy: sealed.keyId, differences: [] });
  });

  it("names each file in which a byte was changed, wherever it is", async () => {
    const { folder, check } = await sealedRun();
    const { files } = await hashRun(folder);
    const positions = fc.record({
      file: fc.constantFrom(...files),
      share: fc.double({ min: 0, max: 0.999, noNaN: true }),
      bit: fc.integer({ min: 0, max: 7 }),
    });
    await fc.assert(
      fc.asyncProperty(positions, async ({ file, share, bit }) => {
        const path = join(folder, file.name);
        const bytes = await readFile(path);
        const at = Math.floor(share * bytes.length);
        await writeFile(path, bytes.with(at, (bytes[at] ?? 0) ^ (1 << bit)));
        const { differences } = await check();
        await writeFile(path, bytes);
        expect(fieldsOf(differences)).toContain(`files.${file.name}`);
      }),
      { numRuns: runs({ short: 12, deep: 400 }) },
    );
    expect((await check()).differences).toEqual([]);
  });

  it("says field by field what a changed file says otherwise", async () => {
    const { folder, check } = await sealedRun();
    const file = join(folder, "results.jsonl");
    const text = await readFile(file, "utf8");
    await writeFile(file, text.replace('"reward":0,', '"reward":1,'));
    const { differences } = await check();
    expect(differences).toContainEqual({ field: "attempts.second#1.reward", sealed: "0", found: "1" });
    expect(fieldsOf(differences)).toContain("attempts.second#1");
  });

  it("names files that are missing, added, or replaced by something else", async () => {
    const { root, folder, check } = await sealedRun();
    await writeFile(join(root, "secret"), "secret");
    await rm(join(folder, "batch.json"));
    await writeFile(join(folder, "attempts/second/1/more"), "more");
    await rm(join(folder, "attempts/second/1/agent"), { recursive: true });
    await symlink(root, join(folder, "attempts/second/1/agent"));
    await truncate(join(folder, "attempts/org__first/1/agent/output.txt"), 2 ** 24);
    const { differences, signedBy } = await check();
    expect(signedBy).not.toBeNull();
    expect(differences).toEqual(
      expect.arrayContaining([
        { field: "files.batch.json", sealed: expect.any(String), found: null },
        { field: "files.attempts/second/1/more", sealed: null, found: expect.any(String) },
        { field: "files.attempts/second/1/agent", sealed: null, found: "not a file that can be read" },
        {
          field: "files.attempts/org__first/1/agent/output.txt",
          sealed: expect.stringContaining(", 7 bytes"),
          found: expect.stringContaining(`, ${2 ** 24} bytes`),
        },
        { field: "settings.agent.name", sealed: '"nop"', found: null },
      ]),
    );
  });
});

describe("a forged seal", () => {
  const otherKey = () => generateKeyPairSync("ed25519");

  it("is not signed by the key that was asked for", async () => {
    const { folder, key, forge, check } = await sealedRun();
    const other = otherKey();
    const pem = JSON.stringify(publicPem(key.publicKey)).slice(1, -1);
    await forge((text) => text.replace(pem, JSON.stringify(publicPem(other.publicKey)).slice(1, -1)), other);
    expect((await check()).signedBy).toBeNull();
    // Without a key to ask for, it is the seal of whoever made it.
    expect((await verifySeal(folder, { key: null })).signedBy).not.toBeNull();
  });

  it("is not signed by the key that it names", async () => {
    const { folder, forge } = await sealedRun();
    await forge((text) => text, otherKey());
    expect((await verifySeal(folder, { key: null })).signedBy).toBeNull();
  });

  it("is not signed any more if its statement was changed", async () => {
    const { folder, check } = await sealedRun();
    const file = join(folder, "seal.json");
    const envelope = JSON.parse(await readFile(file, "utf8"));
    const text = Buffer.from(envelope.payload, "base64").toString("utf8").replace('"reward":0', '"reward":1');
    const payload = Buffer.from(text).toString("base64");
    await writeFile(file, JSON.stringify({ ...envelope, payload }));
    expect((await check()).signedBy).toBeNull();
  });

  it("opens no file that only its names lead to", async () => {
    const { root, forge, check } = await sealedRun();
    await writeFile(join(root, "outside"), "outside");
    await forge((text) => text.replaceAll("attempts/second/1/result.json", "../outside"));
    const { differences } = await check();
    expect(differences).toContainEqual({
      field: "files.../outside",
      sealed: expect.any(String),
      found: null,
    });
    expect(fieldsOf(differences)).toContain("files.attempts/second/1/result.json");
  });

  it.each([
    ["no JSON", "seal"],
    ["no envelope", "{}"],
    ["no statement", JSON.stringify({ ...envelope("{}") })],
    [
      "a statement of something else",
      JSON.stringify(envelope('{"_type":"https://in-toto.io/Statement/v1"}')),
    ],
    ["nested without end", JSON.stringify(envelope("[".repeat(100_000)))],
  ])("is refused if it is %s", async (_, text) => {
    const { folder, check } = await sealedRun();
    await writeFile(join(folder, "seal.json"), text);
    await expect(check()).rejects.toMatchObject({ code: "usage.invalid" });
  });
});

function envelope(payload: string) {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return signed(payload, privateKey, publicKey);
}

describe("a run is not sealed", () => {
  it("with links in its folder", async () => {
    const { root, folder, key } = await sealedRun();
    await symlink(join(root, "key.pem"), join(folder, "attempts/second/1/link"));
    await expect(sealRun(folder, { key, now })).rejects.toThrow("attempts/second/1/link");
  });

  it("if its files contradict each other", async () => {
    const { folder, key } = await sealedRun();
    await rm(join(folder, "attempts/second/1/result.json"));
    await expect(sealRun(folder, { key, now })).rejects.toThrow("second#1");
  });
});

describe("a key", () => {
  it("can be read by its owner only, and is never replaced", async () => {
    const { root } = await sealedRun();
    expect((await stat(join(root, "key.pem"))).mode & 0o777).toBe(0o600);
    await expect(newKey(join(root, "key.pem"))).rejects.toMatchObject({ code: "usage.invalid" });
    expect((await readdir(root)).toSorted()).toEqual(["key.pem", "key.pem.pub", "run"]);
    const publicKey = publicPem(await readPublicKey(join(root, "key.pem.pub")));
    expect(publicPem((await readPrivateKey(join(root, "key.pem"))).publicKey)).toBe(publicKey);
  });

  it("of another kind is refused", async () => {
    const { root } = await sealedRun();
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    await writeFile(join(root, "ec.pub"), publicPem(publicKey));
    await writeFile(join(root, "ec.pem"), privateKey.export({ type: "pkcs8", format: "pem" }));
    await expect(readPublicKey(join(root, "ec.pub"))).rejects.toMatchObject({ code: "usage.invalid" });
    await expect(readPrivateKey(join(root, "ec.pem"))).rejects.toMatchObject({ code: "usage.invalid" });
    await expect(readPrivateKey(join(root, "key.pem.pub"))).rejects.toMatchObject({ code: "usage.invalid" });
  });
});
