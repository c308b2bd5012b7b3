import { createHash } from "node:crypto";
import { once } from "node:events";
import { type RequestListener, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { awsProblem, type ReceivedRequest } from "../../../support/aws-signatures.js";
import { AWS_KEYS, AWS_PLACEHOLDERS, HOST, inspectedPlace } from "../../../support/inspected-place.js";

const IDENTIFIED = { ...AWS_KEYS, sessionToken: null };
const UNTIMED = { ...AWS_PLACEHOLDERS, sessionToken: null };

/** Keeps what arrives, and answers with its headers. */
function recorder(): { received: ReceivedRequest[]; listener: RequestListener } {
  const received: ReceivedRequest[] = [];
  const listener: RequestListener = async (incoming, response) => {
    const { method = "", url = "", rawHeaders } = incoming;
    received.push({ method, url, rawHeaders, body: await buffer(incoming) });
    response.end(JSON.stringify(incoming.headers));
  };
  return { received, listener };
}

/** As a program signs that has the placeholders: the signature is anything, since only AWS can verify it. */
function signed({
  id = AWS_PLACEHOLDERS.accessKeyId,
  service = "s3",
  region = "eu-test-1",
  headers = "host;x-amz-date",
} = {}): Record<string, string> {
  return {
    authorization: `AWS4-HMAC-SHA256 Credential=${id}/20200101/${region}/${service}/aws4_request, SignedHeaders=${headers}, Signature=${"0".repeat(64)}`,
    "x-amz-date": "20200101T000000Z",
  };
}

describe("a request that is signed with the placeholder of a key of AWS", () => {
  it.each([
    ["a body whose checksum is given", "s3", true, "/bucket/a%20key%2Bwith//two?list-type=2&prefix=a%2Fb"],
    ["a body that has to be read", "dynamodb", false, "/"],
    ["a path that is encoded twice", "lambda", false, "/functions/arn%3Aaws%3Alambda/invocations?b=2&a=1"],
  ])("is signed anew for %s", async (_, service, hasChecksum, path) => {
    const { received, listener } = recorder();
    await using here = await inspectedPlace(listener, { awsSecret: {} });
    const body = Buffer.alloc(300_000, "body ");
    const checksum = createHash("sha256").update(body).digest("hex");
    const answer = await here.ask(path, {
      method: "POST",
      body,
      headers: {
        ...signed({ service, headers: "content-type;host;x-amz-date" }),
        "content-type": "text/plain",
        "x-amz-security-token": AWS_PLACEHOLDERS.sessionToken,
        ...(hasChecksum && { "x-amz-content-sha256": checksum }),
      },
    });
    expect(answer.status).toBe(200);
    expect(received).toHaveLength(1);
    expect(received[0]!.body.equals(body)).toBe(true);
    expect(awsProblem(received[0]!, AWS_KEYS)).toBe(null);
    expect(received[0]!.rawHeaders).toContain(AWS_KEYS.sessionToken);
    // The server has sent it back.
    expect(answer.text).toContain(`"x-amz-security-token":"${"*".repeat(AWS_KEYS.sessionToken.length)}"`);
  });

  it("keeps what the program asks for: ranges, compression, and no session token", async () => {
    const { received, listener } = recorder();
    await using here = await inspectedPlace(listener, {
      awsSecret: { credentials: IDENTIFIED, placeholders: UNTIMED },
    });
    const headers = {
      ...signed({ headers: "host;range;x-amz-content-sha256;x-amz-date" }),
      ...{ range: "bytes=0-9", "accept-encoding": "gzip", "x-amz-content-sha256": "UNSIGNED-PAYLOAD" },
    };
    expect((await here.ask("/object", { headers })).status).toBe(200);
    expect(awsProblem(received[0]!, AWS_KEYS)).toBe(null);
    expect(received[0]!.rawHeaders).toEqual(
      expect.arrayContaining(["range", "bytes=0-9", "accept-encoding", "gzip"]),
    );
    expect(received[0]!.rawHeaders).not.toContain("x-amz-security-token");
  });

  it.each<[string, { path?: string; headers: Record<string, string | string[]> }, RegExp]>([
    [
      "in its URL",
      { path: `/?X-Amz-Credential=${AWS_PLACEHOLDERS.accessKeyId}%2F20200101`, headers: {} },
      /signature is in the URL/,
    ],
    [
      "with Version 4A",
      {
        headers: {
          authorization: `AWS4-ECDSA-P256-SHA256 Credential=${AWS_PLACEHOLDERS.accessKeyId}/20200101/s3/aws4_request`,
        },
      },
      /Version 4A/,
    ],
    [
      "in an odd way",
      { headers: { authorization: `AWS4-HMAC-SHA256 Credential=${AWS_PLACEHOLDERS.accessKeyId}` } },
      /not one of Signature Version 4/,
    ],
    ["for another region", { headers: signed({ region: "us-east-1" }) }, /region us-east-1/],
    ["for another service", { headers: signed({ service: "iam" }) }, /service iam/],
    [
      "in each part of its body",
      { headers: { ...signed(), "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" } },
      /each part of its body/,
    ],
    [
      "with a header that is there twice",
      { headers: { ...signed(), "x-amz-meta-a": ["1", "2"] } },
      /header x-amz-meta-a/,
    ],
    ["for a path that is none", { path: "/a/../b", headers: signed() }, /path can be read in two ways/],
    [
      "in another header",
      { headers: { "x-other": AWS_PLACEHOLDERS.secretAccessKey } },
      /in the header x-other/,
    ],
    [
      "in Basic credentials",
      {
        headers: {
          authorization: `Basic ${Buffer.from(`${AWS_PLACEHOLDERS.accessKeyId}:x`).toString("base64")}`,
        },
      },
      /in the header authorization/,
    ],
    [
      "with a second signature",
      { headers: { authorization: [signed().authorization!, signed().authorization!] } },
      /authorization/,
    ],
    [
      "with other keys and the token",
      {
        headers: {
          ...signed({ id: "AKIASOMEBODYELSE2345" }),
          "x-amz-security-token": AWS_PLACEHOLDERS.sessionToken,
        },
      },
      /without a signature/,
    ],
    [
      "only in a part of the URL",
      { path: `/${AWS_PLACEHOLDERS.secretAccessKey}`, headers: {} },
      /this part of the URL/,
    ],
  ])("is refused if it is signed %s", async (_, { path = "/", headers }, reason) => {
    const { received, listener } = recorder();
    await using here = await inspectedPlace(listener, {
      awsSecret: { regions: ["eu-test-1"], services: ["s3"] },
    });
    const answer = await here.ask(path, { headers });
    expect(answer).toMatchObject({ status: 403, text: expect.stringMatching(reason) });
    expect(received).toEqual([]);
    expect(here.egress.attempts).toMatchObject([{ outcome: { kind: "denied", denial: { name: "AWS" } } }]);
  });

  it("is refused if its body is too large to be kept", async () => {
    const { received, listener } = recorder();
    await using here = await inspectedPlace(listener, { awsSecret: {} });
    const asked = here.ask("/", {
      ...{ method: "POST", headers: signed({ service: "dynamodb" }), body: Buffer.alloc(33 * 1024 * 1024) },
    });
    await asked.catch(() => undefined);
    expect(here.egress.attempts).toMatchObject([
      { outcome: { denial: { kind: "signing", problem: { kind: "body" } } } },
    ]);
    expect(received).toEqual([]);
  });

  it("is refused over plain HTTP, and to a host that the key is not for", async () => {
    const { received, listener } = recorder();
    await using here = await inspectedPlace(listener, { awsSecret: {} });
    await using elsewhere = await inspectedPlace(listener, {
      awsSecret: { hosts: ["aws.test"] },
      rules: [{}],
    });
    const headers = { ...signed(), host: `${HOST}:${here.server.port}` };
    const path = `http://${HOST}:${here.server.port}/`;
    const plain = request({ port: here.egress.proxyPort, path, headers });
    plain.end();
    const [incoming] = await once(plain, "response");
    expect((await incoming.toArray()).join("")).toContain("the secret AWS may not be sent");
    const other = await elsewhere.ask("/", { headers: signed() });
    expect(other.text).toContain(`the secret AWS is not for ${HOST}`);
    expect(received).toEqual([]);
  });

  it("leaves requests alone that have nothing to do with it", async () => {
    const { received, listener } = recorder();
    await using here = await inspectedPlace(listener, { awsSecret: {} });
    const headers = signed({ id: "AKIASOMEBODYELSE2345" });
    expect((await here.ask("/a?b", { headers })).status).toBe(200);
    expect(received[0]!.rawHeaders).toContain(headers.authorization);
  });
});
