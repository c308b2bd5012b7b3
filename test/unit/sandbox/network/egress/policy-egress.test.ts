import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkPolicyEgress } from "../../../../../src/sandbox/network/egress/policy-egress.js";
import { type TemporaryDirectory, temporaryDirectory } from "../../../../support/sandbox.js";

let folder: TemporaryDirectory;
const at = (...parts: string[]) => join(folder.path, ...parts);
const environment = () => ({ brigHome: at("home"), codexHome: at("codex") });
const secrets = { KEY: { hosts: ["api.example.com"], command: ["cat", "/key"] } };

beforeAll(async () => {
  folder = await temporaryDirectory();
  for (const name of ["home", "codex", "work", "home/policies"]) mkdirSync(at(name));
  for (const name of ["home/own.toml", "home/policies/own.toml", "codex/own.toml", "work/given.toml"])
    writeFileSync(at(name), "");
  symlinkSync(at("work", "given.toml"), at("home", "link.toml"));
  symlinkSync(at("work"), at("home", "linked"));
  symlinkSync(at("home", "own.toml"), at("work", "link.toml"));
  symlinkSync(at("home"), at("linked-home"));
});

afterAll(async () => await folder[Symbol.asyncDispose]());

const check = async (file: string, egress: Parameters<typeof checkPolicyEgress>[0]["egress"]) =>
  await checkPolicyEgress({ file, egress }, { others: [], environment: environment() });

it.each(["home/own.toml", "home/policies/own.toml", "codex/own.toml"])(
  "takes secrets from %s",
  async (file) => {
    await check(at(file), { secrets });
  },
);

it.each([
  "work/given.toml",
  "home/link.toml",
  "home/linked/given.toml",
  "work/link.toml",
  "home/../work/given.toml",
  "home/missing.toml",
])("takes no secrets and no authorities from %s", async (file) => {
  await expect(check(at(file), { secrets })).rejects.toMatchObject({
    code: "policy.invalid",
    message: expect.stringContaining("has secrets in [egress]"),
  });
  await expect(check(at(file), { ca_files: ["/ca.pem"] })).rejects.toMatchObject({
    code: "policy.invalid",
    message: expect.stringContaining("has ca_files in [egress]"),
  });
});

it("takes rules, which only restrict, from anywhere", async () => {
  await check(at("work", "given.toml"), { rules: [{ host: "api.example.com", methods: ["GET"] }] });
});

it("works with a home that is a link itself", async () => {
  const linked = { brigHome: at("linked-home"), codexHome: at("codex") };
  await checkPolicyEgress(
    { file: at("linked-home", "own.toml"), egress: { secrets } },
    { others: [], environment: linked },
  );
});

it("refuses a secret that the configuration has, too, so that neither decides for the other", async () => {
  const others = [undefined, { secrets: { KEY: { hosts: ["other.example.com"], env: "KEY" } } }];
  await expect(
    checkPolicyEgress(
      { file: at("home", "own.toml"), egress: { secrets } },
      { others, environment: environment() },
    ),
  ).rejects.toMatchObject({
    code: "policy.invalid",
    message: expect.stringContaining("the secret KEY is in the policy"),
  });
});
