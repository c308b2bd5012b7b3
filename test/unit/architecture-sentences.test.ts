import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { sentenceReadings } from "../support/sentence-readings.js";

const source = fileURLToPath(new URL("../../src", import.meta.url));

const files = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((path) => /\.tsx?$/.test(path))
  .map((path) => ({ path, code: readFileSync(join(source, path), "utf8") }));

/** Where a text is read all the same: somebody else wrote it, and has no field for what it says. A new place needs a line here. */
const allowed: Record<string, { why: string; readings: readonly string[] }> = {
  "cli/commands/run.ts": {
    why: "the model's last message",
    readings: ['message.endsWith("\\n")'],
  },
  "cli/review/findings.ts": {
    why: "the model's last message",
    readings: ['message.indexOf("{")', 'message.lastIndexOf("}")'],
  },
  "sandbox/open-sandbox.ts": {
    why: "what the engine says of graphics processors, for which it has no code",
    readings: ["/could not select device driver|unresolvable CDI devices|nvidia/i.test(error.message)"],
  },
  "cli/usage/usage-error.ts": {
    why: "the parser of arguments names an unknown option or command only in its text",
    readings: ["/'([^']*)'/.exec(message)"],
  },
  "agent/config/toml-document.ts": {
    why: "what the parser of TOML says",
    readings: ['cause.message.replace(/^Invalid TOML document: /, "").split("\\n")'],
  },
  "agent/mcp/client/failures.ts": {
    why: "errors of the MCP SDK and of Node, whose texts often repeat those of their causes",
    readings: ["text.includes(shown)"],
  },
  "agent/model/endpoint/backoff.ts": {
    why: "what an endpoint says of the time to wait",
    readings: ["/try again in\\s*(\\d+(?:\\.\\d+)?)\\s*(ms|s|seconds?)\\b/i.exec(message)"],
  },
  "agent/model/endpoint/connection.ts": {
    why: "what an endpoint says of a field that it does not take",
    readings: [`new RegExp(\`(?<!\\\\w)\${name.replace(".", "\\\\.")}(?!\\\\w)\`).test(message)`],
  },
  "agent/model/endpoint/model-failure.ts": {
    why: "what an endpoint says of a conversation that is too long",
    readings: ["tooLong.test(message)", "tooLong.test(message)"],
  },
  "agent/model/login/issuer/login-failure.ts": {
    why: "what Node's fetch says, which has one class of errors for everything",
    readings: ['one.message === "fetch failed"'],
  },
  "sandbox/policy/parse-policy.ts": {
    why: "what the parser of TOML says",
    readings: ['cause.message.replace(/^Invalid TOML document: /, "").split("\\n")'],
  },
  "sandbox/proof/right-kernel.ts": {
    why: "what the runtime says, which the engine hands on without a code",
    readings: [`error.message.includes(\`failed to load \${TOOLBOX_PATH}/runner: permission denied\`)`],
  },
  "batch/tasks/plain.ts": {
    why: "what the parsers of YAML and of CSV say",
    readings: ["message.split(/ at line |\\n/)"],
  },
  "batch/tasks/parse-text.ts": {
    why: "what the parsers of TOML and of YAML say",
    readings: [
      'error.message.replace(/^Invalid TOML document: /, "").split("\\n")',
      "error.message.split(/ at line |\\n/)",
    ],
  },
  "tools/repl/js-repl.ts": {
    why: "the reason of an abort, an object and no text",
    readings: ["error === deadline.reason"],
  },
};

describe("a sentence is read by people and models only", () => {
  it("nothing in src tests, searches or compares one of brig's own", () => {
    const found = files
      .map(({ path, code }) => ({ path, readings: sentenceReadings(path, code) }))
      .filter(({ readings }) => readings.length > 0);
    expect(Object.fromEntries(found.map(({ path, readings }) => [path, readings]))).toEqual(
      Object.fromEntries(Object.entries(allowed).map(([path, { readings }]) => [path, readings])),
    );
  });

  it("the number that models know an errno by is written in one place, and read in none", () => {
    const writers = files.filter(({ code }) => withoutComments(code).includes("os error"));
    expect(writers.map(({ path }) => path)).toEqual(["tools/os-error.ts"]);
  });
});

describe("the check sees", () => {
  it.each([
    // Each has been in src.
    "const number = /^Failed to [^\\n]*\\(os error (\\d+)\\)$/.exec(\n  outcome.reason,\n)?.[1];",
    "const name = (reason: string) => /: (E[A-Z0-9]+)$/.exec(reason)?.[1];",
    'const name = (reason: string) => (reason.endsWith("permission denied") ? "EACCES" : undefined);',
    "const reason = failureText(path, error);\nif (reason === MISSING) forget();",
    "if (error.cause instanceof Error && error.cause.message === errno) forget();",
    `if (startFailure.startsWith(\`\${program}: \`)) forget();`,
    // Under another name.
    'const why = error.message;\nif (why.includes("gone")) forget();',
    'const tell = ({ message: why = "" }) => /gone/.test(why);',
    'const tell = ({ cause }) => (cause?.message ?? "").trim().match(/gone/);',
    'switch (error.message) { case "gone": forget(); }',
    "if (known.has(outcome.reason)) forget();",
    'if ("EACCES" === error!.message) forget();',
  ])("a sentence that is read: %j", (code) => {
    expect(sentenceReadings("example.ts", code)).toHaveLength(1);
  });

  it.each([
    'if (error.reason === "oom" || error.errno === "EROFS") forget();',
    'if (reason !== null && refusal !== undefined && error.message !== "") forget();',
    `const text = \`it failed: \${error.message.trim()}\`;`,
    'if (typeof reply.message === "string") forget();',
    "const failures = problems.map(({ message }) => message);",
    'if (error.code.startsWith("file.")) forget();',
    'const line = output.split("\\n").find((one) => words.test(one));',
  ])("nothing wrong with %j", (code) => {
    expect(sentenceReadings("example.ts", code)).toEqual([]);
  });

  it("the files it is about", () => {
    expect(files.length).toBeGreaterThan(300);
  });
});

function withoutComments(code: string): string {
  return code.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, "");
}
