import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { signRequest } from "../../../../../../src/sandbox/egress/secrets/aws/sign-request.js";
import { awsProblem } from "../../../../../support/aws-signatures.js";
import { lasting } from "../../../../../support/inspected-place.js";

/** From AWS's signing test suite and from its documentation of S3. */
interface Published {
  name: string;
  method?: string;
  path: string;
  host?: string;
  service?: string;
  headers?: Record<string, string>;
  body?: string;
  token?: string;
  signed: string;
  signature: string;
}

const TOKEN =
  "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

const suite: Published[] = [
  {
    ...{ name: "get-vanilla", path: "/", signed: "host;x-amz-date" },
    signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
  },
  {
    ...{ name: "get-header-value-trim", path: "/", signed: "host;my-header1;my-header2;x-amz-date" },
    headers: { "My-Header1": "value1", "My-Header2": '"a   b   c"' },
    signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
  },
  {
    ...{ name: "get-slashes-normalized", path: "//example//", signed: "host;x-amz-date" },
    signature: "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
  },
  {
    name: "get-vanilla-query-order-encoded",
    path: "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
    signed: "host;x-amz-date",
    signature: "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
  },
  {
    ...{ name: "post-sts-header-before", method: "POST", path: "/", token: TOKEN },
    signed: "host;x-amz-date;x-amz-security-token",
    signature: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
  },
  {
    ...{ name: "post-x-www-form-urlencoded", method: "POST", path: "/", body: "Param1=value1" },
    headers: {
      "Content-Type": "application/x-www-form-urlencoded",
      "Content-Length": "13",
      "x-amz-content-sha256": "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e",
    },
    signed: "content-length;content-type;host;x-amz-content-sha256;x-amz-date",
    signature: "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
  },
];

const ofS3: Published[] = [
  {
    ...{
      name: "GET Object",
      path: "/test.txt",
      headers: { Range: "bytes=0-9", "x-amz-content-sha256": EMPTY },
    },
    signed: "host;range;x-amz-content-sha256;x-amz-date",
    signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  },
  {
    ...{ name: "PUT Object", method: "PUT", path: "/test%24file.text", body: "Welcome to Amazon S3." },
    headers: {
      Date: "Fri, 24 May 2013 00:00:00 GMT",
      "x-amz-storage-class": "REDUCED_REDUNDANCY",
      "x-amz-content-sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
    },
    signed: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
    signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  },
  {
    ...{ name: "GET Bucket Lifecycle", path: "/?lifecycle", headers: { "x-amz-content-sha256": EMPTY } },
    signed: "host;x-amz-content-sha256;x-amz-date",
    signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  },
];

const published = [
  ...suite.map((one) => ({
    ...{
      host: "example.amazonaws.com",
      service: "service",
      id: "AKIDEXAMPLE",
      nowText: "2015-08-30T12:36:00Z",
    },
    ...{ secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ...one },
  })),
  ...ofS3.map((one) => ({
    ...{ host: "examplebucket.s3.amazonaws.com", service: "s3", id: "AKIAIOSFODNN7EXAMPLE" },
    ...{ secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", nowText: "2013-05-24T00:00:00Z", ...one },
  })),
];

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

describe.each(published)("the published request $name", (one) => {
  const { method = "GET", path, host, service, headers = {}, body = "", token = null } = one;
  const keys = { accessKeyId: one.id, secretAccessKey: one.secret };
  const authorizationOf = (signature: string) =>
    `AWS4-HMAC-SHA256 Credential=${one.id}/${one.nowText.slice(0, 10).replaceAll("-", "")}/us-east-1/${service}/aws4_request, SignedHeaders=${one.signed}, Signature=${signature}`;

  it("is signed with the published signature", async () => {
    vi.setSystemTime(new Date(one.nowText));
    const signed = await signRequest(
      {
        secret: {
          ...{ name: "AWS", variables: {}, hosts: [], regions: null, services: null, plainHttp: false },
          rule: { hosts: [], plain_http: false },
          ...{
            keys: lasting({ ...keys, sessionToken: token }),
            placeholders: { ...keys, sessionToken: token },
          },
        },
        authorization: {
          ...{ accessKeyId: "AKIAPLACEHOLDER", region: "us-east-1", service },
          signedHeaders: one.signed.split(";"),
        },
      },
      {
        ...{ method, path, isTls: true, authority: host },
        headers: ["Host", host, "X-Amz-Date", "20990101T000000Z", ...Object.entries(headers).flat()],
        readBody: async () => ({ kind: "read", data: Buffer.from(body) }),
      },
    );
    if (signed.kind !== "signed") throw new Error(JSON.stringify(signed));
    expect(signed.headers[signed.headers.indexOf("authorization") + 1]).toBe(authorizationOf(one.signature));
  });

  it("is one that the verifier of these tests takes, and not with another signature", () => {
    const time = one.nowText.replace(/[:-]/g, "");
    const verify = (signature: string) =>
      awsProblem(
        {
          ...{ method, url: path, body: Buffer.from(body) },
          rawHeaders: [
            ...["Host", host, "X-Amz-Date", time, ...Object.entries(headers).flat()],
            ...(token === null ? [] : ["X-Amz-Security-Token", token]),
            ...["Authorization", authorizationOf(signature)],
          ],
        },
        keys,
        Date.parse(one.nowText),
      );
    expect(verify(one.signature)).toBe(null);
    expect(verify(one.signature.replace(/^./, (digit) => (digit === "0" ? "1" : "0")))).toMatch(
      /^wrong signature/,
    );
  });
});
