import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { listModels } from "../../../../../src/agent/model/endpoint/list-models.js";
import { bearerKey } from "../../../../../src/agent/model/static-credentials.js";
import { localProvider } from "../../../../support/responses-server.js";

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

const never = new AbortController().signal;

async function listed(body: string, status = 200): Promise<readonly string[] | null> {
  const url = await serve((_, response) => response.writeHead(status).end(body));
  return await listModels(localProvider(url), never);
}

it("asks with the credentials, headers and query of the provider", async () => {
  const asked: unknown[] = [];
  const url = await serve(({ url: path, headers }, response) => {
    asked.push([path, headers.authorization, headers["x-team"]]);
    response.end('{"data":[{"id":"one"},{"id":"two","owned_by":"me"},{"id":"one"}]}');
  });
  const provider = localProvider(url, {
    credentials: bearerKey("k-1"),
    headers: { "X-Team": "red" },
    query: { "api-version": "1" },
  });
  expect(await listModels(provider, never)).toEqual(["one", "two"]);
  expect(asked).toEqual([["/v1/models?api-version=1", "Bearer k-1", "red"]]);
});

it.each([
  ["ChatGPT's form", '{"models":[{"slug":"gpt-6"}]}', ["gpt-6"]],
  ["names that no model has", '{"data":[{"id":"a\\u001b[31m"},{"id":"b c"},{"id":""},{"id":"ok"}]}', ["ok"]],
  ["no list", '{"object":"list"}', null],
  ["an empty list", '{"data":[]}', null],
  ["another form", '{"data":[1]}', null],
  ["no JSON", "<html>", null],
  ["far too long a list", `{"data":[${'{"id":"x"},'.repeat(200_000)}{"id":"y"}]}`, null],
])("reads %s", async (_, body, names) => {
  expect(await listed(body)).toEqual(names);
});

it("takes a refusal for no list, and follows nobody to another host", async () => {
  expect(await listed('{"data":[{"id":"one"}]}', 404)).toBeNull();
  const elsewhere = await serve((_, response) => response.end('{"data":[{"id":"stolen"}]}'));
  const url = await serve((_, response) => response.writeHead(302, { location: elsewhere }).end());
  expect(await listModels(localProvider(url), never)).toBeNull();
  expect(await listModels(localProvider("http://127.0.0.1:1/v1"), never)).toBeNull();
});

it("ends at an abort, also in the middle of an endless answer", async () => {
  const stop = new AbortController();
  const url = await serve((_, response) => {
    response.write('{"data":[');
    stop.abort(new RangeError("over"));
  });
  await expect(listModels(localProvider(url), stop.signal)).rejects.toThrow(RangeError);
});
