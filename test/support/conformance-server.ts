import {
  completable,
  fromJsonSchema,
  McpServer,
  ResourceTemplate,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { OpenClient } from "../../src/services/mcp-server/served-client.js";

/** One red pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
/** A WAV file without samples. */
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/** The tools, resources and prompts that the official conformance suite of MCP calls by name. */
export const openConformanceClient: OpenClient = () => ({
  createServer: conformanceServer,
  close: () => Promise.resolve(),
});

const text = (value: string) => ({ type: "text" as const, text: value });
const image = { type: "image" as const, data: PNG, mimeType: "image/png" };

function conformanceServer(): McpServer {
  const server = new McpServer(
    { name: "conformance", version: "1" },
    {
      capabilities: { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} },
    },
  );
  addContentTools(server);
  addTalkingTools(server);
  addResources(server);
  addPrompts(server);
  return server;
}

function addContentTools(server: McpServer): void {
  const answers = {
    test_simple_text: [text("This is a simple text response for testing.")],
    test_image_content: [image],
    test_audio_content: [{ type: "audio" as const, data: WAV, mimeType: "audio/wav" }],
    test_embedded_resource: [
      {
        type: "resource" as const,
        resource: {
          uri: "test://embedded-resource",
          mimeType: "text/plain",
          text: "This is an embedded resource content.",
        },
      },
    ],
    test_multiple_content_types: [
      text("Multiple content types test:"),
      image,
      {
        type: "resource" as const,
        resource: {
          uri: "test://mixed-content-resource",
          mimeType: "application/json",
          text: '{"test":"data","value":123}',
        },
      },
    ],
  };
  for (const [name, content] of Object.entries(answers))
    server.registerTool(name, { description: `Returns what ${name} is about` }, () => ({ content }));
  server.registerTool("test_error_handling", { description: "Fails" }, () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  const inputSchema = fromJsonSchema({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: {
      address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } },
    },
    properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
    additionalProperties: false,
  });
  const description = "Tool with JSON Schema 2020-12 features";
  server.registerTool("json_schema_2020_12_tool", { description, inputSchema }, () => ({ content: [] }));
}

/** Tools that send something to the client before they answer. */
function addTalkingTools(server: McpServer): void {
  const describe = (description: string) => ({ description });
  server.registerTool("test_tool_with_logging", describe("Logs three messages"), async (context) => {
    for (const message of ["Tool execution started", "Tool processing data", "Tool execution completed"])
      await context.mcpReq.log("info", message);
    return { content: [text("logged")] };
  });
  server.registerTool("test_tool_with_progress", describe("Reports progress"), async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken !== undefined)
      for (const progress of [0, 50, 100])
        await mcpReq.notify({
          method: "notifications/progress",
          params: { progressToken, progress, total: 100 },
        });
    return { content: [text("done")] };
  });
  const prompt = { description: "Asks the client's model", inputSchema: z.object({ prompt: z.string() }) };
  server.registerTool("test_sampling", prompt, async (args, { mcpReq }) => {
    const messages = [{ role: "user" as const, content: text(args.prompt) }];
    const { content } = await mcpReq.requestSampling({ messages, maxTokens: 100 }, onStreamOf(mcpReq));
    return { content: [text(`LLM response: ${"text" in content ? content.text : ""}`)] };
  });
  const message = { description: "Asks the user", inputSchema: z.object({ message: z.string() }) };
  server.registerTool("test_elicitation", message, async (args, context) => {
    const answer = await ask(context, args.message, {
      username: { type: "string", description: "User's response" },
      email: { type: "string", description: "User's email address" },
    });
    return { content: [text(`User response: ${answer}`)] };
  });
  for (const [name, properties] of Object.entries(questions))
    server.registerTool(name, describe("Asks the user"), async (context) => ({
      content: [text(`Elicitation completed: ${await ask(context, "Please answer", properties)}`)],
    }));
}

type Properties = Parameters<ServerContext["mcpReq"]["elicitInput"]>[0] extends infer Params
  ? Params extends { requestedSchema: { properties: infer P } }
    ? P
    : never
  : never;

const questions: Record<string, Properties> = {
  test_elicitation_sep1034_defaults: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
  test_elicitation_sep1330_enums: {
    untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
    titledSingle: {
      type: "string",
      oneOf: [
        { const: "value1", title: "First Option" },
        { const: "value2", title: "Second Option" },
        { const: "value3", title: "Third Option" },
      ],
    },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
    titledMulti: {
      type: "array",
      items: {
        anyOf: [
          { const: "value1", title: "First Choice" },
          { const: "value2", title: "Second Choice" },
          { const: "value3", title: "Third Choice" },
        ],
      },
    },
  },
};

/**
 * Sends a question on the stream of the call that it belongs to. The SDK would send it on the stream that the client opens
 * for everything else, where it is lost if the client has not opened that yet.
 */
function onStreamOf({ id }: ServerContext["mcpReq"]): { relatedRequestId: typeof id } {
  return { relatedRequestId: id };
}

async function ask({ mcpReq }: ServerContext, message: string, properties: Properties): Promise<string> {
  const { action, content } = await mcpReq.elicitInput(
    { message, requestedSchema: { type: "object", properties } },
    onStreamOf(mcpReq),
  );
  return `action=${action}, content=${JSON.stringify(content ?? {})}`;
}

function addResources(server: McpServer): void {
  const plain = { description: "A text", mimeType: "text/plain" };
  server.registerResource("static-text", "test://static-text", plain, ({ href: uri }) => ({
    contents: [{ uri, mimeType: "text/plain", text: "This is the content of the static text resource." }],
  }));
  const picture = { description: "A picture", mimeType: "image/png" };
  server.registerResource("static-binary", "test://static-binary", picture, ({ href: uri }) => ({
    contents: [{ uri, mimeType: "image/png", blob: PNG }],
  }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, { description: "A template" }, ({ href: uri }, { id }) => ({
    contents: [
      {
        uri,
        mimeType: "application/json",
        text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
      },
    ],
  }));
  server.server.setRequestHandler("resources/subscribe", () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", () => ({}));
}

function addPrompts(server: McpServer): void {
  const user = "user" as const;
  server.registerPrompt("test_simple_prompt", { description: "Says something" }, () => ({
    messages: [{ role: user, content: text("This is a simple prompt for testing.") }],
  }));
  const completed = () => completable(z.string(), (start) => [`${start}is`, `${start}k`]);
  server.registerPrompt(
    "test_prompt_with_arguments",
    { description: "Says its arguments", argsSchema: z.object({ arg1: completed(), arg2: completed() }) },
    ({ arg1, arg2 }) => ({
      messages: [{ role: user, content: text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`) }],
    }),
  );
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description: "Embeds a resource", argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri: uri }) => ({
      messages: [
        {
          role: user,
          content: {
            type: "resource",
            resource: { uri, mimeType: "text/plain", text: "Embedded resource content for testing." },
          },
        },
        { role: user, content: text("Please process the embedded resource above.") },
      ],
    }),
  );
  server.registerPrompt("test_prompt_with_image", { description: "Shows a picture" }, () => ({
    messages: [
      { role: user, content: image },
      { role: user, content: text("Please analyze the image above.") },
    ],
  }));
}
