import { once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { clientInput } from "../../../src/command/client-input.js";

const lookMs = 10;

/** The streams of a client that reads nothing until `read` is called. */
function client() {
  const stdin = new PassThrough();
  const untaken: (() => void)[] = [];
  const stdout = new Writable({
    highWaterMark: 10,
    write: (_chunk, _encoding, done) => void untaken.push(done),
  });
  const input = clientInput({ stdin, stdout }, { lookMs });
  return { stdin, stdout, input, read: () => untaken.shift()?.() };
}

/** Long enough for brig to check many times whether the client reads. */
const manyLooks = async () => await new Promise((resolve) => setTimeout(resolve, 20 * lookMs));

describe("clientInput", () => {
  it("passes the input on", async () => {
    const { stdin, input } = client();
    stdin.end("hello");
    expect(await text(input)).toBe("hello");
  });

  it("gives up a client that has closed its input and reads nothing, even if the server reads no more", async () => {
    const { stdin, stdout } = client();
    stdout.write("an answer that nobody takes");
    stdin.end("a request that the server has not read yet");
    const [error] = await once(stdout, "error");
    expect(error).toMatchObject({ message: "the client no longer reads it" });
  });

  it("gives up a client that reads nothing and sends without end", async () => {
    const { stdin, stdout } = client();
    const failed = once(stdout, "error");
    stdout.write("an answer that nobody takes");
    const piece = Buffer.alloc(256 * 1024);
    for (let sent = 0; sent < 16; sent++) stdin.write(piece);
    expect(await failed).toHaveLength(1);
  });

  it("waits for a client that pauses with its input open", async () => {
    const { stdout } = client();
    stdout.write("an answer that nobody takes yet");
    await manyLooks();
    expect(stdout.destroyed).toBe(false);
  });

  it("waits for a client that has closed its input and has read everything", async () => {
    const { stdin, stdout, input, read } = client();
    stdout.write("an answer");
    read();
    stdin.end();
    await text(input);
    await manyLooks();
    expect(stdout.destroyed).toBe(false);
  });
});
