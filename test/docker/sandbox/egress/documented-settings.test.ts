import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, vi } from "vitest";
import { loadConfig } from "../../../../src/agent/config/settings/load-config.js";
import type { EgressSettings } from "../../../../src/sandbox/policy/egress-schema.js";
import { openTestSandbox, temporaryDirectory } from "../../../support/sandbox.js";

/** What has an example of settings for the network. */
const pages = ["request-rules", "secrets", "aws-keys", "setup", "canaries"];
const examples = pages.flatMap((name) => {
  const file = fileURLToPath(new URL(`../../../../docs/${name}.md`, import.meta.url));
  return [...readFileSync(file, "utf8").matchAll(/^```toml\n([\s\S]*?)^```/gm)].map(
    ([, block = ""]) => block,
  );
});

const keys = { Version: 1, AccessKeyId: "AKIAREALREALREALREAL", SecretAccessKey: "the-real-key-of-nobody" };
/** The programs that examples read secrets from, as they are called there. */
const programs = {
  gh: '[ "$*" = "auth token" ] && echo ghp_the_real_token_of_nobody',
  aws: `[ "$*" = "configure export-credentials" ] && echo '${JSON.stringify(keys)}'`,
};

/** What each example gives to commands, by the table that it is about. */
const variables = {
  "[[egress.rules]]": [],
  "egress.secrets.": ["GITHUB_TOKEN"],
  "egress.aws_keys.": ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
  "[setup]": [],
  "egress.canaries.": ["BACKUP_ACCESS_KEY_ID", "BACKUP_SECRET_ACCESS_KEY", "DEPLOY_TOKEN"],
};

it.each(Object.entries(variables))(
  "the example with %s in the pages about the network is in force in a sandbox",
  async (table, names) => {
    const blocks = examples.filter((block) => block.includes(table));
    expect(blocks).toHaveLength(1);
    await using folder = await temporaryDirectory();
    const [home, bin] = [join(folder.path, "home"), join(folder.path, "bin")];
    for (const directory of [home, bin]) mkdirSync(directory);
    for (const [name, script] of Object.entries(programs)) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
      chmodSync(join(bin, name), 0o755);
    }
    vi.stubEnv("PATH", `${bin}:${process.env.PATH}`);
    writeFileSync(join(home, "config.toml"), blocks.join());
    const { config, warnings } = await loadConfig({ brigHome: home, codexHome: home });
    expect(warnings).toEqual([]);
    await using opened = await openTestSandbox({
      network: config.network,
      egress: config.egress as EgressSettings,
    });
    const { stdout } = await opened.sandbox.exec(["env"]);
    for (const name of names) expect(stdout).toMatch(new RegExp(`^${name}=\\S{16,}$`, "m"));
    expect(stdout).not.toMatch(/the.real|REALREAL/);
  },
);

it("every example of those pages is tried here", () => {
  expect(examples).toHaveLength(Object.keys(variables).length);
});
