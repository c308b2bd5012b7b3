import { delimiter, dirname } from "node:path";
import { anthropicWire, geminiWire, type ModelWire } from "./agent-model.js";
import { type TestProgram, testProgram } from "./test-program.js";

/** An agent's real program, and how the tests use it. */
export interface RealAgent {
  name: string;
  program: TestProgram;
  wire: ModelWire;
  /** Its tool for commands of a shell. */
  shellTool: string;
  keyVariable: string;
  /** The header in which it sends its key. */
  keyHeader: string;
  /** Its own configuration, as files of the home directory, for a model at this address. */
  files(url: string): Readonly<Record<string, string>>;
  /** The variables of the person, without the key. */
  variables(url: string): Readonly<Record<string, string>>;
  /** What it does without a terminal, and without asking. */
  run(prompt: string): readonly string[];
  /** The same, in the last conversation. */
  goOn(prompt: string): readonly string[];
  /** What it tries to reach and does without. */
  refused: readonly string[];
}

const geminiModel = ["-m", "gemini-2.5-flash"];
const opencodeModel = ["-m", "anthropic/claude-sonnet-4-5"];

export const realAgents: readonly RealAgent[] = [
  {
    name: "gemini",
    program: await testProgram("gemini-cli"),
    wire: geminiWire,
    shellTool: "run_shell_command",
    keyVariable: "GEMINI_API_KEY",
    keyHeader: "x-goog-api-key",
    // Where a variable names the address, it wants to be told that it has a key.
    files: () => ({
      ".gemini/settings.json": JSON.stringify({
        security: { auth: { selectedType: "gemini-api-key" } },
        tools: { sandbox: "docker" },
      }),
    }),
    variables: (url) => ({ GOOGLE_GEMINI_BASE_URL: url }),
    run: (prompt) => ["--yolo", "--skip-trust", ...geminiModel, "-p", prompt],
    goOn: (prompt) => ["--yolo", "--skip-trust", ...geminiModel, "--resume", "latest", "-p", prompt],
    refused: ["play.googleapis.com:443"],
  },
  {
    name: "claude",
    program: await testProgram("claude-code"),
    wire: anthropicWire,
    shellTool: "Bash",
    keyVariable: "ANTHROPIC_API_KEY",
    keyHeader: "x-api-key",
    files: (url) => ({
      ".claude/settings.json": JSON.stringify({
        env: { ANTHROPIC_BASE_URL: url },
        sandbox: { enabled: true },
      }),
    }),
    variables: () => ({}),
    run: (prompt) => ["--dangerously-skip-permissions", "-p", prompt],
    goOn: (prompt) => ["--dangerously-skip-permissions", "--continue", "-p", prompt],
    refused: [],
  },
  {
    name: "opencode",
    program: await testProgram("opencode"),
    wire: anthropicWire,
    shellTool: "bash",
    keyVariable: "ANTHROPIC_API_KEY",
    keyHeader: "x-api-key",
    files: (url) => ({
      ".config/opencode/opencode.jsonc": `{
        // The address of a gateway.
        "provider": { "anthropic": { "options": { "baseURL": "${url}/v1" } } },
      }`,
    }),
    variables: () => ({}),
    run: (prompt) => ["run", ...opencodeModel, prompt],
    goOn: (prompt) => ["run", "--continue", ...opencodeModel, prompt],
    refused: ["registry.npmjs.org:443"],
  },
];

/** `PATH` with the agent's program in front. */
export function searchPathWith({ program }: RealAgent): string {
  return [dirname(program.path), process.env.PATH].join(delimiter);
}
