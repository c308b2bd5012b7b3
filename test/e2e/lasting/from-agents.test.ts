import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { expect, it, onTestFinished } from "vitest";
import { program } from "../../support/cli.js";
import { createRepository } from "../../support/git-repositories.js";
import { lastingPlace } from "../../support/lasting.js";
import { callDone, messageDone, respond, startResponsesServer } from "../../support/responses-server.js";

const finding = { findings: [], overall_correctness: "patch is correct", overall_explanation: "Fine." };
const answer = JSON.stringify({ ...finding, overall_confidence_score: 1 });
/** A picture of one pixel. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** The calls in the second column of the table, in order. */
async function calls(page: string): Promise<string[]> {
  const text = await readFile(join(import.meta.dirname, "../../../docs", page), "utf8");
  const [table = ""] = /(?:^\|.*\n)+/m.exec(text) ?? [];
  const rows = table.split("\n").slice(2, -1);
  return rows.map((row) => {
    const call = /^\| .+? \| `([^`]*\bbrig[^`]+)` \|[^|]*\|$/.exec(row)?.[1];
    if (call === undefined) throw new Error(`there is no call of brig in ${row}`);
    return call.replaceAll("\\|", "|");
  });
}

it.each(["from-claude-code.md", "from-codex.md"])(
  "everything that docs/%s says is typed here works, in the order of the table",
  { timeout: 900_000 },
  async (page) => {
    const place = await lastingPlace();
    const { workspace } = place;
    const server = await startResponsesServer(({ body }) => {
      const input = JSON.stringify(body.input);
      const isToWrite = input.includes("write it down") && !input.includes("function_call_output");
      return respond(
        isToWrite ? callDone("one", "exec_command", { cmd: "echo it > it.txt" }) : messageDone(answer),
      );
    });
    onTestFinished(() => server[Symbol.asyncDispose]());
    await createRepository(workspace);
    await mkdir(join(workspace, "other"));
    await writeFile(join(workspace, "notes.txt"), "of the host\n");
    await writeFile(join(workspace, "picture.png"), Buffer.from(PICTURE, "base64"));
    const schema = { type: "object", additionalProperties: false, properties: {}, required: [] };
    await writeFile(join(workspace, "schema.json"), JSON.stringify(schema));
    const programs = join(place.home, "../programs");
    await mkdir(programs);
    for (const [name, file] of Object.entries({
      brig: program,
      "brig-codex": program.replace(/main\.js$/, "codex.js"),
    })) {
      await writeFile(join(programs, name), `#!/bin/sh\nexec '${process.execPath}' -- '${file}' "$@"\n`);
      await chmod(join(programs, name), 0o755);
    }
    await mkdir(place.home, { recursive: true });
    const config = `model = "gpt-5.6"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "${server.url}"
wire_api = "responses"
`;
    await writeFile(join(place.home, "config.toml"), config);
    const env = {
      ...{
        BRIG_HOME: place.home,
        CODEX_HOME: join(place.home, "../codex"),
        HOME: join(place.home, "../person"),
      },
      ...{ PATH: `${programs}:${process.env.PATH}`, OPENAI_API_KEY: "" },
    };
    const done = await calls(page);
    for (const call of done) {
      const ended = await execa("bash", ["-c", call], { cwd: workspace, env, input: "", reject: false });
      if (/ (?:diff|apply) /.test(call)) expect(ended.stdout + ended.stderr, call).toContain("it.txt");
      expect([ended.exitCode, ended.exitCode === 0 ? "" : ended.stderr + ended.stdout], call).toEqual([
        0,
        "",
      ]);
    }
    expect(done.length).toBeGreaterThan(20);
  },
);
