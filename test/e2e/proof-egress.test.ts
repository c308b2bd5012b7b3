import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { brigHere } from "../support/cli-here.js";
import { temporaryDirectory } from "../support/sandbox.js";

const SECRET = "sk-live-51d0c7e9b2a84f63";
const AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

it("the proof of a session names what brig enforced, and no value of it is anywhere", async () => {
  await using folder = await temporaryDirectory();
  const [home, work] = ["home", "work"].map((name) => join(folder.path, name)) as [string, string];
  for (const directory of [home, work]) mkdirSync(directory);
  writeFileSync(
    join(home, "config.toml"),
    `network = "allowlist:a.example,b.example"
[[egress.rules]]
host = "a.example"
methods = ["GET"]
[egress.secrets.TOKEN]
hosts = ["b.example"]
env = "REAL_TOKEN"
[egress.aws_keys.AWS]
hosts = ["s3.example"]
access_key_id = { env = "REAL_ID" }
secret_access_key = { env = "REAL_KEY" }
[egress.canaries.trap]
variable = "BACKUP_TOKEN"
`,
  );
  const script = join(folder.path, "script.json");
  const keep = `printf '%s\\n' "$TOKEN" "$AWS_SECRET_ACCESS_KEY" "$BACKUP_TOKEN" > kept`;
  writeFileSync(
    script,
    JSON.stringify({ steps: [{ calls: [{ shell_command: { command: keep } }] }, { text: "done" }] }),
  );
  const env = {
    ...{ BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", REAL_TOKEN: SECRET },
    ...{ REAL_ID: "AKIAIOSFODNN7EXAMPLE", REAL_KEY: AWS_SECRET },
  };
  const ended = await brigHere(["run", "--json", "--script", script, "go"], { cwd: work, env });
  expect(ended.exitCode, ended.stderr).toBe(0);
  const id = String(JSON.parse(ended.stdout.split("\n")[0] ?? "").thread_id);
  const proof = await brigHere(["sessions", "proof", id], { cwd: work, env });
  expect(proof.stdout.replace(/ {2,}/g, " ").split("\n")).toEqual(
    expect.arrayContaining([
      "requests ruled by brig to a.example",
      "secret outside TOKEN, for b.example",
      "keys outside AWS, which sign for s3.example",
      "canaries trap",
    ]),
  );
  const sessions = join(home, "sessions");
  const [file = ""] = readdirSync(sessions, { recursive: true, encoding: "utf8" }).filter((one) =>
    one.endsWith(".jsonl"),
  );
  const json = await brigHere(["sessions", "proof", id, "--json"], { cwd: work, env });
  const written = readFileSync(join(sessions, file), "utf8") + proof.stdout + json.stdout + ended.stdout;
  const placeholders = readFileSync(join(work, "kept"), "utf8").trimEnd().split("\n");
  expect(placeholders).toHaveLength(3);
  for (const value of [SECRET, AWS_SECRET, ...placeholders]) expect(written).not.toContain(value);
});
