import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageRoot } from "../../src/package-root.js";
import { AcpClient } from "../support/acp-client.js";
import { brig } from "../support/cli.js";
import { freePort } from "../support/free-port.js";
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from "../support/otlp-receiver.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

const SECRET = "sk-live-7f3a9c0d51e64b2288a1";
const PROMPT = "look into the file with the key";
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const OUTSIDE = "b7ad6b7169203331";

const configuration = `network = "allowlist:api.example.com:443"
[egress.secrets.API_KEY]
hosts = ["api.example.com"]
env = "REAL_KEY"
`;

const shell = (script: string) => ({ calls: [{ shell: { command: ["bash", "-c", script] } }] });

const steps = [
  shell("cat found.env; curl -s http://denied.example/; exit 3"),
  { calls: [{ read_file: { file_path: "/nowhere" } }] },
  { text: "the key is in found.env" },
];

let folder: TemporaryDirectory;

/** As a process: what is registered for a whole process is not shared by the modules of one that runs here. */
async function run(env: Record<string, string>, given: string[] = []) {
  const home = join(folder.path, "home");
  return await brig(["run", ...given, "--script", join(folder.path, "script.json"), PROMPT], {
    cwd: join(folder.path, "work"),
    env: { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", REAL_KEY: SECRET, ...env },
  });
}

beforeAll(async () => {
  folder = await temporaryDirectory();
  for (const name of ["home", "work"]) mkdirSync(join(folder.path, name));
  writeFileSync(join(folder.path, "home", "config.toml"), configuration);
  writeFileSync(join(folder.path, "work", "found.env"), `KEY=${SECRET}\n`);
  writeFileSync(join(folder.path, "script.json"), JSON.stringify({ steps }));
});

afterAll(async () => await folder[Symbol.asyncDispose]());

function named(spans: readonly ReceivedSpan[], name: string): ReceivedSpan[] {
  return spans.filter((span) => span.name === name);
}

describe("a run with a collector", () => {
  let receiver: OtlpReceiver;
  let spans: ReceivedSpan[];

  beforeAll(async () => {
    receiver = await startOtlpReceiver();
    const { exitCode, stderr } = await run({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_HEADERS: "x-key=one%20two,x-other=3",
      OTEL_RESOURCE_ATTRIBUTES: "team=search",
      TRACEPARENT: `00-${TRACE}-${OUTSIDE}-01`,
    });
    expect(exitCode, stderr).toBe(0);
    expect(stderr).not.toContain("telemetry");
    spans = receiver.spans();
  }, 120_000);

  afterAll(async () => await receiver[Symbol.asyncDispose]());

  it("sends a tree of spans, below that of whoever started it", () => {
    const [turn] = named(spans, "invoke_agent brig");
    expect(turn).toMatchObject({ traceId: TRACE, parentSpanId: OUTSIDE });
    const [call] = named(spans, "execute_tool shell");
    const parents = Object.fromEntries(spans.map(({ name, parentSpanId }) => [name, parentSpanId]));
    expect(parents).toEqual({
      "invoke_agent brig": OUTSIDE,
      create_sandbox: turn?.spanId,
      "chat scripted": turn?.spanId,
      "execute_tool shell": turn?.spanId,
      "command bash": call?.spanId,
      egress: call?.spanId,
      "execute_tool read_file": turn?.spanId,
    });
    expect(named(spans, "chat scripted")).toHaveLength(steps.length);
    for (const { startTimeUnixNano, endTimeUnixNano } of spans)
      expect(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano)).toBe(true);
  });

  it("says what happened by the names of the conventions", () => {
    const facts = (name: string) => named(spans, name)[0]?.attributes;
    expect(facts("invoke_agent brig")).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.provider.name": "scripted",
      "gen_ai.conversation.id": expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(
      named(spans, "chat scripted").map(({ attributes }) => attributes["gen_ai.response.finish_reasons"]),
    ).toEqual([["tool_call"], ["tool_call"], ["stop"]]);
    expect(facts("execute_tool shell")).toMatchObject({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "shell",
      "gen_ai.tool.type": "function",
      "gen_ai.tool.call.id": expect.any(String),
    });
    expect(facts("command bash")).toMatchObject({
      "process.exit.code": 3,
      "error.type": "network-rule",
      "brig.command.causes": ["network-rule"],
      "brig.command.memory.peak": expect.any(Number),
    });
    expect(facts("egress")).toMatchObject({
      "server.address": "denied.example",
      "server.port": 80,
      "brig.egress.decision": "denied",
      "error.type": "no-rule",
    });
    expect(named(spans, "execute_tool read_file")[0]).toMatchObject({
      status: { code: 2 },
      attributes: { "error.type": "tool_failed" },
    });
    expect(receiver.resource()).toMatchObject({ "service.name": "brig", team: "search" });
    for (const { headers } of receiver.requests)
      expect(headers).toMatchObject({ "x-key": "one two", "x-other": "3" });
  });

  it("measures", () => {
    expect(receiver.measurements("brig.tool.calls").map(({ value }) => value)).toEqual([1, 1]);
    expect(receiver.measurements("brig.commands")).toEqual([
      { attributes: { "process.exit.code": 3 }, value: 1 },
    ]);
    expect(receiver.measurements("brig.sandboxes")).toEqual([{ attributes: {}, value: 1 }]);
    expect(receiver.measurements("gen_ai.client.operation.duration")).toHaveLength(1);
    expect(receiver.measurements("brig.egress.io")).toHaveLength(2);
  });

  it("contains nothing of what was said and done", () => {
    const sent = receiver.requests.map(({ body }) => body.toString()).join("\n");
    for (const text of [SECRET, PROMPT, "found.env", "nowhere", "cat "]) expect(sent).not.toContain(text);
  });
});

