import { describe, expect, it } from "vitest";
import { chatMessages } from "../../../../../src/agent/model/chat/chat-messages.js";
import { type MessageItem, type ResponseItem, textMessage } from "../../../../../src/agent/model/items.js";

function messages(
  input: readonly ResponseItem[],
  options: { instructions?: string; developer?: boolean } = {},
) {
  const { instructions = "", developer = false } = options;
  return chatMessages(
    { instructions, input, tools: [] },
    { reasoningField: "reasoning", keepsDeveloperRole: developer },
  );
}

const user = (text: string) => textMessage("user", text);
const said = (text: string): MessageItem => ({
  type: "message",
  role: "assistant",
  content: [{ type: "output_text", text }],
});
const thought = (text: string): ResponseItem => ({
  type: "reasoning",
  summary: [],
  content: [{ type: "reasoning_text", text }],
});
const call = (id: string, args = "{}"): ResponseItem => ({
  type: "function_call",
  call_id: id,
  name: "shell",
  arguments: args,
});
const output = (id: string, text: string): ResponseItem => ({
  type: "function_call_output",
  call_id: id,
  output: text,
});
const toolCall = (id: string) => ({ id, type: "function", function: { name: "shell", arguments: "{}" } });

describe("the messages of a conversation", () => {
  it("begin with the instructions, as the system's", () => {
    expect(messages([user("hi")], { instructions: "be brief" })).toEqual([
      { role: "system", content: "be brief" },
      { role: "user", content: "hi" },
    ]);
  });

  it("are none for nothing", () => {
    expect(messages([])).toEqual([]);
  });

  it("have what a developer says first in the one message of the system, and later as the user's", () => {
    const input = [textMessage("developer", "rules"), user("hi"), textMessage("developer", "new rules")];
    expect(messages(input, { instructions: "be brief" })).toEqual([
      { role: "system", content: "be brief\n\nrules" },
      { role: "user", content: "hi" },
      { role: "user", content: "new rules" },
    ]);
  });

  it("keep the developer's role where that is known", () => {
    const input = [textMessage("developer", "rules"), user("hi")];
    expect(messages(input, { instructions: "be brief", developer: true })).toEqual([
      { role: "system", content: "be brief" },
      { role: "developer", content: "rules" },
      { role: "user", content: "hi" },
    ]);
  });

  it("have the texts of one message in one", () => {
    expect(messages([textMessage("user", "one", "two")])).toEqual([{ role: "user", content: "one\n\ntwo" }]);
  });

  it("have pictures as parts, in their place", () => {
    const item: MessageItem = {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "see" },
        { type: "input_image", image_url: "data:image/png;base64,AA" },
        { type: "input_text", text: "this" },
      ],
    };
    expect(messages([item])).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "see" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
          { type: "text", text: "this" },
        ],
      },
    ]);
  });

  it("have an assistant's refusal as its text", () => {
    const item: MessageItem = {
      type: "message",
      role: "assistant",
      content: [{ type: "refusal", refusal: "I won't" }],
    };
    expect(messages([item])).toEqual([{ role: "assistant", content: "I won't" }]);
  });

  it("leave out items of kinds that Chat does not have", () => {
    const opaque: ResponseItem = { type: "opaque", item: { type: "web_search_call" } };
    expect(messages([user("a"), opaque, said("b")])).toEqual([
      { role: "user", content: "a" },
      { role: "assistant", content: "b" },
    ]);
  });

  it("say a thing once that an assistant says twice in a row", () => {
    expect(messages([user("a"), said("b"), said("b"), said("c")])).toEqual([
      { role: "user", content: "a" },
      { role: "assistant", content: "b" },
      { role: "assistant", content: "c" },
    ]);
    expect(messages([said("done"), user("again"), said("done")])).toHaveLength(3);
  });
});