it("content is sent where it is asked for, with secrets masked", async () => {
  await using receiver = await startOtlpReceiver();
  const { exitCode, stderr } = await run(
    { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" },
    ["-c", "otel.capture_message_content=true"],
  );
  expect(exitCode, stderr).toBe(0);
  const facts = (name: string) => named(receiver.spans(), name)[0]?.attributes;
  expect(facts("invoke_agent brig")?.["gen_ai.input.messages"]).toContain(PROMPT);
  expect(facts("invoke_agent brig")?.["gen_ai.output.messages"]).toContain("the key is in found.env");
  expect(facts("chat scripted")?.["gen_ai.output.messages"]).toContain("tool_call");
  expect(facts("execute_tool shell")?.["gen_ai.tool.call.arguments"]).toContain("cat found.env");
  expect(facts("execute_tool shell")?.["gen_ai.tool.call.result"]).toContain(
    `KEY=${"*".repeat(SECRET.length)}`,
  );
  expect(facts("command bash")?.["process.command_args"]).toContain("bash");
  expect(receiver.requests.map(({ body }) => body.toString()).join("\n")).not.toContain(SECRET);
}, 120_000);

it("the configuration names a collector, whose headers are hidden and whose bodies are protobuf", async () => {
  await using receiver = await startOtlpReceiver();
  const exporter = `{ otlp-http = { endpoint = "${receiver.url}/in", headers = { x-key = "${SECRET}" } } }`;
  const given = ["-c", `otel.trace_exporter=${exporter}`];
  const { exitCode, stderr } = await run({}, given);
  expect(exitCode, stderr).toBe(0);
  expect(receiver.requests.length).toBeGreaterThan(0);
  for (const { path, headers, body } of receiver.requests) {
    expect(path).toBe("/in");
    expect(headers).toMatchObject({ "content-type": "application/x-protobuf", "x-key": SECRET });
    expect(body.includes("execute_tool") || body.includes("chat scripted")).toBe(true);
  }
  const shown = await brig(["config", "show", ...given], {
    cwd: join(folder.path, "work"),
    env: { BRIG_HOME: join(folder.path, "home"), CODEX_HOME: join(folder.path, "home") },
  });
  expect(shown.stdout).toContain("otel.trace_exporter");
  expect(shown.stdout).not.toContain(SECRET);
}, 120_000);

it("a program with the built library and a provider of its own gets the spans, and brig sends nothing", async () => {
  await using receiver = await startOtlpReceiver();
  const program = `
    import { context, trace } from "@opentelemetry/api";
    import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
    import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
    import { Sandbox } from "brigbox";
    import { createScriptedClient, loadScript, runAgent } from "brigbox/agent";
    const exporter = new InMemorySpanExporter();
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
    const [script, cwd] = process.argv.slice(1);
    await trace.getTracer("program").startActiveSpan("its own", async (own) => {
      await runAgent({
        prompt: "go",
        model: createScriptedClient(await loadScript(script)),
        sandbox: () => Sandbox.create({ workspace: cwd, mode: "read-only" }),
        setting: { cwd, sandboxMode: "read-only", network: { kind: "none" }, writableRoots: [], shell: "bash", timezone: "UTC" },
      });
      own.end();
    });
    const spans = exporter.getFinishedSpans();
    const nameOf = (id) => spans.find((span) => span.spanContext().spanId === id)?.name;
    console.log(JSON.stringify(spans.map(({ name, parentSpanContext }) => [name, nameOf(parentSpanContext?.spanId)])));
  `;
  const args = [join(folder.path, "script.json"), join(folder.path, "work")];
  const { stdout } = await execa(process.execPath, ["--input-type=module", "-e", program, ...args], {
    cwd: packageRoot,
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
  });
  expect(JSON.parse(stdout)).toEqual(
    expect.arrayContaining([
      ["invoke_agent brig", "its own"],
      ["create_sandbox", "invoke_agent brig"],
      ["execute_tool shell", "invoke_agent brig"],
      ["command bash", "execute_tool shell"],
    ]),
  );
  expect(receiver.requests).toEqual([]);
}, 120_000);

it("an attempt of a batch is a span with the name of its task, above those of its agent", async () => {
  await using receiver = await startOtlpReceiver();
  const output = join(folder.path, "batch");
  const task = join(packageRoot, "examples/tasks/python-bug");
  const agent = `scripted:${join(folder.path, "script.json")}`;
  const { stderr } = await brig(["batch", task, "--agent", agent, "-o", output], {
    cwd: folder.path,
    env: {
      ...{
        BRIG_HOME: join(folder.path, "home"),
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        REAL_KEY: SECRET,
      },
      ...{
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
      },
    },
  });
  const [attempt] = named(receiver.spans(), "attempt brig/python-bug");
  expect(attempt?.attributes, stderr).toMatchObject({
    "brig.task.name": "brig/python-bug",
    "brig.attempt.number": 1,
    "brig.attempt.status": "scored",
    "gen_ai.agent.name": "scripted",
  });
  const [turn] = named(receiver.spans(), "invoke_agent brig");
  expect(turn?.parentSpanId).toBe(attempt?.spanId);
  expect(turn?.attributes["gen_ai.output.messages"]).toContain("the key is in found.env");
}, 240_000);

it.each([
  ["that nothing listens for", async () => null],
  [
    "that answers after six seconds, each time",
    async () => await startOtlpReceiver({ answersAfterMs: 6000 }),
  ],
])(
  "a collector %s costs a run nothing but a line",
  async (_, start) => {
    const receiver = await start();
    const url = receiver?.url ?? `http://127.0.0.1:${await freePort()}`;
    try {
      const { exitCode, stdout, stderr } = await run({ OTEL_EXPORTER_OTLP_ENDPOINT: url });
      expect(exitCode, stderr).toBe(0);
      expect(stdout).toContain("the key is in found.env");
      expect(stderr.match(/telemetry was lost/g)).toHaveLength(1);
    } finally {
      await receiver?.[Symbol.asyncDispose]();
    }
  },
  120_000,
);

it("a collector cannot send the headers on to another, and nobody is shown a key in its address", async () => {
  await using other = await startOtlpReceiver();
  await using receiver = await startOtlpReceiver({ sendsTo: other.url });
  const { exitCode, stderr } = await run({
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces?key=${SECRET}`,
    OTEL_EXPORTER_OTLP_HEADERS: "x-key=1",
  });
  expect(exitCode, stderr).toBe(0);
  expect(receiver.requests.length).toBeGreaterThan(0);
  expect(other.requests).toEqual([]);
  expect(stderr).toContain(receiver.url);
  expect(stderr).not.toContain(SECRET);
}, 120_000);

it("a conversation has a span for each turn, and says on the terminal that has its screen back what was lost", async () => {
  const open = async (endpoint: string, args: string[]) =>
    await Terminal.open([...args, "--script", join(folder.path, "turns.json")], {
      cwd: join(folder.path, "work"),
      env: {
        ...{
          BRIG_HOME: join(folder.path, "home"),
          CODEX_HOME: join(folder.path, "home"),
          OPENAI_API_KEY: "",
        },
        ...{ REAL_KEY: SECRET, NO_COLOR: "" },
        ...{ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" },
      },
    });
  writeFileSync(
    join(folder.path, "turns.json"),
    JSON.stringify({ steps: [{ text: "one" }, { text: "two" }] }),
  );
  const leave = async (terminal: Terminal) => {
    await terminal.waitForScreen(/^(?![\s\S]*◦ )[\s\S]*\n›\s*\n/);
    terminal.type("\x04");
    return (await terminal.end()).exitStatus;
  };
  await using receiver = await startOtlpReceiver();
  await using terminal = await open(receiver.url, ["first question"]);
  await terminal.waitForScreen(/one/);
  await terminal.waitForScreen(/^›\s*$/m);
  terminal.type("second question\r");
  await terminal.waitForScreen(/two/);
  expect(await leave(terminal)).toBe(0);
  expect(named(receiver.spans(), "invoke_agent brig")).toHaveLength(2);
  await using other = await open(`http://127.0.0.1:${await freePort()}`, ["first question"]);
  await other.waitForScreen(/one/);
  expect(await leave(other)).toBe(0);
  expect(other.shown).toContain("telemetry was lost");
}, 120_000);

it("all sessions of an editor send their spans, until it leaves", async () => {
  await using receiver = await startOtlpReceiver();
  await using client = await AcpClient.start({
    ...{ cwd: folder.path, home: join(folder.path, "home"), isProcess: true },
    args: ["--script", join(folder.path, "script.json")],
    env: {
      ...{ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" },
      REAL_KEY: SECRET,
    },
  });
  for (let count = 0; count < 2; count++) {
    const session = await client.open(join(folder.path, "work"));
    expect(await client.prompt(session, PROMPT)).toBe("end_turn");
  }
  client.server.stdin.end();
  await client.server;
  const turns = named(receiver.spans(), "invoke_agent brig");
  expect(new Set(turns.map(({ attributes }) => attributes["gen_ai.conversation.id"])).size).toBe(2);
}, 120_000);

it.each([[{ OTEL_SDK_DISABLED: "true" }], [{ OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" }]])(
  "nothing is sent with %j",
  async (off) => {
    await using receiver = await startOtlpReceiver();
    const { exitCode, stderr } = await run({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...off });
    expect(exitCode, stderr).toBe(0);
    expect(receiver.requests).toEqual([]);
    expect(stderr).not.toContain("telemetry");
  },
  120_000,
);