describe("calls", () => {
  it("that follow each other are one message, and their outputs follow it in their order", () => {
    expect(messages([user("go"), call("a"), call("b"), output("b", "2"), output("a", "1")])).toEqual([
      { role: "user", content: "go" },
      { role: "assistant", content: null, tool_calls: [toolCall("a"), toolCall("b")] },
      { role: "tool", tool_call_id: "a", content: "1" },
      { role: "tool", tool_call_id: "b", content: "2" },
    ]);
  });

  it("of different responses are different messages", () => {
    const input = [call("a"), output("a", "1"), call("b"), output("b", "2"), said("done")];
    expect(messages(input)).toEqual([
      { role: "assistant", content: null, tool_calls: [toolCall("a")] },
      { role: "tool", tool_call_id: "a", content: "1" },
      { role: "assistant", content: null, tool_calls: [toolCall("b")] },
      { role: "tool", tool_call_id: "b", content: "2" },
      { role: "assistant", content: "done" },
    ]);
  });

  it("are in the message with the text that came with them, wherever that stood", () => {
    const input = [
      said("I look."),
      call("a"),
      said("And here."),
      call("b"),
      output("a", "1"),
      output("b", "2"),
    ];
    expect(messages(input)).toEqual([
      { role: "assistant", content: "I look.\n\nAnd here.", tool_calls: [toolCall("a"), toolCall("b")] },
      { role: "tool", tool_call_id: "a", content: "1" },
      { role: "tool", tool_call_id: "b", content: "2" },
    ]);
  });

  it("have their outputs before what a user said meanwhile", () => {
    expect(messages([call("a"), user("wait"), output("a", "1")])).toEqual([
      { role: "assistant", content: null, tool_calls: [toolCall("a")] },
      { role: "tool", tool_call_id: "a", content: "1" },
      { role: "user", content: "wait" },
    ]);
  });

  it("have each its own output, though an id is used again", () => {
    const input = [call("a"), output("a", "1"), call("a"), output("a", "2")];
    expect(messages(input).flatMap(({ role, content }) => (role === "tool" ? [content] : []))).toEqual([
      "1",
      "2",
    ]);
  });

  it("have an output in any case", () => {
    expect(messages([call("a")])).toEqual([
      { role: "assistant", content: null, tool_calls: [toolCall("a")] },
      { role: "tool", tool_call_id: "a", content: "aborted" },
    ]);
  });

  it.each<[string, ResponseItem, { name: string; arguments: string }]>([
    ["a function's", call("a", '{"command":["ls"]}'), { name: "shell", arguments: '{"command":["ls"]}' }],
    [
      "of text",
      { type: "custom_tool_call", call_id: "a", name: "apply_patch", input: "*** Begin\n" },
      { name: "apply_patch", arguments: '{"input":"*** Begin\\n"}' },
    ],
    [
      "of the local shell",
      {
        type: "local_shell_call",
        call_id: "a",
        status: "completed",
        action: { type: "exec", command: ["ls"], working_directory: "/w", timeout_ms: 5, env: { A: "b" } },
      },
      { name: "shell", arguments: '{"command":["ls"],"workdir":"/w","timeout_ms":5}' },
    ],
    [
      "with arguments that are not JSON, which an endpoint would choke on",
      call("a", '{"command":'),
      { name: "shell", arguments: '{"unreadable_arguments":"{\\"command\\":"}' },
    ],
    [
      "with arguments that are no object",
      call("a", "[1]"),
      { name: "shell", arguments: '{"unreadable_arguments":"[1]"}' },
    ],
  ])("%s are functions'", (_, item, called) => {
    expect(messages([item])[0]).toEqual({
      role: "assistant",
      content: null,
      tool_calls: [{ id: "a", type: "function", function: called }],
    });
  });

  it("have the pictures of their outputs in messages of the user's, after all the outputs", () => {
    const picture: ResponseItem = {
      type: "function_call_output",
      call_id: "a",
      output: [
        { type: "input_text", text: "a picture" },
        { type: "input_image", image_url: "data:image/png;base64,AA", detail: "original" },
        { type: "input_image", image_url: "data:image/png;base64,BB" },
      ],
    };
    expect(messages([call("a"), call("b"), picture, output("b", "2")]).slice(1)).toEqual([
      { role: "tool", tool_call_id: "a", content: "a picture" },
      { role: "tool", tool_call_id: "b", content: "2" },
      {
        role: "user",
        content: [
          { type: "text", text: "What the call a shows:" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AA", detail: "high" } },
          { type: "image_url", image_url: { url: "data:image/png;base64,BB" } },
        ],
      },
    ]);
  });
});

describe("thoughts", () => {
  it.each<[string, ResponseItem[], (string | undefined)[]]>([
    [
      "are with the calls they led to",
      [user("a"), thought("hm"), call("a"), output("a", "1"), thought("so"), call("b"), output("b", "2")],
      [undefined, "hm", undefined, "so", undefined],
    ],
    ["are with the text they led to", [user("a"), thought("hm"), said("b")], [undefined, "hm"]],
    ["are with the text before where none follows", [user("a"), said("b"), thought("hm")], [undefined, "hm"]],
    [
      "of one response are together",
      [user("a"), thought("x"), said("I look"), thought("y"), call("a"), output("a", "1")],
      [undefined, "x\n\ny", undefined],
    ],
    [
      "are forgotten once the user has spoken",
      [user("a"), thought("x"), call("a"), output("a", "1"), said("b"), user("c"), thought("y"), said("d")],
      [undefined, undefined, undefined, undefined, undefined, "y"],
    ],
    ["alone are nothing", [user("a"), thought("x")], [undefined]],
    [
      "that are encrypted cannot be given back",
      [user("a"), { type: "reasoning", summary: [], encrypted_content: "gAAA" }, said("b")],
      [undefined, undefined],
    ],
  ])("%s", (_, input, expected) => {
    expect(messages(input).map(({ reasoning }) => reasoning)).toEqual(expected);
  });
});
